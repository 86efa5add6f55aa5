//! Keys from numbers, sound and unsound, compared with a num-bigint model of the import checks.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::Error;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{KeyFault, KeyHandle, RsaComponents};
use chacha20::ChaCha20Rng;
use crypto_bigint::Limb;
use num_bigint::BigUint;

use super::input::Input;
use super::keys::{keys, padded};

/// The numbers of a private key (RFC 8017, section 3.2).
#[derive(Clone)]
pub struct Numbers {
    pub n: BigUint,
    pub e: BigUint,
    pub d: BigUint,
    pub primes: Option<[BigUint; 2]>,
    pub dp: Option<BigUint>,
    pub dq: Option<BigUint>,
    pub qinv: Option<BigUint>,
}

/// Returns the fault of the key.
pub fn run(data: &[u8]) -> Option<Error> {
    let mut input = Input::new(data);
    let numbers = read(&mut input);
    let zeros = input.below(4);
    let octets = |number: &BigUint| [vec![0; zeros], number.to_bytes_be()].concat();
    let [n, e, d] = [&numbers.n, &numbers.e, &numbers.d].map(octets);
    let primes = numbers
        .primes
        .as_ref()
        .map(|primes| primes.each_ref().map(octets));
    let [dp, dq, qinv] =
        [&numbers.dp, &numbers.dq, &numbers.qinv].map(|number| number.as_ref().map(octets));
    let mut components = RsaComponents::new(&n, &e, &d);
    if let Some([p, q]) = &primes {
        components = components.primes(p, q);
    }
    if let Some(dp) = &dp {
        components = components.dp(dp);
    }
    if let Some(dq) = &dq {
        components = components.dq(dq);
    }
    if let Some(qinv) = &qinv {
        components = components.qinv(qinv);
    }
    let handle = KeyHandle::from_components(&components);
    let expected = numbers.verdict();
    assert_eq!(handle.as_ref().err(), expected.as_ref().err());
    if let Ok(handle) = handle {
        assert_eq!(handle.has_crt(), numbers.primes.is_some());
        check_use(&handle, &numbers.n, &numbers.e);
    }
    expected.err()
}

/// Checks that the public half of a key is (n, e), and that its private operations are right or
/// fail. Failure depends on whether the factors are prime, which this code does not know.
pub fn check_use(handle: &KeyHandle, n: &BigUint, e: &BigUint) {
    assert_eq!(u64::from(handle.bits()), n.bits());
    assert_eq!(BigUint::from_bytes_be(&handle.n()), *n);
    assert_eq!(handle.e(), e.to_bytes_be());
    let block = padded(&(n >> 1), handle.size());
    let results = rsasp1(&Serial, None::<&mut ChaCha20Rng>, &[(handle, &block)]).unwrap();
    match results.get(0) {
        Ok(power) => {
            let power = BigUint::from_bytes_be(power);
            assert!(power < *n && power.modpow(e, n) == n >> 1);
        }
        Err(error) => assert_eq!(error, Error::Fault { index: 0 }),
    }
}

impl Numbers {
    /// The expected verdict of an import: the first fault in the order of the checks.
    pub fn verdict(&self) -> Result<(), Error> {
        let (n, e, d) = (&self.n, &self.e, &self.d);
        let (zero, one) = (&BigUint::ZERO, &BigUint::from(1u8));
        let require = |holds, fault| {
            if holds {
                Ok(())
            } else {
                Err(Error::Key(fault))
            }
        };
        let bits = u32::try_from(n.bits()).unwrap();
        if !(1024..=8192).contains(&bits) {
            return Err(Error::KeySize { bits });
        }
        require(n.bit(0), KeyFault::EvenModulus)?;
        require(e.bit(0) && e > one && e < n, KeyFault::PublicExponent)?;
        require(d > zero && d < n, KeyFault::PrivateExponent)?;
        let Some([p, q]) = &self.primes else {
            let two = BigUint::from(2u8);
            let difference = two.modpow(n, n) + n - &two;
            require(difference.modinv(n).is_some(), KeyFault::PrimePower)?;
            let encrypted = two.modpow(e, n);
            let is_inverse = d.bit(0) && encrypted.modpow(d, n) == two;
            require(is_inverse, KeyFault::Exponents)?;
            let is_short = encrypted == two || d.bits() <= n.bits() / 2;
            return require(!is_short, KeyFault::ShortPrivateExponent);
        };
        // Numbers wider than the limbs of n are refused first.
        let width = u64::from(bits.next_multiple_of(Limb::BITS));
        let fits = |number: &BigUint| number.bits() <= width;
        let given_fits = |given: &Option<BigUint>| given.as_ref().is_none_or(fits);
        require(fits(p) && fits(q), KeyFault::Product)?;
        require(given_fits(&self.dp), KeyFault::Dp)?;
        require(given_fits(&self.dq), KeyFault::Dq)?;
        require(given_fits(&self.qinv), KeyFault::Qinv)?;

        let is_factor = |factor: &BigUint| factor.bit(0) && factor > one;
        require(is_factor(p) && is_factor(q), KeyFault::Factor)?;
        require(p != q, KeyFault::EqualFactors)?;
        require(p * q == *n, KeyFault::Product)?;
        let (p_less_1, q_less_1) = (p - 1u8, q - 1u8);
        let is_inverse = |order: &BigUint| (d * e) % order == one % order;
        require(
            is_inverse(&p_less_1) && is_inverse(&q_less_1),
            KeyFault::Exponents,
        )?;
        let shortest = d % (&p_less_1 * &q_less_1 / gcd(&p_less_1, &q_less_1));
        require(
            shortest.bits() > n.bits() / 2,
            KeyFault::ShortPrivateExponent,
        )?;
        let equals = |given: &Option<BigUint>, value| given.as_ref().is_none_or(|x| *x == value);
        require(equals(&self.dp, d % p_less_1), KeyFault::Dp)?;
        require(equals(&self.dq, d % q_less_1), KeyFault::Dq)?;
        let inverse = q.modinv(p);
        require(
            inverse.is_some_and(|inverse| equals(&self.qinv, inverse)),
            KeyFault::Qinv,
        )
    }
}

