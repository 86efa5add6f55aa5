//! The measured constants of each engine with lanes. All choices by them depend on public numbers
//! only.

use core::fmt;

/// The cost of a group of lanes, at any width: the unit of cost.
const GROUP: u64 = 1000;

/// The constants of one engine. A new engine has its own.
#[derive(Clone, Copy)]
pub(crate) struct Profile {
    /// The engine's name, for users.
    pub(crate) name: &'static str,
    /// The number of lanes in a group.
    pub(crate) lanes: usize,
    /// The cost of this many last instances of a batch, of this width in bits, apart from groups;
    /// where that is an option.
    last_cost: fn(u32, usize) -> Option<u64>,
    /// Whether those instances are pairs, which also compute products, remainders and public powers
    /// if there are so few.
    pub(crate) has_pairs: bool,
    /// The widest modulus, in bits, for which [`Serial`](batch_modexp_core::Serial) computes one
    /// instance faster than a group of lanes. Two instances are faster in lanes at every width.
    single_on_serial: u32,
    /// From how many products on lanes are faster than `Serial`.
    pub(crate) products: &'static [ProductCounts],
    /// See [`fewest_for_buckets`](batch_modexp_core::powers::PowerEngine::fewest_for_buckets).
    /// Measured on a Zen 5 with exponents of 128 bits and moduli of 256 to 4096 bits.
    pub(crate) fewest_for_buckets: fn(u32) -> usize,
    /// See [`Engine::trial_division_bound`](batch_modexp_core::engine::Engine::trial_division_bound).
    pub(crate) trial_division_bound: u32,
}

/// Only the name: the rest is the same for all of this name.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How many powers at the end of a batch are computed apart from groups of lanes: either all that
/// would leave lanes empty are last ones, or a single one is on `Serial`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Split {
    /// On the lanes for the last instances.
    pub(crate) last: usize,
    /// On [`Serial`](batch_modexp_core::Serial), if the caller can; else in a group.
    pub(crate) on_serial: usize,
}

/// Where products are computed, if not in groups of lanes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ForProducts {
    /// On [`Serial`](batch_modexp_core::Serial), if the caller can.
    pub(crate) on_serial: bool,
    /// In pairs.
    pub(crate) in_pairs: bool,
}

impl Profile {
    /// The same engine without another way for the last instances than a group of lanes.
    pub(crate) fn in_groups(self) -> Self {
        Self {
            last_cost: |_, _| None,
            ..self
        }
    }

    /// Divides `count` powers of equal width between groups and others. Those that would leave lanes
    /// empty are apart from groups where that takes less time.
    pub(crate) fn split(&self, bits: u32, count: usize) -> Split {
        let left_over = count % self.lanes;
        let cost = (self.last_cost)(bits, left_over).filter(|cost| *cost < GROUP);
        let is_on_serial = cost.is_none() && left_over == 1 && bits <= self.single_on_serial;
        Split {
            last: cost.map_or(0, |_| left_over),
            on_serial: usize::from(is_on_serial),
        }
    }

    /// Chooses where to compute products, remainders, or powers with a public exponent, modulo `count`
    /// moduli of equal width. `is_one` tells that it is one product for each modulus, rather than a power.
    ///
    /// Lanes are prepared for their moduli, which does not pay for a few products. Pairs are as fast
    /// as [`Serial`](batch_modexp_core::Serial) from 1024 bits on.
    pub(crate) fn for_products(&self, bits: u32, count: usize, is_one: bool) -> ForProducts {
        const FEWEST_POWERS: usize = 2;
        const FEWEST_PRODUCTS: usize = 16;
        let fewest = match is_one {
            false if self.has_pairs => 1,
            false => FEWEST_POWERS,
            true if self.has_pairs && bits >= 1024 => 1,
            true => FEWEST_PRODUCTS,
        };
        ForProducts {
            in_pairs: self.has_pairs && self.split(bits, count).last == count,
            on_serial: count < fewest,
        }
    }

    /// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
    pub(crate) fn relative_time(&self, bits: u32, count: usize) -> u64 {
        let left_over = count % self.lanes;
        let group = GROUP * u64::from(left_over > 0);
        let last = (self.last_cost)(bits, left_over).map_or(group, |cost| cost.min(group));
        GROUP * (count / self.lanes) as u64 + last
    }
}

