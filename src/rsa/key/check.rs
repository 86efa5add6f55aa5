//! Reads the numbers of a key from octets, and checks their relations.
//!
//! Constant-time in d, p, q, dP, dQ and qInv: only sums, masks and comparisons over public widths, on
//! `Uint<LIMBS>`, and for a key without primes Montgomery powers. Only results, numbers that are
//! divided and such powers are secrets in heap memory. The verdicts become public.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::monty::{self, Modulus, ModulusRef, parts};
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use batch_modexp_core::width::{WithLimbs, load_limbs, with_limbs};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Choice, CtEq, CtLt, CtSelect, Gcd, Limb, Odd, Uint, UintRef};

use super::components::RsaComponents;
use super::fault::KeyFault;
use super::parts::PrivateParts;
use super::{Crt, KeyParts, Private, Restriction};
use crate::rsa::Error;
use crate::rsa::encryption::pkcs1_v15::hash_of_exponent;
use crate::rsa::limbs::os2ip;
use crate::rsa::{MAX_BITS, MIN_BITS};

/// Reads the numbers and makes all checks listed at [`KeyHandle`](super::KeyHandle). The key is not
/// sealed.
pub(super) fn check(
    components: &RsaComponents<'_>,
    restriction: Restriction,
) -> Result<KeyParts, Error> {
    let read = read_modulus(components.n, MAX_BITS);
    let (n, n_bits) = read.map_err(|bits| Error::KeySize { bits })?;
    let n = n.ok_or(Error::Key(KeyFault::EvenModulus))?;
    let e = public_exponent(components.e, &n).map_err(Error::Key)?;
    let width = n.bits_precision();
    // n is public.
    let params = BoxedMontyParams::new_vartime(n.clone());
    let mut d = number(components.d, width, KeyFault::PrivateExponent)?;
    let is_in_range = d.as_uint_ref().is_nonzero() & d.ct_lt(n.as_ref());
    require(is_in_range, KeyFault::PrivateExponent)?;
    let numbers = match components.primes {
        None => {
            if is_prime_power(&n) {
                return Err(Error::Key(KeyFault::PrimePower));
            }
            check_exponents(ModulusRef::of(params.as_ref()), &e, &d)?;
            // d modulo lcm(p - 1, q - 1) cannot be checked without the primes.
            require(
                !fits(d.as_limbs(), n_bits / 2),
                KeyFault::ShortPrivateExponent,
            )?;
            // d is odd.
            d.as_mut_limbs()[0].0 &= !1;
            Private::Plain { d_less_1: d }
        }
        Some([p, q]) => {
            let p = number(p, width, KeyFault::Product)?;
            let q = number(q, width, KeyFault::Product)?;
            let (limbs, prime_bits) = prime_size(&p, &q, n_bits);
            let read = |octets: Option<&[u8]>, fault| {
                octets
                    .map(|octets| number(octets, width, fault))
                    .transpose()
            };
            let relations = Relations {
                n: n.as_ref(),
                e: &e,
                d: &d,
                p: &p,
                q: &q,
                dp: read(components.dp, KeyFault::Dp)?,
                dq: read(components.dq, KeyFault::Dq)?,
                qinv: read(components.qinv, KeyFault::Qinv)?,
                n_bits,
                limbs,
                prime_bits,
            };
            Private::Crt(with_limbs(limbs, relations)?)
        }
    };
    Ok(KeyParts {
        n: params,
        n_bits,
        e,
        restriction,
        private: Some(PrivateParts {
            numbers,
            d_hash: hash_of_exponent(components.d, n_bits.div_ceil(8) as usize),
            seal: Secret::new([0; 32]),
        }),
    })
}

/// Reads a modulus of at most `max_bits` bits at its own width, with its length in bits; `None` if
/// it is even. The error is the length of a modulus that is too short or too long.
pub(super) fn read_modulus(
    octets: &[u8],
    max_bits: u32,
) -> Result<(Option<Odd<BoxedUint>>, u32), u32> {
    let octets = without_leading_zeros(octets);
    let bits = match octets {
        [] => 0,
        [first, rest @ ..] => u32::try_from(rest.len())
            .map_or(u32::MAX, |len| len.saturating_mul(8))
            .saturating_add(u8::BITS - first.leading_zeros()),
    };
    if !(MIN_BITS..=max_bits).contains(&bits) {
        return Err(bits);
    }
    let n = os2ip(octets, bits.next_multiple_of(Limb::BITS));
    Ok((n.into_odd().into_option(), bits))
}

/// Reads e, as wide as its value needs. Everything about it is public.
pub(super) fn public_exponent(octets: &[u8], n: &Odd<BoxedUint>) -> Result<BoxedUint, KeyFault> {
    let octets = without_leading_zeros(octets);
    let fault = KeyFault::PublicExponent;
    if octets.len() > n.as_ref().as_limbs().len() * Limb::BYTES {
        return Err(fault);
    }
    let bits = 8 * octets.len().max(1) as u32;
    let e = os2ip(octets, bits.next_multiple_of(Limb::BITS));
    match e.bit_vartime(0) && e != BoxedUint::one() && e < *n.as_ref() {
        true => Ok(e),
        false => Err(fault),
    }
}

