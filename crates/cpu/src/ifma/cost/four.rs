//! The cost of a batch in groups of four lanes, and of one instance in words.

use crate::ifma::madd52::{Limb, Limb4};

/// The cost of a group of four lanes, at any width: the unit of cost.
const GROUP: u64 = 1000;

/// Bits in a tile of words. A single instance takes less time in words if it fills its tiles.
const WORDS: u32 = 512;

/// `(largest width in bits, cost of one instance in words)`. Measured on a Zen 5 in the encoding of
/// AVX-512, with exponents as long as the moduli.
const ONE: [(u32, u64); 4] = [(512, 900), (1024, 840), (1536, 810), (16_384, 780)];

/// The cost in words of the last instance of a batch of `count` of equal width, if it would be
/// alone in a group of lanes and words take less time.
pub(crate) fn one_in_words(bits: u32, count: usize) -> Option<u64> {
    let is_alone = count % Limb4::LANES == 1;
    let (_, time) = ONE.iter().find(|(largest, _)| bits <= *largest)?;
    (is_alone && bits.is_multiple_of(WORDS)).then_some(*time)
}

/// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
pub(crate) fn relative_time(bits: u32, count: usize, has_words: bool) -> u64 {
    let full = GROUP * (count / Limb4::LANES) as u64;
    let is_more = !count.is_multiple_of(Limb4::LANES);
    let group = GROUP * u64::from(is_more);
    let words = one_in_words(bits, count).filter(|_| has_words);
    full + words.unwrap_or(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adx;

    #[test]
    fn what_goes_in_words() {
        for (bits, goes) in [
            (256, false),
            (512, true),
            (576, false),
            (1024, true),
            (2048, true),
            (2112, false),
            (16_384, true),
        ] {
            for count in 0..20 {
                let expected = goes && count % 4 == 1;
                assert_eq!(one_in_words(bits, count).is_some(), expected, "{bits}");
            }
        }
    }

    #[test]
    fn words_serve_what_they_get() {
        for bits in (64..=batch_modexp_core::width::MAX_BITS).step_by(64) {
            assert!(
                one_in_words(bits, 1).is_none() || bits >= adx::MIN_BITS,
                "{bits}"
            );
        }
    }

    #[test]
    fn more_take_no_less() {
        for bits in (64..=16_384).step_by(64) {
            for has_words in [false, true] {
                let times: alloc::vec::Vec<_> = (0..20)
                    .map(|count| relative_time(bits, count, has_words))
                    .collect();
                assert!(times.is_sorted(), "{bits}");
                assert_eq!((times[0], times[4], times[16]), (0, GROUP, 4 * GROUP));
            }
        }
    }
}