/// `Ifma` in eight lanes, then in pairs.
#[cfg(target_arch = "x86_64")]
pub(crate) const IFMA: Profile = Profile {
    name: "ifma",
    lanes: 8,
    last_cost: |bits, count| {
        let (_, pair) = IN_PAIRS.iter().find(|(largest, _)| bits <= *largest)?;
        Some((*pair)? * count.div_ceil(2) as u64)
    },
    has_pairs: true,
    single_on_serial: 320,
    products: &IFMA_PRODUCTS,
    // In buckets, a product of narrow numbers takes less time than moving them into lanes.
    fewest_for_buckets: |bits| (((3 << 28) / bits.pow(2)) as usize).max(128),
    trial_division_bound: 1 << 14,
};

/// `Ifma` in four lanes, then one instance in words: only one that fills its tiles takes less time
/// so. Four lanes of `Ifma` are at least as fast at products as those of doubles.
#[cfg(target_arch = "x86_64")]
pub(crate) const IFMA_FOUR: Profile = Profile {
    lanes: 4,
    last_cost: |bits, count| {
        let (_, one) = AFTER_IFMA.iter().find(|(largest, _)| bits <= *largest)?;
        (count == 1 && bits.is_multiple_of(TILE)).then_some(*one)
    },
    has_pairs: false,
    products: &FMA_PRODUCTS,
    ..IFMA
};

/// `Fma`, then one by one in words.
pub(crate) const FMA: Profile = Profile {
    name: "fma",
    lanes: 4,
    last_cost: |bits, count| {
        let (_, one) = AFTER_FMA.iter().find(|(largest, _)| bits <= *largest)?;
        Some((*one)? * count as u64)
    },
    has_pairs: false,
    single_on_serial: 960,
    products: &FMA_PRODUCTS,
    fewest_for_buckets: |_| 128,
    trial_division_bound: 1 << 16,
};

/// Bits in a tile of words.
#[cfg(target_arch = "x86_64")]
const TILE: u32 = 512;

/// `(largest width in bits, cost of a pair)`. Measured with two 512-bit multiply-adds a cycle, with
/// exponents as long as the moduli. Above the last width there are no pairs. Below 208 bits they
/// would not work: the Montgomery constants of crypto-bigint suffice for at most twice their width.
#[cfg(target_arch = "x86_64")]
const IN_PAIRS: [(u32, Option<u64>); 9] = [
    (383, None),
    (384, Some(920)),
    (512, Some(GROUP)),
    (640, Some(890)),
    (704, Some(750)),
    (896, Some(680)),
    (960, Some(570)),
    (1664, Some(490)),
    (4096, Some(380)),
];

/// `(largest width in bits, cost of one instance in words)`. Measured on a Zen 5 with exponents as
/// long as the moduli. Words come in tiles of 512 bits, so the relative cost falls with the width
/// within one number of tiles. Where there is no cost, lanes or
/// [`Serial`](batch_modexp_core::Serial) are faster.
const AFTER_FMA: [(u32, Option<u64>); 22] = [
    (320, None),
    (384, Some(520)),
    (448, Some(420)),
    (512, Some(310)),
    (640, None),
    (704, Some(740)),
    (768, Some(670)),
    (832, Some(600)),
    (896, Some(540)),
    (960, Some(480)),
    (1024, Some(420)),
    (1088, Some(790)),
    (1152, Some(710)),
    (1280, Some(600)),
    (1408, Some(550)),
    (1536, Some(440)),
    (1664, Some(700)),
    (1792, Some(600)),
    (1920, Some(550)),
    (2048, Some(480)),
    (2304, Some(580)),
    (16_384, Some(500)),
];

/// The same for `Ifma`, in the encoding of AVX-512.
#[cfg(target_arch = "x86_64")]
const AFTER_IFMA: [(u32, u64); 4] = [(512, 900), (1024, 840), (1536, 810), (16_384, 780)];

/// The smallest numbers of products for which lanes are faster than `Serial`. Measured on a Zen 5,
/// with widths in bits and numbers that grow by about a half from one to the next. A width in
/// between counts as the next smaller one.
#[derive(Debug)]
pub(crate) struct ProductCounts {
    /// The narrowest moduli that this row is for, in bits.
    pub(crate) bits: u32,
    /// If most instances have the modulus of the one before: for ordinary products, then for those
    /// in Montgomery form.
    pub(crate) shared: [usize; 2],
    /// If most do not.
    pub(crate) mixed: [usize; 2],
}

