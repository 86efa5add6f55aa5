//! Computes a key from two primes.

use alloc::vec::Vec;

use batch_modexp_core::monty::{inverse, remainder_by_division};
use batch_modexp_core::secret::{Secret, reveal};
use batch_modexp_core::width::{WithLimbs, load_limbs, with_limbs};
use crypto_bigint::{BoxedUint, Choice, CtAssign, CtLt, Limb, Odd, U64, Uint, Word};

use super::export::GeneratedKey;
use super::gcd::gcd;
use crate::rsa::key::{KeyHandle, RsaComponents};
use crate::rsa::limbs::i2osp;
use crate::rsa::{Error, KeyFault};

/// Makes the key with the primes p and q, or `None` if they do not fit together. They do not if p - 1
/// or q - 1 is a multiple of a large factor of e, and else as rarely as a composite passes as a prime.
///
/// # Errors
///
/// Those of [`KeyHandle::from_components`], if a fault has changed the numbers.
pub(super) fn key(e: u32, primes: [Secret<BoxedUint>; 2]) -> Result<Option<GeneratedKey>, Error> {
    let [p, q] = &primes;
    let Some(Numbers { n, d }) = Numbers::new(e, p, q) else {
        return Ok(None);
    };
    let (n, d) = (i2osp(&n), i2osp(&d));
    let (p, q) = (i2osp(p.as_limbs()), i2osp(q.as_limbs()));
    let e = e.to_be_bytes();
    let components = RsaComponents::new(&n, &e, &d).primes(&p, &q);
    match KeyHandle::from_components(&components) {
        Ok(key) => Ok(Some(GeneratedKey { key, primes, d })),
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
        with_limbs(p.as_limbs().len(), Primes { e, p, q })
    }
}

impl WithLimbs for Primes<'_> {
    type Output = Option<Numbers>;

    fn run<const LIMBS: usize>(self) -> Option<Numbers> {
        let p = Secret::new(load_limbs::<LIMBS>(self.p.as_limbs()));
        let q = Secret::new(load_limbs::<LIMBS>(self.q.as_limbs()));
        if !reveal(are_far_apart(&p, &q, self.p.bits_precision())) {
            return None;
        }
        let limbs = 2 * self.p.as_limbs().len();
        let product = |a: &Uint<LIMBS>, b: &Uint<LIMBS>| {
            let (low, high) = a.widening_mul(b);
            let (low, high) = (Secret::new(low), Secret::new(high));
            let both = low.as_limbs().iter().chain(high.as_limbs());
            Secret::new(both.take(limbs).copied().collect::<Vec<_>>())
        };
        // p - 1 and q - 1 are even with odd halves, and so is their least common multiple.
        let (half_p, half_q) = (Secret::new(p.shr_vartime(1)), Secret::new(q.shr_vartime(1)));
        let divisor = gcd(
            half_p.as_limbs(),
            half_q.as_limbs(),
            self.p.bits_precision(),
        );
        let divisor = Secret::new(load_limbs::<LIMBS>(&divisor));
        // The half is a multiple of the divisor, so multiplying by its inverse modulo a power of
        // two divides.
        let inverse = divisor.invert_mod2k(Uint::<LIMBS>::BITS);
        let inverse = Secret::new(inverse.unwrap_or(Uint::ONE));
        let quotient = Secret::new(half_q.wrapping_mul(&inverse));
        let lcm = product(&Secret::new(p.wrapping_sub(&Uint::ONE)), &quotient);
        let factor = minus_inverse(&lcm, self.e)?;
        Some(Numbers {
            n: product(&p, &q),
            d: plus_one_divided(lcm, *factor, self.e),
        })
    }
}

/// `-1 / number mod e` for an odd e, or `None` if there is no inverse.
// On some targets a limb has 32 bits.
#[allow(clippy::unnecessary_cast)]
fn minus_inverse(number: &[Limb], e: u32) -> Option<Secret<u32>> {
    let modulus = Odd::new(U64::from(e)).expect("e is odd");
    let number = Secret::new(U64::from(
        remainder_by_division(number, &[Limb::from(e)])[0].0 as u64,
    ));
    let inverse = number.invert_odd_mod(&modulus);
    reveal(inverse.is_some()).then(|| {
        let inverse = Secret::new(u64::from(inverse.unwrap_or(U64::ZERO)));
        Secret::new(e - *inverse as u32)
    })
}

/// `(factor * number + 1) / e`, where the division leaves no remainder and the result is below the
/// number.
fn plus_one_divided(mut number: Secret<Vec<Limb>>, factor: u32, e: u32) -> Secret<Vec<Limb>> {
    let (factor, e) = (Secret::new(Limb::from(factor)), Limb::from(e));
    let inverse = Limb(inverse(u64::from(e)) as Word);
    // Limb by limb from the lowest: the quotient is that modulo a power of two.
    let (mut carry, mut taken, mut borrow) = (Limb::ONE, Limb::ZERO, Limb::ZERO);
    for limb in number.iter_mut() {
        let (product, rest);
        (product, carry) = factor.carrying_mul_add(*limb, Limb::ZERO, carry);
        (rest, borrow) = product.borrowing_sub(taken, borrow);
        *limb = rest.wrapping_mul(inverse);
        (_, taken) = limb.carrying_mul_add(e, Limb::ZERO, Limb::ZERO);
    }
    number
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
        let primes = [&largest, &other].map(|prime| Secret::new(boxed(prime)));
        let made = key(65_537, primes).unwrap().unwrap();
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
        assert_eq!(BigUint::from_bytes_be(&made.d), d);
        assert_eq!(BigUint::from_bytes_be(&made.key().n()), largest * other);
    }

    /// Numbers whose least common multiple is much smaller than their product, and numbers that e
    /// has a factor in common with. They need not be primes.
    #[test]
    fn common_factors() {
        let near_top = |factor: &BigUint, shift: u32| {
            let bound: BigUint = (BigUint::from(1u8) << 512) - (BigUint::from(1u8) << shift);
            // An odd multiple of the factor, twice that, plus 1.
            let odd: BigUint = (&bound / (factor * 4u8)) * 2u8 - 1u8;
            odd * factor * 2u8 + 1u8
        };
        let long: BigUint = (BigUint::from(1u8) << 300) - 153u8;
        for (factor, e) in [
            (BigUint::from(1u8), 65_537u32),
            (BigUint::from(105u8), 65_537),
            (BigUint::from(105u8), 0xffff_fffb),
            (long.clone(), 65_537),
            (long * 65_537u32, 65_537),
            (BigUint::from(3u8), 3 * 65_537),
        ] {
            let [p, q] = [511, 509].map(|shift| near_top(&factor, shift));
            let lcm = {
                let (p, q) = (&p - 1u8, &q - 1u8);
                let mut rest = (p.clone(), q.clone());
                while rest.1 != BigUint::ZERO {
                    rest = (rest.1.clone(), rest.0 % rest.1);
                }
                p / rest.0 * q
            };
            let expected = BigUint::from(e).modinv(&lcm);
            let numbers = Numbers::new(e, &boxed(&p), &boxed(&q));
            assert_eq!(numbers.is_some(), expected.is_some(), "{factor} {e}");
            let Some((numbers, expected)) = numbers.zip(expected) else {
                continue;
            };
            let big = |limbs: &[Limb]| {
                let limbs = limbs.iter().rev();
                limbs.fold(BigUint::ZERO, |sum, limb| (sum << Limb::BITS) + limb.0)
            };
            assert_eq!(big(&numbers.d), expected, "{factor} {e}");
            assert_eq!(big(&numbers.n), p * q);
        }
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
