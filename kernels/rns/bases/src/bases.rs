//! The moduli of each width.

use num_bigint::BigUint;

use crate::primes;

/// The widths in bits that have bases, and the number of moduli in each of the two bases.
///
/// The number is a multiple of four, because four lanes share the residues of an instance. The
/// product of a base exceeds the modulus by 20 bits or more (`docs/rns.md`, "Bounds").
pub const WIDTHS: [(u32, usize); 5] =
    [(1024, 36), (1536, 56), (2048, 72), (3072, 108), (4096, 144)];

/// Two bases with the same number of prime moduli `2^29 - d`, all different.
#[derive(Clone, Debug)]
pub struct Bases {
    /// The width in bits of the numbers that are exponentiated; every modulus M is below `2^bits`.
    pub bits: u32,
    /// The moduli of base A, in which the quotient of a Montgomery reduction is computed.
    pub a: Vec<u32>,
    /// The moduli of base B.
    pub b: Vec<u32>,
}

impl Bases {
    /// The bases for a width of [`WIDTHS`]: the primes below `2^29`, greatest first, alternating
    /// between A and B.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        let &(_, count) = WIDTHS.iter().find(|(width, _)| *width == bits)?;
        let primes: Vec<_> = primes::below_2_to_29().take(2 * count).collect();
        Some(Self {
            bits,
            a: primes.iter().copied().step_by(2).collect(),
            b: primes.iter().copied().skip(1).step_by(2).collect(),
        })
    }

    /// The number of moduli in a base.
    #[must_use]
    pub fn count(&self) -> usize {
        self.a.len()
    }

    /// The product of base A, which replaces the power of two in Montgomery reduction.
    #[must_use]
    pub fn product_a(&self) -> BigUint {
        self.a.iter().product()
    }

    /// The product of base B.
    #[must_use]
    pub fn product_b(&self) -> BigUint {
        self.b.iter().product()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn bases_have_room_for_their_width() {
        for (bits, count) in WIDTHS {
            let bases = Bases::new(bits).unwrap();
            assert_eq!((bases.a.len(), bases.b.len()), (count, count));
            assert_eq!(count % 4, 0);
            let distinct: HashSet<_> = bases.a.iter().chain(&bases.b).collect();
            assert_eq!(distinct.len(), 2 * count);
            for product in [bases.product_a(), bases.product_b()] {
                assert!(product.bits() >= u64::from(bits) + 20);
            }
        }
        assert!(Bases::new(1000).is_none());
    }
}
