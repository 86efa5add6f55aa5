//! Keys from their numbers.

use super::*;

/// The numbers of a key, which tests change.
#[derive(Clone)]
pub(super) struct Numbers {
    pub(super) n: BigUint,
    pub(super) e: BigUint,
    pub(super) d: BigUint,
    pub(super) p: BigUint,
    pub(super) q: BigUint,
    pub(super) dp: BigUint,
    pub(super) dq: BigUint,
    pub(super) qinv: BigUint,
}

impl Numbers {
    pub(super) fn new(p: BigUint, q: BigUint, e: u32) -> Self {
        let (p_less_1, q_less_1) = (&p - 1u8, &q - 1u8);
        let e = BigUint::from(e);
        let d = e.modinv(&(&p_less_1 * &q_less_1)).unwrap();
        Self {
            n: &p * &q,
            dp: &d % p_less_1,
            dq: &d % q_less_1,
            qinv: q.modinv(&p).unwrap(),
            e,
            d,
            p,
            q,
        }
    }

    pub(super) fn of(key: &PrivateKey) -> Self {
        let [p, q] =
            [0, 1].map(|i| BigUint::from_bytes_be(&key.primes()[i].as_ref().to_be_bytes()));
        Self::new(p, q, 65537)
    }

    /// With primes of 400 and 700 bits.
    pub(super) fn unequal() -> Self {
        let primes = include_str!("../../keys/unequal-primes.txt").lines();
        let primes = primes.map(|line| BigUint::parse_bytes(line.as_bytes(), 16).unwrap());
        let [p, q] = primes.collect::<Vec<_>>().try_into().unwrap();
        Self::new(p, q, 65537)
    }

    pub(super) fn import(&self) -> Result<KeyHandle, Error> {
        self.import_with(|components, octets| {
            components
                .primes(&octets[3], &octets[4])
                .dp(&octets[5])
                .dq(&octets[6])
                .qinv(&octets[7])
        })
    }

    fn import_with(
        &self,
        add: impl for<'a> Fn(RsaComponents<'a>, &'a [Vec<u8>; 8]) -> RsaComponents<'a>,
    ) -> Result<KeyHandle, Error> {
        let numbers = [
            &self.n, &self.e, &self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qinv,
        ];
        let octets = numbers.map(BigUint::to_bytes_be);
        let components = RsaComponents::new(&octets[0], &octets[1], &octets[2]);
        KeyHandle::from_components(&add(components, &octets))
    }

    /// Compares raw private operations of this key with num-bigint.
    pub(super) fn check(&self, handle: &KeyHandle) {
        let blocks = [
            BigUint::from(2u8),
            &self.n - 1u8,
            self.p.clone(),
            &self.n >> 1,
        ];
        let padded = |number: &BigUint| {
            let octets = number.to_bytes_be();
            [vec![0; handle.size() - octets.len()], octets].concat()
        };
        let batch: Vec<_> = blocks.iter().map(|block| (handle, padded(block))).collect();
        for mut rng in [None, Some(keys::rng())] {
            let results = rsasp1(&Auto::with_gpus().unwrap(), rng.as_mut(), &batch).unwrap();
            for (block, result) in blocks.iter().zip(&results) {
                assert_eq!(result.unwrap(), padded(&block.modpow(&self.d, &self.n)));
            }
        }
    }
}

#[test]
fn components_with_and_without_primes_and_crt_values() {
    let numbers = Numbers::of(&keys::rsa1024());
    numbers.check(&numbers.import().unwrap());
    let plain = numbers.import_with(|components, _| components).unwrap();
    assert!(!plain.has_crt());
    numbers.check(&plain);
    for given in 0..8 {
        let handle = numbers.import_with(|components, octets| {
            let mut components = components.primes(&octets[3], &octets[4]);
            if given & 1 != 0 {
                components = components.dp(&octets[5]);
            }
            if given & 2 != 0 {
                components = components.dq(&octets[6]);
            }
            if given & 4 != 0 {
                components = components.qinv(&octets[7]);
            }
            components
        });
        let handle = handle.unwrap();
        assert!(handle.has_crt());
        numbers.check(&handle);
    }
}

