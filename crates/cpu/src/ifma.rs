//! AVX-512 IFMA and AVX-IFMA in radix 2^52: eight instances at a time, or four; two where there are
//! few.

mod avx512;
mod avx_ifma;
#[cfg(all(test, target_os = "linux"))]
mod emulator;
mod halves;
mod kernel;
mod lanes52;
mod look_up;
mod madd52;
mod pair;
mod powers;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tiles;

use self::lanes52::Lanes52;
use self::madd52::{Limb4, Madd52};
use self::pair::{Across, Pairs};
use super::adx::{self, Words};
use super::lanes::products::{NEVER, ProductCounts, fewest};
use super::lanes::{GROUP, LaneEngine, Profile, SimdEngine, backend};

/// Computes a batch on the calling thread with 52-bit multiply-adds of vectors.
///
/// Uses AVX-512 IFMA, eight instances at a time (x86-64: Intel's servers since Ice Lake, AMD since
/// Zen 4), or AVX-IFMA, four at a time (Intel's clients since Meteor Lake, Sierra Forest). The
/// processor is asked at run time; no build settings are needed.
///
/// In a group of eight each instance has its own 64-bit lane of the vector registers. The rest of a
/// batch is computed in pairs where that takes less time, each instance across four lanes. This
/// applies at most widths from 384 to 4,096 bits, to up to two instances, and to four from 1,024
/// bits on. Two instances take from nine to four tenths of the time of a group. A larger rest
/// costs as much as a group.
///
/// With four lanes there are no pairs. A single instance whose width is a multiple of 512 bits is
/// computed in words of 64 bits; two or three instances cost as much as four.
///
/// Moduli of up to 16,384 bits are served; wider ones fail with
/// [`Error::ModulusWidth`](batch_modexp_core::Error::ModulusWidth). An instance costs the same
/// whatever its neighbours are, so different moduli may stand side by side.
/// Instances of equal width should stand together: each change of width starts new vectors.
///
/// Source for groups: S. Gueron and V. Krasnov, "Accelerating Big Integer Arithmetic Using Intel
/// IFMA Extensions", ARITH 2016. Here each lane has its own instance, so that no data moves across
/// lanes. Source for pairs: the same authors, "Software Implementation of Modular Exponentiation,
/// Using Advanced Vector Instructions Architectures", WAIFI 2012.
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Ifma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 8];
///
/// if let Some(ifma) = Ifma::new() {
///     let mut out = [U256::ZERO; 8];
///     ifma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 8]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Engines);

/// The engine for the instructions of this processor.
#[derive(Clone, Copy, Debug)]
enum Engines {
    Eight(Eight<avx512::Token>),
    Four(Four<avx_ifma::Token<EVEX>>),
}

/// Eight lanes, and pairs for the last instances of a batch.
type Eight<T> = LaneEngine<Lanes52<T>, Pairs<T>>;

/// Four lanes, and words for the last instance of a batch.
type Four<T> = LaneEngine<Lanes52<T>, Words<adx::Token>>;

/// Forces four lanes in the AVX-512 encoding, for tests and measurements on processors without
/// AVX-IFMA. Set by `RUSTFLAGS='--cfg batch_modexp_ifma_evex256'`.
const EVEX: bool = cfg!(batch_modexp_ifma_evex256);

impl Ifma {
    /// The most instances that are computed at the same time: half as many with AVX-IFMA. See
    /// [`granularity`](batch_modexp_core::BatchModExp::granularity).
    pub const LANES: usize = 8;

    /// The backend, if the processor and the operating system support AVX-512 F and IFMA, or
    /// AVX-IFMA.
    #[must_use]
    pub fn new() -> Option<Self> {
        let of_eight = || avx512::Token::detect().map(|token| Engines::Eight(eight(token)));
        let of_four = || {
            let words = adx::Token::detect().map(Words);
            avx_ifma::Token::<EVEX>::detect().map(|token| Engines::Four(four(token, words)))
        };
        let engines = match EVEX {
            true => of_four(),
            false => of_eight().or_else(of_four),
        };
        engines.map(Self)
    }

    /// The engine of this processor.
    #[inline(never)]
    pub(crate) fn simd(&self) -> &dyn SimdEngine {
        match &self.0 {
            Engines::Eight(engine) => engine,
            Engines::Four(engine) => engine,
        }
    }
}

backend!(pub Ifma);

fn eight<T: Across>(unit: T) -> Eight<T> {
    LaneEngine::new(Lanes52(unit), Some(Pairs(unit)), PROFILE)
}

fn four<T: Madd52<Limb = Limb4>>(unit: T, words: Option<Words<adx::Token>>) -> Four<T> {
    LaneEngine::new(Lanes52(unit), words, PROFILE_OF_FOUR)
}

/// `Ifma` in eight lanes, then in pairs.
pub(crate) const PROFILE: Profile = Profile {
    name: "ifma",
    lanes: 8,
    last_cost: |bits, count| {
        let (_, pair) = IN_PAIRS.iter().find(|(largest, _)| bits <= *largest)?;
        Some((*pair)? * count.div_ceil(2) as u64)
    },
    has_pairs: true,
    single_on_serial: 320,
    products: &PRODUCTS,
    // In buckets, a product of narrow numbers takes less time than moving them into lanes.
    fewest_for_buckets: |bits| (((3 << 28) / bits.pow(2)) as usize).max(128),
    trial_division_bound: 1 << 14,
};

/// `Ifma` in four lanes, then one instance in words: only one that fills its tiles takes less time
/// so. Four lanes of `Ifma` are at least as fast at products as those of doubles.
pub(crate) const PROFILE_OF_FOUR: Profile = Profile {
    lanes: 4,
    last_cost: |bits, count| {
        let (_, one) = IN_WORDS.iter().find(|(largest, _)| bits <= *largest)?;
        (count == 1 && bits.is_multiple_of(adx::TILE_BITS)).then_some(*one)
    },
    has_pairs: false,
    products: super::fma::PROFILE.products,
    ..PROFILE
};

/// `(largest width in bits, cost of a pair)`. Measured with two 512-bit multiply-adds a cycle, with
/// exponents as long as the moduli. Above the last width there are no pairs. Below 208 bits they
/// would not work: the Montgomery constants of crypto-bigint suffice for at most twice their width.
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

/// `(largest width in bits, cost of one instance in words)`, for a whole number of tiles. Measured on
/// a Zen 5 in the encoding of AVX-512.
const IN_WORDS: [(u32, u64); 4] = [(512, 900), (1024, 840), (1536, 810), (16_384, 780)];

const PRODUCTS: [ProductCounts; 8] = [
    fewest(128, [512, NEVER], [NEVER, NEVER]),
    fewest(192, [96, NEVER], [NEVER, NEVER]),
    fewest(256, [48, 1024], [96, NEVER]),
    fewest(384, [24, 64], [32, 128]),
    fewest(512, [16, 32], [16, 32]),
    fewest(1024, [6, 8], [6, 8]),
    fewest(2048, [3, 4], [3, 4]),
    fewest(4096, [2, 2], [2, 2]),
];