fn without_leading_zeros(octets: &[u8]) -> &[u8] {
    let start = octets.iter().position(|&octet| octet != 0);
    &octets[start.unwrap_or(octets.len())..]
}

/// Reads a secret number of `width` bits; `fault` if it does not fit. The number of octets is
/// public, their values are not.
fn number(octets: &[u8], width: u32, fault: KeyFault) -> Result<Secret<BoxedUint>, Error> {
    let (high, low) = octets.split_at(octets.len().saturating_sub((width / 8) as usize));
    let high = high.iter().fold(0, |any, octet| any | octet);
    require(high.ct_eq(&0), fault)?;
    Ok(Secret::new(os2ip(low, width)))
}

/// The number of limbs for p and q, and a bound on their length in bits. The bound is half the
/// length of n, unless one of them is longer: then only its number of limbs becomes public.
fn prime_size(p: &BoxedUint, q: &BoxedUint, n_bits: u32) -> (usize, u32) {
    let half = n_bits.div_ceil(2);
    let fit = |bits| reveal(fits(p.as_limbs(), bits) & fits(q.as_limbs(), bits));
    let limbs = half.div_ceil(Limb::BITS);
    if fit(half) {
        return (limbs as usize, half);
    }
    let most = p.as_limbs().len() as u32;
    let limbs = (limbs..most).find(|limbs| fit(limbs * Limb::BITS));
    let limbs = limbs.unwrap_or(most);
    (limbs as usize, limbs * Limb::BITS)
}

/// Whether `value` is below `2^bits`.
fn fits(value: &[Limb], bits: u32) -> Choice {
    !bits.ct_lt(&UintRef::new(value).bit_width())
}

/// Makes a verdict public.
fn require(holds: Choice, fault: KeyFault) -> Result<(), Error> {
    if reveal(holds) {
        Ok(())
    } else {
        Err(Error::Key(fault))
    }
}

/// Whether the public n is a prime or a power of one. Then `2^n = 2` modulo the prime (Fermat's
/// little theorem), which rarely holds for a product of several primes.
fn is_prime_power(n: &Odd<BoxedUint>) -> bool {
    let two = os2ip(&[2], n.bits_precision());
    let params = BoxedMontyParams::new_vartime(n.clone());
    let power = BoxedMontyForm::new(two.clone(), &params).pow(n.as_ref());
    let difference = power.retrieve().sub_mod(&two, n.as_nz_ref());
    difference.gcd_vartime(n.as_ref()) != BoxedUint::one()
}

/// Checks the exponents of a key without primes, by powers of two. Also, d must be odd: `d e` is 1
/// modulo even numbers. Powers of two do not show that if two is a square modulo n.
fn check_exponents(n: ModulusRef<'_>, e: &BoxedUint, d: &BoxedUint) -> Result<(), Error> {
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * n.limbs.len()]);
    let [two, encrypted, back] = parts(&mut numbers);
    two[0] = Limb::from(2u8);
    scrubbed(|| {
        n.pow(two, e.as_limbs(), e.bit_width_vartime(), encrypted);
        n.pow(encrypted, d.as_limbs(), d.bits_precision(), back);
    });
    let is_odd = (d.as_limbs()[0] & Limb::ONE).ct_eq(&Limb::ONE);
    require(back.ct_eq(two) & is_odd, KeyFault::Exponents)?;
    // If `2^e` is 2, so is `2^d`, and the private operation changes nothing.
    require(!encrypted.ct_eq(two), KeyFault::ShortPrivateExponent)
}

/// The relations between the numbers of a key with two primes. d, p, q and the given CRT values are
/// as wide as n.
struct Relations<'a> {
    n: &'a BoxedUint,
    e: &'a BoxedUint,
    d: &'a BoxedUint,
    p: &'a BoxedUint,
    q: &'a BoxedUint,
    dp: Option<Secret<BoxedUint>>,
    dq: Option<Secret<BoxedUint>>,
    qinv: Option<Secret<BoxedUint>>,
    n_bits: u32,
    /// The number of limbs for p and q.
    limbs: usize,
    prime_bits: u32,
}

