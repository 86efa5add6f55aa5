//! Keys that are consistent but insecure.

use rsa::BoxedUint;

use super::components::Numbers;
use super::*;

fn one() -> BigUint {
    BigUint::from(1u8)
}

fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    match *b == BigUint::ZERO {
        true => a.clone(),
        false => gcd(b, &(a % b)),
    }
}

/// lcm(p - 1, q - 1)
fn lambda(numbers: &Numbers) -> BigUint {
    let (p_less_1, q_less_1) = (&numbers.p - 1u8, &numbers.q - 1u8);
    let gcd = gcd(&p_less_1, &q_less_1);
    p_less_1 * q_less_1 / gcd
}

/// The same primes with the private exponent `d` and its public exponent.
fn with_d(numbers: &Numbers, d: BigUint) -> Numbers {
    Numbers {
        e: d.modinv(&lambda(numbers)).unwrap(),
        dp: &d % (&numbers.p - 1u8),
        dq: &d % (&numbers.q - 1u8),
        d,
        ..numbers.clone()
    }
}

fn without_primes(n: &BigUint, e: &BigUint, d: &BigUint) -> Result<KeyHandle, Error> {
    let [n, e, d] = [n, e, d].map(BigUint::to_bytes_be);
    KeyHandle::from_components(&RsaComponents::new(&n, &e, &d))
}

#[track_caller]
fn is_refused(key: Result<KeyHandle, Error>, fault: KeyFault) {
    assert_eq!(key.unwrap_err(), Error::Key(fault));
}

/// The private operation would change nothing: a message would be its own signature.
#[test]
fn a_private_exponent_of_one_is_refused() {
    let sound = Numbers::of(&keys::rsa1024());
    let lambda = lambda(&sound);
    for d in [one(), &lambda + 1u8, &lambda * 2u8 + 1u8] {
        let mut numbers = with_d(&sound, d);
        assert_eq!(numbers.e, one());
        numbers.e = &lambda + 1u8;
        is_refused(numbers.import(), KeyFault::ShortPrivateExponent);
        let Numbers { n, e, d, .. } = &numbers;
        is_refused(without_primes(n, e, d), KeyFault::ShortPrivateExponent);
    }
}

/// Private exponents around the limit of FIPS 186-5, and the same plus a multiple of lambda; in
/// both orders of the primes.
#[test]
fn short_private_exponents_are_refused() {
    let sound = Numbers::of(&keys::rsa1024());
    let swapped = Numbers::new(sound.q.clone(), sound.p.clone(), 65537);
    let unequal = Numbers::unequal();
    for sound in [sound, swapped, unequal] {
        let lambda = lambda(&sound);
        let limit = one() << (sound.n.bits() / 2);
        let is_unit = |d: &BigUint| gcd(d, &lambda) == one();
        let above = (1u32..).map(|i| &limit + i).find(is_unit).unwrap();
        let below = (1u32..).map(|i| &limit - i).find(is_unit).unwrap();
        let short = (3u32..).map(BigUint::from).find(is_unit).unwrap();
        let numbers = with_d(&sound, above.clone());
        numbers.check(&numbers.import().unwrap());
        for d in [short, below] {
            is_refused(
                without_primes(&sound.n, &with_d(&sound, d.clone()).e, &d),
                KeyFault::ShortPrivateExponent,
            );
            for d in [d.clone(), &d + &lambda] {
                let numbers = with_d(&sound, d);
                is_refused(numbers.import(), KeyFault::ShortPrivateExponent);
            }
        }
        let numbers = with_d(&sound, above + lambda);
        numbers.check(&numbers.import().unwrap());
    }
}

/// Primes, their squares and cubes: d can be computed from n.
#[test]
fn powers_of_primes_are_refused() {
    let prime_of =
        |key: &PrivateKey| BigUint::from_bytes_be(&key.primes()[0].as_ref().to_be_bytes());
    let short = prime_of(&keys::rsa1024());
    let long = prime_of(&PrivateKey::from_pkcs1_pem(pem!("rsa2048")).unwrap());
    let e = BigUint::from(65537u32);
    for (prime, power) in [(&long, 1), (&short, 2), (&long, 2), (&short, 3), (&long, 3)] {
        let n = prime.pow(power);
        let phi = prime.pow(power - 1) * (prime - 1u8);
        let d = e.modinv(&phi).unwrap();
        is_refused(without_primes(&n, &e, &d), KeyFault::PrimePower);
    }
}

/// Where two is a square modulo both primes, its powers do not tell d from d + lambda / 2, which is
/// even and the inverse of nothing.
#[test]
fn even_private_exponents_are_refused() {
    let prime = |above: u32| (BigUint::from(3u8) << 510) + above;
    let numbers = Numbers::new(prime(5207), prime(5399), 65537);
    let Numbers { n, e, d, .. } = &numbers;
    numbers.check(&without_primes(n, e, d).unwrap());
    let lambda = lambda(&numbers);
    let even = (d + &lambda / 2u8) % lambda;
    assert!(!even.bit(0) && BigUint::from(2u8).modpow(&(e * &even), n) == BigUint::from(2u8));
    is_refused(without_primes(n, e, &even), KeyFault::Exponents);
}

/// Unusual but sound keys.
#[test]
fn unusual_keys_are_taken() {
    let key = PrivateKey::from_pkcs1_pem(pem!("rsa2048-e3")).unwrap();
    let [p, q] = [0, 1].map(|i| BigUint::from_bytes_be(&key.primes()[i].as_ref().to_be_bytes()));
    let numbers = Numbers::new(p, q, 3);
    numbers.check(&numbers.import().unwrap());
    let Numbers { n, e, d, .. } = &numbers;
    numbers.check(&without_primes(n, e, d).unwrap());
}

/// The `rsa` crate accepts such keys with its function for large public exponents.
#[test]
fn keys_of_the_rsa_crate_are_checked_too() {
    let sound = Numbers::of(&keys::rsa1024());
    let e = &lambda(&sound) + 1u8;
    let boxed = |number: &BigUint| BoxedUint::from_be_slice_vartime(&number.to_bytes_be());
    let [n, e, d, p, q] = [&sound.n, &e, &one(), &sound.p, &sound.q].map(boxed);
    let key = PrivateKey::from_components_with_large_exponent(n, e, d, vec![p, q]).unwrap();
    is_refused(KeyHandle::new(&key), KeyFault::ShortPrivateExponent);
}
