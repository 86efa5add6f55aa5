//! Tests of the RSA private operation, whose launches kernels/README.md describes: three, or four
//! with blinding. Everything except moduli and public exponents is secret.

mod batch;
mod blinding;

use num_bigint::BigUint;

use batch::{Batch, Key, PUBLIC_EXPONENT, RsaEntries, one};

/// Numbers below the moduli of the keys in turn: extreme ones, and others.
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

/// Both half exponentiations with moduli of full length and shortened exponents.
#[test]
fn half_exponentiations() {
    for class in &RsaEntries::all() {
        let keys = class.keys();
        for entry in &class.exp {
            let count = (entry.instances_per_block as usize / 2).min(24) + 1;
            let bases = below_moduli(&keys, count);
            let mut batch = Batch::new(class, &keys, count);
            let bases_at = batch.secrets(bases.iter().cloned(), class.bits as usize / 8);
            let halves = batch.exp(entry, bases_at, 35);
            let halves = batch.numbers(halves, class.prime_bits() as usize / 8);
            let mask = (one() << 35usize) - 1u32;
            for (i, base) in bases.iter().enumerate() {
                let Key { p, q, exponents } = &keys[i % keys.len()];
                for (half, (exponent, prime)) in exponents.iter().zip([p, q]).enumerate() {
                    let expected = base.modpow(&(exponent & &mask), prime);
                    assert_eq!(halves[2 * i + half], expected, "{}, {i}", entry.name);
                }
            }
        }
    }
}

/// Recombination of halves and products with factors: all combinations of extreme values.
#[test]
fn recombination() {
    for class in &RsaEntries::all() {
        let (keys, count) = (class.keys(), 21);
        let (bytes, powers) = (class.bits as usize / 8, below_moduli(&keys, count));
        for turn in 0..3 {
            let mut factors = powers.clone();
            // Each number stays with its key.
            factors.rotate_left(turn * keys.len());
            let mut batch = Batch::new(class, &keys, count);
            let halves = powers.iter().enumerate().flat_map(|(i, power)| {
                let Key { p, q, .. } = &keys[i % keys.len()];
                [power % p, power % q]
            });
            let halves = batch.secrets(halves, class.prime_bits() as usize / 8);
            let factors_at = batch.secrets(factors.iter().cloned(), bytes);
            let out = batch.recombine(halves, factors_at);
            assert!(batch.global.buffer(out).holds_secrets());
            let found = batch.numbers(out, bytes);
            for (i, (power, factor)) in powers.iter().zip(&factors).enumerate() {
                let expected = power * factor % keys[i % keys.len()].n();
                assert_eq!(found[i], expected, "{}, {i}", class.bits);
            }
        }
    }
}

/// The whole operation with a key of 1024 bits, through both entry points of the first launch.
#[test]
fn whole_private_operations() {
    let class = &RsaEntries::of_1024_bits();
    let (key, d) = key_with_primes(class);
    let keys = [key];
    for entry in &class.exp {
        let (messages, bytes) = (below_moduli(&keys, 12), class.bits as usize / 8);
        let mut batch = Batch::new(class, &keys, messages.len());
        let messages_at = batch.secrets(messages.iter().cloned(), bytes);
        let halves = batch.exp(entry, messages_at, class.prime_bits());
        let out = batch.recombine(halves, messages_at);
        let signatures = batch.numbers(out, bytes);
        for (i, message) in messages.iter().enumerate() {
            let expected = message.modpow(&d, &keys[0].n());
            assert_eq!(signatures[i], expected, "{}, {i}", entry.name);
        }
    }
}

/// A key with prime p and q whose half exponents are those of d, less 1, and its private exponent
/// d.
fn key_with_primes(class: &RsaEntries) -> (Key, BigUint) {
    let power = one() << class.prime_bits() as usize;
    let p = prime_below(&power - 1_000_000u32);
    let q = prime_below(power);
    let exponent = |order: BigUint| BigUint::from(PUBLIC_EXPONENT).modinv(&order).unwrap();
    let d = exponent((&p - 1u32) * (&q - 1u32));
    let exponents = [&p, &q].map(|prime| exponent(prime - 1u32) - 1u32);
    let key = Key { p, q, exponents };
    (key, d)
}

/// The largest prime below `bound` for which e is invertible, by Fermat's test with four bases.
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