impl WithLimbs for Relations<'_> {
    type Output = Result<Crt, Error>;

    fn run<const LIMBS: usize>(self) -> Result<Crt, Error> {
        let low = |number: &BoxedUint| Secret::new(number.as_uint_ref().to_uint_resize::<LIMBS>());
        let (p, q) = (low(self.p), low(self.q));
        let is_odd_above_one = |prime: &Uint<LIMBS>| prime.is_odd() & !is_one(prime);
        require(
            is_odd_above_one(&p) & is_odd_above_one(&q),
            KeyFault::Factor,
        )?;
        require(!p.ct_eq(&*q), KeyFault::EqualFactors)?;
        let is_product = UintRef::new(&product(&p, &q)).ct_eq(self.n);
        require(is_product, KeyFault::Product)?;

        // Odd numbers above 1, less 1.
        let (p_less_1, q_less_1) = (less_1(&p), less_1(&q));
        let dp = remainder(self.d.as_limbs(), &p_less_1);
        let dq = remainder(self.d.as_limbs(), &q_less_1);
        let inverse_to_e = |half: &Uint<LIMBS>, modulus| {
            let e = remainder(self.e.as_limbs(), modulus);
            is_one(&remainder(&product(half, &e), modulus))
        };
        require(
            inverse_to_e(&dp, &p_less_1) & inverse_to_e(&dq, &q_less_1),
            KeyFault::Exponents,
        )?;
        let is_short = is_short(self.n_bits / 2, [&p, &q], [&dp, &dq]);
        require(!is_short, KeyFault::ShortPrivateExponent)?;
        let equals = |value: &Uint<LIMBS>, given: &Option<Secret<BoxedUint>>| match given {
            Some(given) => value.as_uint_ref().ct_eq(given.as_uint_ref()),
            None => Choice::TRUE,
        };
        require(equals(&dp, &self.dp), KeyFault::Dp)?;
        require(equals(&dq, &self.dq), KeyFault::Dq)?;

        let qinv = match &self.qinv {
            Some(qinv) => {
                let is_below_p = qinv.as_uint_ref().ct_lt(p.as_uint_ref());
                require(is_below_p, KeyFault::Qinv)?;
                low(qinv)
            }
            None => inverse(&q, &p),
        };
        let is_inverse = is_one(&remainder(&product(&qinv, &q), &p));
        require(is_inverse, KeyFault::Qinv)?;

        let boxed = |value: &Uint<LIMBS>| {
            let limbs = value.as_limbs()[..self.limbs].to_vec();
            Secret::new(BoxedUint::from(limbs))
        };
        Ok(Crt {
            p: Modulus::new(&p.as_limbs()[..self.limbs], 0),
            q: Modulus::new(&q.as_limbs()[..self.limbs], 0),
            // dP and dQ are odd, because e times each of them is 1 modulo an even number.
            dp_less_1: boxed(&less_1(&dp)),
            dq_less_1: boxed(&less_1(&dq)),
            qinv: boxed(&qinv),
            prime_bits: self.prime_bits,
        })
    }
}

/// `value mod modulus` for any modulus but 0, also an even one.
fn remainder<const LIMBS: usize>(value: &[Limb], modulus: &Uint<LIMBS>) -> Secret<Uint<LIMBS>> {
    Secret::new(load_limbs(&monty::remainder_by_division(
        value,
        modulus.as_limbs(),
    )))
}

/// `1 / value mod modulus` for an odd modulus; 0 if there is no inverse.
fn inverse<const LIMBS: usize>(value: &Uint<LIMBS>, modulus: &Uint<LIMBS>) -> Secret<Uint<LIMBS>> {
    let one = Odd::new(Uint::ONE).expect("an odd number");
    let modulus = Secret::new(Odd::new(*modulus).unwrap_or(one));
    Secret::new(value.invert_odd_mod(&modulus).unwrap_or(Uint::ZERO))
}

fn product<const LIMBS: usize>(a: &Uint<LIMBS>, b: &Uint<LIMBS>) -> Secret<Vec<Limb>> {
    let (low, high) = a.widening_mul(b);
    let (low, high) = (Secret::new(low), Secret::new(high));
    Secret::new([&low.as_limbs()[..], high.as_limbs()].concat())
}

/// Whether d modulo `lcm(p - 1, q - 1)` is below `2^bits`, half the length of n, given `dp = d mod
/// p - 1` and `dq = d mod q - 1` (FIPS 186-5, appendix A.1.1, criterion 3).
///
/// Let p be the larger prime, which is above `2^(bits - 1/2)`. Then a number below `2^bits` is dp
/// or `dp + p - 1`; and it is dq modulo q - 1.
fn is_short<const LIMBS: usize>(
    bits: u32,
    [p, q]: [&Uint<LIMBS>; 2],
    [dp, dq]: [&Uint<LIMBS>; 2],
) -> Choice {
    let q_is_larger = p.ct_lt(q);
    let select = |a: &Uint<LIMBS>, b| Secret::new(a.ct_select(b, q_is_larger));
    let (larger, smaller) = (less_1(&select(p, q)), less_1(&select(q, p)));
    let (d_larger, d_smaller) = (select(dp, dq), select(dq, dp));
    let (sum, carry) = d_larger.carrying_add(&larger, Limb::ZERO);
    let (sum, carry) = (Secret::new(sum), Secret::new(carry));
    let is_d = |number: &Uint<LIMBS>| {
        fits(number.as_limbs(), bits) & remainder(number.as_limbs(), &smaller).ct_eq(&*d_smaller)
    };
    is_d(&d_larger) | (is_d(&sum) & carry.ct_eq(&Limb::ZERO))
}

fn is_one<const LIMBS: usize>(value: &Uint<LIMBS>) -> Choice {
    value.ct_eq(&Uint::<LIMBS>::ONE)
}

fn less_1<const LIMBS: usize>(value: &Uint<LIMBS>) -> Secret<Uint<LIMBS>> {
    Secret::new(value.wrapping_sub(&Uint::ONE))
}
