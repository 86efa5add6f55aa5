//! Freed blocks hold no primes of keys that were generated.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::{GeneratedKey, KeyGenerator};
use num_bigint::BigUint;
use rand_core::SeedableRng;

use super::freed::Watch;
use super::needles::Needle;

/// Generates a key, always the same one. With `leak`, copies of its primes remain.
fn generate(is_safe: bool, leak: bool) -> GeneratedKey {
    let mut rng = chacha20::ChaCha20Rng::seed_from_u64(11);
    let mut generator = KeyGenerator::new(Serial, 1024).unwrap();
    if is_safe {
        generator = generator.safe_primes();
    }
    let key = generator.generate(&mut rng, 1).unwrap().remove(0);
    if leak {
        drop(key.primes().map(|prime| prime.as_words().to_vec()));
    }
    key
}

#[test]
fn heap() {
    let watch = Watch::begin();
    for is_safe in [false, true] {
        let key = core::mem::ManuallyDrop::new(generate(is_safe, false));
        let [p, q] = key
            .primes()
            .map(|prime| BigUint::from_bytes_be(&prime.to_be_bytes()));
        let octets = |number: &BigUint| BigUint::from_bytes_le(&number.to_bytes_be());
        let needles = [
            Needle::new("p", &p),
            Needle::new("q", &q),
            Needle::new("octets of p", &octets(&p)),
            Needle::new("octets of q", &octets(&q)),
            Needle::new("R^2 mod p", &((BigUint::from(1u8) << 1024) % &p)),
            Needle::new("R^2 mod q", &((BigUint::from(1u8) << 1024) % &q)),
            Needle::new("half of p", &(&p >> 1u32)),
            Needle::new("half of q", &(&q >> 1u32)),
        ];
        let found = |leak| {
            watch.found_in_freed_blocks(&needles, || {
                core::mem::forget(generate(is_safe, leak));
            })
        };
        assert_eq!(found(false), [""; 0], "safe primes: {is_safe}");
        // A control.
        assert_eq!(found(true), ["p", "q"]);
    }
}
