//! The cost of a batch, in groups of eight lanes and in pairs. Depends on public numbers only.

pub(super) mod four;

use super::madd52::{Limb, Limb8};

/// The cost of a group of eight lanes, at any width: the unit of cost.
const GROUP: u64 = 1000;

/// `(largest width in bits, cost of a pair)`. Measured with two 512-bit multiply-adds a cycle, with
/// exponents as long as the moduli. Below the first width and above the last one there are no
/// pairs.
const PAIRS: [(u32, u64); 8] = [
    (384, 920),
    (512, GROUP),
    (640, 890),
    (704, 750),
    (896, 680),
    (960, 570),
    (1664, 490),
    (4096, 380),
];

/// The narrowest moduli that are computed in pairs. Below 208 bits it would not work: the
/// Montgomery constants of crypto-bigint suffice for at most twice their width.
const MIN_BITS: u32 = 384;

/// How many instances at the end of a batch of `count` of equal width cost less in pairs than in a
/// group of lanes.
pub(super) fn in_pairs(bits: u32, count: usize) -> usize {
    let left_over = count % Limb8::LANES;
    match pairs(bits, left_over) {
        Some(time) if time < GROUP => left_over,
        _ => 0,
    }
}

/// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
pub(super) fn relative_time(bits: u32, count: usize) -> u64 {
    let left_over = count % Limb8::LANES;
    let group = GROUP * u64::from(left_over > 0);
    let left_over = pairs(bits, left_over).map_or(group, |time| time.min(group));
    GROUP * (count / Limb8::LANES) as u64 + left_over
}

/// The cost of `count` instances in pairs, where that is an option.
fn pairs(bits: u32, count: usize) -> Option<u64> {
    let (_, pair) = PAIRS.iter().find(|(largest, _)| bits <= *largest)?;
    (bits >= MIN_BITS).then_some(pair * count.div_ceil(2) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifma::pair;

    #[test]
    fn what_goes_by_twos() {
        for (bits, most) in [
            (256, 0),
            (384, 2),
            (512, 0),
            (960, 2),
            (1024, 4),
            (2048, 4),
            (4096, 4),
            (4160, 0),
        ] {
            for count in 0..40 {
                let left_over = count % 8;
                let expected = if left_over <= most { left_over } else { 0 };
                assert_eq!(in_pairs(bits, count), expected, "{count} of {bits} bits");
            }
        }
        assert!(PAIRS.iter().all(|(bits, _)| *bits <= pair::MAX_BITS));
    }

    #[test]
    fn more_take_no_less() {
        for bits in (64..=8192).step_by(64) {
            let times: alloc::vec::Vec<_> =
                (0..40).map(|count| relative_time(bits, count)).collect();
            assert!(times.is_sorted(), "{bits}");
            assert_eq!((times[0], times[8], times[32]), (0, GROUP, 4 * GROUP));
        }
    }
}
