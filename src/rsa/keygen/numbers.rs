//! Computes a key from two primes.

use alloc::vec::Vec;

use batch_modexp_core::secret::{Secret, reveal};
use batch_modexp_core::width::{WithLimbs, load, with_limbs};
use crypto_bigint::{BoxedUint, Choice, CtAssign, CtLt, Limb, Odd, Uint};

use super::export::GeneratedKey;
use super::halve;
use crate::rsa::key::{KeyHandle, RsaComponents};
use crate::rsa::octets::limbs_to_octets;
use crate::rsa::{Error, KeyFault};

/// Makes the key with the primes p and q, or `None` if they do not fit together, which is as
/// unlikely as a composite passing as a prime.
///
/// # Errors
///
/// Those of [`KeyHandle::from_components`], if a fault has changed the numbers.
pub(super) fn key(e: u32, p: &BoxedUint, q: &BoxedUint) -> Result<Option<GeneratedKey>, Error> {
    let bits = p.bits_precision();
    let Some(Numbers { n, d }) = Numbers::new(e, p, q) else {
        return Ok(None);
    };
    let octets = |limbs: &[Limb], bits: u32| limbs_to_octets(limbs, (bits / 8) as usize);
    let (n, d_octets) = (octets(&n, 2 * bits), octets(&d, 2 * bits));
    let (p, q) = (octets(p.as_limbs(), bits), octets(q.as_limbs(), bits));
    let e = e.to_be_bytes();
    let components = RsaComponents::new(&n, &e, &d_octets).primes(&p, &q);
    match KeyHandle::from_components(&components) {
        Ok(key) => Ok(Some(GeneratedKey::new(key, d_octets))),
        Err(Error::Key(KeyFault::ShortPrivateExponent)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Two primes, equally wide and 3 modulo 4.
struct Primes<'a> {
    e: u32,
    p: &'a BoxedUint,
    q: &'a BoxedUint,
}

/// n and d, as wide as n. n becomes public once the key is used, but is wiped here too.
pub(in crate::rsa) struct Numbers {
    n: Secret<Vec<Limb>>,
    d: Secret<Vec<Limb>>,
}

impl Numbers {
    /// Computes n and d from primes that are 3 modulo 4; `None` if these do not fit together.
    pub(in crate::rsa) fn new(e: u32, p: &BoxedUint, q: &BoxedUint) -> Option<Self> {
        with_limbs(2 * p.as_limbs().len(), Primes { e, p, q })
    }
}

impl WithLimbs for Primes<'_> {
    type Output = Option<Numbers>;

    fn run<const LIMBS: usize>(self) -> Option<Numbers> {
        let p = Secret::new(load::<LIMBS>(self.p));
        let q = Secret::new(load::<LIMBS>(self.q));
        if !reveal(are_far_apart(&p, &q, self.p.bits_precision())) {
            return None;
        }
        let n = Secret::new(p.wrapping_mul(&q));
        // p - 1 and q - 1 are even with odd halves, and so is their least common multiple.
        let half = |prime: &Uint<LIMBS>| {
            let mut half = Secret::new(*prime);
            halve(half.as_mut_limbs());
            half
        };
        let (half_p, half_q) = (half(&p), half(&q));
        let divisor = gcd(&half_p, &half_q, self.p.bits_precision());
        // The product is a multiple of the divisor, so multiplying by its inverse modulo a power of
        // two divides.
        let inverse = divisor
            .invert_mod2k(Uint::<LIMBS>::BITS)
            .unwrap_or(Uint::ONE);
        let inverse = Secret::new(inverse);
        let product = Secret::new(half_p.wrapping_mul(&half_q));
        let half_lcm = Secret::new(product.wrapping_mul(&inverse));
        let one = Odd::new(Uint::ONE).expect("an odd number");
        let half_lcm = Secret::new(Odd::new(*half_lcm).unwrap_or(one));
        let d = Uint::<LIMBS>::from(self.e).invert_odd_mod(&half_lcm);
        if !reveal(d.is_some()) {
            return None;
        }
        // Two numbers below the least common multiple have this residue; d is the odd one.
        let mut d = Secret::new(d.unwrap_or(Uint::ZERO));
        let other = Secret::new(d.wrapping_add(half_lcm.as_ref()));
        let is_even = !d.is_odd();
        d.ct_assign(&other, is_even);
        let limbs = 2 * self.p.as_limbs().len();
        let low = |number: &Uint<LIMBS>| Secret::new(number.as_limbs()[..limbs].to_vec());
        Some(Numbers {
            n: low(&n),
            d: low(&d),
        })
    }
}

/// Greatest common divisor of two odd numbers of at most `bits` bits, by Stein's algorithm with a
/// fixed number of steps.
fn gcd<const LIMBS: usize>(a: &Uint<LIMBS>, b: &Uint<LIMBS>, bits: u32) -> Secret<Uint<LIMBS>> {
    let (mut a, mut b) = (Secret::new(*a), Secret::new(*b));
    let mut spare = Secret::new(Uint::ZERO);
    // Each step removes a bit from one of them, while b stays odd.
    for _ in 0..2 * bits {
        let is_odd = a.is_odd();
        let is_less = is_odd & a.ct_lt(&b);
        *spare = *a;
        a.ct_assign(&b, is_less);
        b.ct_assign(&spare, is_less);
        *spare = a.wrapping_sub(&b);
        a.ct_assign(&spare, is_odd);
        halve(a.as_mut_limbs());
    }
    b
}

/// Whether `|p - q|` is above `2^(bits - 100)` (FIPS 186-5, appendix A.1.3, step 5.5).
fn are_far_apart<const LIMBS: usize>(p: &Uint<LIMBS>, q: &Uint<LIMBS>, bits: u32) -> Choice {
    let mut difference = Secret::new(p.wrapping_sub(q));
    let other = Secret::new(q.wrapping_sub(p));
    difference.ct_assign(&other, p.ct_lt(q));
    let least = Uint::<LIMBS>::ONE.wrapping_shl_vartime(bits - 100);
    least.ct_lt(&difference)
}

#[cfg(test)]
mod tests {
    use crypto_bigint::{U512, U1024};
    use num_bigint::BigUint;

    use super::*;

    fn boxed(number: &BigUint) -> BoxedUint {
        BoxedUint::from_be_slice(&number.to_bytes_be(), 512).unwrap()
    }

    /// The two largest 512-bit primes that are 3 modulo 4 are too close together; one from the
    /// middle is not. d agrees with num-bigint.
    #[test]
    fn private_exponents() {
        let largest: BigUint = (BigUint::from(1u8) << 512) - 569u32;
        let mut other: BigUint = (BigUint::from(13u8) << 508) + 3u8;
        let is_prime = |n: &BigUint| {
            [2u8, 3, 5]
                .iter()
                .all(|base| BigUint::from(*base).modpow(&(n - 1u8), n) == BigUint::from(1u8))
        };
        while !is_prime(&other) {
            other += 4u8;
        }
        let made = key(65_537, &boxed(&largest), &boxed(&other))
            .unwrap()
            .unwrap();
        let orders = [&largest, &other].map(|prime| prime - 1u8);
        let gcd = {
            let (mut a, mut b) = (orders[0].clone(), orders[1].clone());
            while b != BigUint::ZERO {
                (a, b) = (b.clone(), a % b);
            }
            a
        };
        let lcm = &orders[0] / gcd * &orders[1];
        let d = BigUint::from(65_537u32).modinv(&lcm).unwrap();
        assert_eq!(BigUint::from_bytes_be(made.d()), d);
        assert_eq!(BigUint::from_bytes_be(&made.key().n()), largest * other);
    }

    #[test]
    fn greatest_common_divisors() {
        for (a, b, expected) in [
            (1u32, 1u32, 1u32),
            (1, 99, 1),
            (105, 105, 105),
            (3 * 5 * 7, 5 * 7 * 11, 35),
            (u32::MAX, 65_537, 65_537),
            (65_537, u32::MAX, 65_537),
            (u32::MAX, u32::MAX - 2, 1),
        ] {
            assert_eq!(
                *gcd(&U512::from(a), &U512::from(b), 32),
                U512::from(expected)
            );
        }
        let all_ones = U512::MAX;
        assert_eq!(*gcd(&all_ones, &all_ones, 512), all_ones);
        // 2^512 - 1 is a multiple of 2^256 - 1.
        let half = all_ones.wrapping_shr_vartime(256);
        assert_eq!(*gcd(&all_ones, &half, 512), half);
        assert_eq!(*gcd(&half, &all_ones, 512), half);
    }

    #[test]
    fn primes_that_are_too_close() {
        let far = |p: &U1024, q: &U1024| {
            [are_far_apart(p, q, 512), are_far_apart(q, p, 512)].map(|far| far.to_bool())
        };
        let top = U512::MAX.resize::<{ U1024::LIMBS }>();
        let step = U1024::ONE.wrapping_shl_vartime(412);
        assert_eq!(far(&top, &top), [false; 2]);
        assert_eq!(far(&top, &top.wrapping_sub(&step)), [false; 2]);
        assert_eq!(
            far(&top, &top.wrapping_sub(&step).wrapping_sub(&U1024::ONE)),
            [true; 2]
        );
    }
}
