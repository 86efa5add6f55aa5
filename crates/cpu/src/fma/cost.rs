//! The cost of a batch, in groups of four lanes and one by one in words. Depends on public numbers
//! only.

use crate::Fma;

/// The cost of a group of four lanes, at any width: the unit of cost.
const GROUP: u64 = 1000;

/// `(largest width in bits, cost of one instance in words)`. Measured on a Zen 5 with exponents as
/// long as the moduli. Words come in tiles of 512 bits, so the relative cost falls with the width
/// within one number of tiles. Below the first width, and where there is no cost, lanes or
/// [`Serial`](batch_modexp_core::Serial) are faster.
const ONE: [(u32, Option<u64>); 22] = [
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

/// How many instances at the end of a batch of `count` of equal width cost less one by one than in
/// a group of lanes.
pub(super) fn one_by_one(bits: u32, count: usize) -> usize {
    let left_over = count % Fma::LANES;
    match in_words(bits, left_over) {
        Some(time) if time < GROUP => left_over,
        _ => 0,
    }
}

/// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
pub(super) fn relative_time(bits: u32, count: usize) -> u64 {
    let left_over = count % Fma::LANES;
    let group = GROUP * u64::from(left_over > 0);
    let left_over = in_words(bits, left_over).map_or(group, |time| time.min(group));
    GROUP * (count / Fma::LANES) as u64 + left_over
}

/// The cost of `count` instances one by one, where that is an option.
fn in_words(bits: u32, count: usize) -> Option<u64> {
    let (_, one) = ONE.iter().find(|(largest, _)| bits <= *largest)?;
    Some((*one)? * count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adx;

    #[test]
    fn what_goes_one_by_one() {
        for (bits, most) in [
            (256, 0),
            (512, 3),
            (576, 0),
            (768, 1),
            (1024, 2),
            (1536, 2),
            (2048, 2),
            (3072, 1),
            (4096, 1),
            (16_384, 1),
        ] {
            for count in 0..20 {
                let left_over = count % 4;
                let expected = if left_over <= most { left_over } else { 0 };
                assert_eq!(one_by_one(bits, count), expected, "{count} of {bits} bits");
            }
        }
    }

    #[test]
    fn words_serve_what_they_get() {
        for bits in (64..=batch_modexp_core::width::MAX_BITS).step_by(64) {
            assert!(one_by_one(bits, 1) == 0 || bits >= adx::MIN_BITS, "{bits}");
        }
    }

    #[test]
    fn more_take_no_less() {
        for bits in (64..=batch_modexp_core::width::MAX_BITS).step_by(64) {
            let times: alloc::vec::Vec<_> =
                (0..20).map(|count| relative_time(bits, count)).collect();
            assert!(times.is_sorted(), "{bits}");
            assert_eq!((times[0], times[4], times[16]), (0, GROUP, 4 * GROUP));
        }
    }
}
