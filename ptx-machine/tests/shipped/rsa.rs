//! The RSA private operation: three launches, or five with blinding, as kernels/README.md describes them, with
//! everything secret but moduli and public exponents.

mod batch;
mod blinding;

use num_bigint::BigUint;

use batch::{Batch, Key, PUBLIC_EXPONENT, RsaEntries, one};

/// Numbers below the moduli of the keys in turn: their edges, and what is in between.
fn below_moduli(keys: &[Key], count: usize) -> Vec<BigUint> {
    let number = |i: usize| {
        let key = &keys[i % keys.len()];
        let n = key.n();
        match i / keys.len() {
            0 => &n - 1u32,
            1 => BigUint::ZERO,
            2 => one(),
            3 => &key.p * (&key.q - 1u32),
            4 => key.q.clone(),
            _ => BigUint::from(0x9e37_79b9_7f4a_7c15 + i as u64).pow(70) % n,
        }
    };
    (0..count).map(number).collect()
}

/// Both half exponentiations of full length moduli, with shortened exponents.
#[test]
fn half_exponentiations() {
    for class in &RsaEntries::all() {
        let keys = class.keys();
        for entry in &class.exp {
            let count = (entry.instances_per_block as usize / 2).min(24) + 1;
            let messages = below_moduli(&keys, count);
            let mut batch = Batch::new(class, &keys, count);
            let halves = batch.exp(entry, &messages, 35);
            let halves = batch.numbers(halves, class.prime_bits() as usize / 8);
            let mask = (one() << 35usize) - 1u32;
            for (i, message) in messages.iter().enumerate() {
                let Key { p, q, dp, dq } = &keys[i % keys.len()];
                let name = &entry.name;
                assert_eq!(
                    halves[2 * i],
                    message.modpow(&(dp & &mask), p),
                    "{name}, {i}"
                );
                assert_eq!(
                    halves[2 * i + 1],
                    message.modpow(&(dq & &mask), q),
                    "{name}, {i}"
                );
            }
        }
    }
}

/// From halves to signatures.
#[test]
fn recombination() {
    for class in &RsaEntries::all() {
        let (keys, count) = (class.keys(), 21);
        let signatures = below_moduli(&keys, count);
        let mut batch = Batch::new(class, &keys, count);
        let halves = signatures.iter().enumerate().flat_map(|(i, signature)| {
            let Key { p, q, .. } = &keys[i % keys.len()];
            [signature % p, signature % q]
        });
        let halves = batch.secrets(halves, class.prime_bits() as usize / 8);
        let out = batch.recombine(halves);
        assert!(batch.global.buffer(out).holds_secrets());
        let found = batch.numbers(out, class.bits as usize / 8);
        assert_eq!(found, signatures, "{}", class.bits);
    }
}

/// The whole operation with a key of 1024 bits, through both entry points of the first launch.
#[test]
fn whole_private_operations() {
    let class = &RsaEntries::of_1024_bits();
    let (key, d) = key_with_primes(class);
    let keys = [key];
    for entry in &class.exp {
        let messages = below_moduli(&keys, 12);
        let mut batch = Batch::new(class, &keys, messages.len());
        let halves = batch.exp(entry, &messages, class.prime_bits());
        let out = batch.recombine(halves);
        let signatures = batch.numbers(out, class.bits as usize / 8);
        for (i, message) in messages.iter().enumerate() {
            let expected = message.modpow(&d, &keys[0].n());
            assert_eq!(signatures[i], expected, "{}, {i}", entry.name);
        }
    }
}

/// A key whose exponents belong together, and its private exponent.
fn key_with_primes(class: &RsaEntries) -> (Key, BigUint) {
    let power = one() << class.prime_bits() as usize;
    let p = prime_below(&power - 1_000_000u32);
    let q = prime_below(power);
    let exponent = |order: BigUint| BigUint::from(PUBLIC_EXPONENT).modinv(&order).unwrap();
    let d = exponent((&p - 1u32) * (&q - 1u32));
    let key = Key {
        dp: exponent(&p - 1u32),
        dq: exponent(&q - 1u32),
        p,
        q,
    };
    (key, d)
}

/// The largest prime below `bound` that e has an inverse for, by Fermat's test with four bases.
fn prime_below(bound: BigUint) -> BigUint {
    let mut candidate = (bound - 2u32) | one();
    let passes = |n: &BigUint| {
        let to_one = |base: u32| BigUint::from(base).modpow(&(n - 1u32), n) == one();
        [2, 3, 5, 7].into_iter().all(to_one) && (n - 1u32) % PUBLIC_EXPONENT != BigUint::ZERO
    };
    while !passes(&candidate) {
        candidate -= 2u32;
    }
    candidate
}