#[test]
fn leading_zeros_change_nothing() {
    let numbers = Numbers::of(&keys::rsa1024());
    let padded = |number: &BigUint| [vec![0; 200], number.to_bytes_be()].concat();
    let [n, e, d] = [&numbers.n, &numbers.e, &numbers.d].map(padded);
    let [p, q, dp] = [&numbers.p, &numbers.q, &numbers.dp].map(padded);
    let components = RsaComponents::new(&n, &e, &d).primes(&p, &q).dp(&dp);
    let handle = KeyHandle::from_components(&components).unwrap();
    assert_eq!(handle.e(), [1, 0, 1]);
    numbers.check(&handle);
}

/// Primes of 400 and 700 bits, in both orders.
#[test]
fn primes_of_different_lengths() {
    let sound = Numbers::unequal();
    let swapped = Numbers::new(sound.q.clone(), sound.p.clone(), 65537);
    for numbers in [sound, swapped] {
        let handle = numbers.import().unwrap();
        assert!(handle.has_crt());
        numbers.check(&handle);
    }
}

#[test]
fn the_smaller_prime_may_come_first() {
    let Numbers { p, q, .. } = Numbers::of(&keys::rsa1024());
    let swapped = Numbers::new(q, p, 65537);
    swapped.check(&swapped.import().unwrap());
}

/// A d modulo the least common multiple, or another one in the same class, is accepted.
#[test]
fn any_private_exponent_that_fits_is_taken() {
    let mut numbers = Numbers::of(&keys::rsa1024());
    let phi = (&numbers.p - 1u8) * (&numbers.q - 1u8);
    numbers.d = &numbers.d % (phi >> 1);
    numbers.check(&numbers.import().unwrap());
}

#[test]
fn every_relation_has_its_error() {
    let sound = Numbers::of(&keys::rsa1024());
    let one = || BigUint::from(1u8);
    type Change = fn(&mut Numbers);
    let changes: &[(KeyFault, Change)] = &[
        (KeyFault::EvenModulus, |k| k.n += 1u8),
        (KeyFault::PublicExponent, |k| k.e = 65536u32.into()),
        (KeyFault::PublicExponent, |k| k.e = 1u8.into()),
        (KeyFault::PublicExponent, |k| k.e = 0u8.into()),
        (KeyFault::PublicExponent, |k| k.e = k.n.clone()),
        (KeyFault::PublicExponent, |k| k.e = (&k.n << 512) + 1u8),
        (KeyFault::PrivateExponent, |k| k.d = 0u8.into()),
        (KeyFault::PrivateExponent, |k| k.d = k.n.clone()),
        (KeyFault::PrivateExponent, |k| k.d = &k.n << 64),
        (KeyFault::Exponents, |k| k.d += 1u8),
        (KeyFault::Exponents, |k| k.e += 2u8),
        (KeyFault::Factor, |k| k.p += 1u8),
        (KeyFault::Factor, |k| k.q = 0u8.into()),
        (KeyFault::Factor, |k| {
            k.p = 1u8.into();
            k.q = k.n.clone();
        }),
        (KeyFault::EqualFactors, |k| k.q = k.p.clone()),
        (KeyFault::EqualFactors, |k| {
            k.q = k.p.clone();
            k.n = &k.p * &k.p;
            k.d = 3u8.into();
        }),
        (KeyFault::Product, |k| k.p += 2u8),
        (KeyFault::Product, |k| k.q += 2u8),
        (KeyFault::Product, |k| k.n += 2u8),
        (KeyFault::Product, |k| k.p = &k.p << 1024),
        (KeyFault::Dp, |k| k.dp += 1u8),
        (KeyFault::Dp, |k| k.dp += &k.p - 1u8),
        (KeyFault::Dp, |k| k.dp = &k.dp << 1024),
        (KeyFault::Dq, |k| k.dq += 1u8),
        (KeyFault::Dq, |k| k.dq += &k.q - 1u8),
        (KeyFault::Qinv, |k| k.qinv += 1u8),
        (KeyFault::Qinv, |k| k.qinv += &k.p),
        (KeyFault::Qinv, |k| k.qinv = 0u8.into()),
    ];
    for (position, (expected, change)) in changes.iter().enumerate() {
        let mut numbers = sound.clone();
        change(&mut numbers);
        let error = numbers.import().unwrap_err();
        assert_eq!(error, Error::Key(*expected), "change {position}");
    }
    // The same without primes.
    let mut numbers = sound.clone();
    numbers.d += one();
    let error = numbers.import_with(|components, _| components).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Exponents));
    let mut numbers = sound;
    numbers.n += 2u8;
    let error = numbers.import_with(|components, _| components).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Exponents));
}
