//! Generation of RSA keys with two primes and e = 65537.

use std::hint::black_box;

use batch_modexp::rsa::KeyGenerator;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use openssl::rsa::Rsa;
use rsa::PrivateKey;

use crate::backends::Backend;
use crate::rounds::{Contender, Plan, compare as measure};

/// Measures how many keys of `bits` bits a second each library generates, ours `batch` in a call.
pub(crate) fn compare(
    bits: u32,
    batch: usize,
    backends: &[(&'static str, Box<dyn Backend>)],
    plan: Plan,
) {
    let mut contenders = Vec::new();
    for (name, backend) in backends {
        let generator = KeyGenerator::new(backend.rsa(), bits).expect("a supported size");
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        contenders.push(Contender::new(
            format!("batch-modexp {name}"),
            batch,
            move || {
                let keys = generator.generate(&mut rng, batch).expect("keys");
                assert!(keys.iter().all(|key| key.key().bits() == bits));
            },
        ));
    }
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    contenders.push(Contender::new("rsa", 1, move || {
        let key = PrivateKey::new(&mut rng, bits as usize);
        black_box(key.expect("a key"));
    }));
    contenders.push(Contender::new("OpenSSL", 1, move || {
        black_box(Rsa::generate(bits).expect("a key"));
    }));
    measure(&mut contenders, &["OpenSSL", "rsa"], plan);
}