const fn fewest(bits: u32, shared: [usize; 2], mixed: [usize; 2]) -> ProductCounts {
    ProductCounts {
        bits,
        shared,
        mixed,
    }
}

/// `Serial` is always faster.
const NEVER: usize = usize::MAX;

#[cfg(target_arch = "x86_64")]
const IFMA_PRODUCTS: [ProductCounts; 8] = [
    fewest(128, [512, NEVER], [NEVER, NEVER]),
    fewest(192, [96, NEVER], [NEVER, NEVER]),
    fewest(256, [48, 1024], [96, NEVER]),
    fewest(384, [24, 64], [32, 128]),
    fewest(512, [16, 32], [16, 32]),
    fewest(1024, [6, 8], [6, 8]),
    fewest(2048, [3, 4], [3, 4]),
    fewest(4096, [2, 2], [2, 2]),
];

const FMA_PRODUCTS: [ProductCounts; 4] = [
    fewest(512, [256, NEVER], [NEVER, NEVER]),
    fewest(1024, [12, 24], [NEVER, NEVER]),
    fewest(2048, [4, 8], [8, 8]),
    fewest(4096, [3, 3], [4, 4]),
];

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::adx;
    use batch_modexp_core::width::MAX_BITS;

    /// Checks the largest number of instances that are computed apart from groups of lanes.
    fn check(profile: &Profile, expected: &[(u32, usize)]) {
        for &(bits, most) in expected {
            for count in 0..40 {
                let left_over = count % profile.lanes;
                let expected = if left_over <= most { left_over } else { 0 };
                let split = profile.split(bits, count);
                assert_eq!(split.last, expected, "{count} of {bits} bits");
                let on_serial = left_over == 1 && expected == 0 && bits <= profile.single_on_serial;
                assert_eq!(split.on_serial, usize::from(on_serial));
            }
        }
    }

    #[test]
    fn the_last_follow_from_the_width() {
        let (pairs, words) = (&IFMA, &FMA);
        check(pairs, &[(256, 0), (384, 2), (512, 0), (960, 2)]);
        check(pairs, &[(1024, 4), (2048, 4), (4096, 4), (4160, 0)]);
        check(words, &[(256, 0), (512, 3), (576, 0), (768, 1), (1024, 2)]);
        check(words, &[(1536, 2), (2048, 2), (3072, 1), (16_384, 1)]);
        let words = &IFMA_FOUR;
        check(words, &[(256, 0), (512, 1), (576, 0), (1024, 1)]);
        check(words, &[(2048, 1), (2112, 0), (16_384, 1)]);
        check(&FMA.in_groups(), &[(512, 0), (2048, 0)]);
    }

    #[test]
    fn words_serve_what_they_get() {
        for bits in (64..=MAX_BITS).step_by(64) {
            for words in [FMA, IFMA_FOUR] {
                assert!(words.split(bits, 1).last == 0 || bits >= adx::MIN_BITS);
            }
        }
    }

    #[test]
    fn more_take_no_less() {
        for profile in [FMA, IFMA_FOUR, FMA.in_groups(), IFMA] {
            for bits in (64..=MAX_BITS).step_by(64) {
                let time = |count| profile.relative_time(bits, count);
                assert!((0..40).map(time).is_sorted(), "{bits}");
                let groups = [0, 1, 4].map(|groups| time(groups * profile.lanes));
                assert_eq!(groups, [0, GROUP, 4 * GROUP]);
            }
        }
    }

    #[test]
    fn wider_moduli_and_ordinary_products_need_no_more() {
        for table in [&FMA_PRODUCTS[..], &IFMA_PRODUCTS] {
            for pair in table.windows(2) {
                assert!(pair[0].bits < pair[1].bits);
                let [narrow, wide] = [&pair[0], &pair[1]];
                for (narrow, wide) in [(narrow.shared, wide.shared), (narrow.mixed, wide.mixed)] {
                    assert!(wide[0] <= narrow[0] && wide[1] <= narrow[1]);
                    assert!(wide[0] <= wide[1] && narrow[0] <= narrow[1]);
                }
            }
        }
    }
}