/// Euclid's algorithm.
fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// A sound key with changes, or unrelated numbers.
fn read(input: &mut Input<'_>) -> Numbers {
    let kind = input.octet();
    let mut numbers = match kind & 7 {
        0 => made_up(input),
        1 => unequal_primes(),
        _ => {
            let key = &keys()[usize::from(kind >> 3) % 2];
            Numbers::new(&key.primes[0], &key.primes[1], &key.e)
        }
    };
    for _ in 0..input.below(5) {
        change(&mut numbers, input);
    }
    numbers
}

fn made_up(input: &mut Input<'_>) -> Numbers {
    let words = [8, 16, 17, 32, 128, 129][input.below(6)];
    let mut number = |words| input.number(words);
    let (mut p, mut q) = (number(words / 2), number(words / 2));
    p.set_bit(0, true);
    q.set_bit(0, true);
    Numbers {
        n: &p * &q,
        e: number(1),
        d: number(words),
        primes: Some([p, q]),
        dp: Some(number(words / 2)),
        dq: Some(number(words / 2)),
        qinv: Some(number(words / 2)),
    }
}

/// Primes of 400 and 700 bits.
fn unequal_primes() -> Numbers {
    let mut primes = include_str!("../../keys/unequal-primes.txt")
        .lines()
        .map(|line| BigUint::parse_bytes(line.as_bytes(), 16).unwrap());
    let (p, q) = (primes.next().unwrap(), primes.next().unwrap());
    Numbers::new(&p, &q, &65537u32.into())
}

impl Numbers {
    fn new(p: &BigUint, q: &BigUint, e: &BigUint) -> Self {
        let (p_less_1, q_less_1) = (p - 1u8, q - 1u8);
        let d = e.modinv(&(&p_less_1 * &q_less_1)).unwrap();
        Self {
            n: p * q,
            e: e.clone(),
            dp: Some(&d % p_less_1),
            dq: Some(&d % q_less_1),
            qinv: q.modinv(p),
            primes: Some([p.clone(), q.clone()]),
            d,
        }
    }
}

fn change(numbers: &mut Numbers, input: &mut Input<'_>) {
    let (field, kind, amount) = (input.octet(), input.octet(), input.octet());
    match field {
        0xf0..=0xf7 => return numbers.primes = None,
        0xf8 => return numbers.dp = None,
        0xf9 => return numbers.dq = None,
        0xfa => return numbers.qinv = None,
        0xfb => {
            // Swaps the primes, and adapts the dependent numbers.
            if let Some([p, q]) = &mut numbers.primes {
                std::mem::swap(p, q);
                // An earlier change may have made it zero.
                numbers.qinv = (*p > BigUint::ZERO).then(|| q.modinv(p)).flatten();
                std::mem::swap(&mut numbers.dp, &mut numbers.dq);
            }
            return;
        }
        0xfc => {
            // The shortest private exponent.
            let one = BigUint::from(1u8);
            if let Some([p, q]) = numbers.primes.clone().filter(|[p, q]| p.bit(0) && q.bit(0)) {
                numbers.e = (p - 1u8) * (q - 1u8) + 1u8;
                numbers.d = one.clone();
                (numbers.dp, numbers.dq) = (Some(one.clone()), Some(one));
            }
            return;
        }
        0xfd => {
            // The square of a prime.
            if let Some([p, _]) = numbers.primes.take() {
                numbers.n = &p * &p;
            }
            return;
        }
        _ => {}
    }
    let sum = [&numbers.n, &numbers.e, &numbers.d];
    let other = match (kind >> 4, &numbers.primes) {
        (index @ 0..3, _) => sum[usize::from(index)].clone(),
        (3, Some([p, _])) => p - BigUint::from(1u8).min(p.clone()),
        (4, Some([_, q])) => q - BigUint::from(1u8).min(q.clone()),
        (5, Some([p, _])) => p.clone(),
        (6, Some([_, q])) => q.clone(),
        _ => BigUint::from(1u8) << amount,
    };
    let (zero, one) = (BigUint::ZERO, BigUint::from(1u8));
    let to = match field % 8 {
        0 => Some(&mut numbers.n),
        1 => Some(&mut numbers.e),
        2 => Some(&mut numbers.d),
        3 => numbers.primes.as_mut().map(|[p, _]| p),
        4 => numbers.primes.as_mut().map(|[_, q]| q),
        5 => numbers.dp.as_mut(),
        6 => numbers.dq.as_mut(),
        _ => numbers.qinv.as_mut(),
    };
    let Some(to) = to else { return };
    *to = match kind & 15 {
        0 => zero,
        1 => one,
        2 => &*to + amount,
        3 => &*to - BigUint::from(amount).min(to.clone()),
        4 => &*to + other,
        5 => &*to - other.clone().min(to.clone()),
        6 => other,
        7 => &*to << amount,
        8 => &*to >> amount,
        9 => &*to * amount,
        // Reduced modulo another number, if that is not zero.
        10 if other > BigUint::ZERO => &*to % other,
        11 => input.number(1 + usize::from(amount) % 20),
        12 => &*to ^ (one << amount),
        _ => BigUint::from_bytes_be(input.octets(usize::from(amount) + 1)),
    };
    // Longer numbers would only be slow.
    if to.bits() > 9000 {
        *to >>= to.bits() - 9000;
    }
}
