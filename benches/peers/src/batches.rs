//! Signatures in small and in large batches, on our fastest backend.

use std::hint::black_box;

use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use rsa::sha2::{Digest, Sha256};

use crate::backends::Backend;
use crate::keys::private_key;
use crate::rounds::{Contender, Plan, compare as measure};

/// The compared batch sizes; the last one is compared with all others.
const SIZES: [usize; 8] = [1, 2, 4, 8, 16, 64, 512, 4096];

/// Measures signing with a key of `bits` bits in batches of several sizes, blinded and unblinded.
/// Uses the last of `backends`, the fastest of one core.
///
/// # Panics
///
/// If there is no backend.
pub(crate) fn compare(bits: u32, backends: &[(&'static str, Box<dyn Backend>)], plan: Plan) {
    let (name, backend) = backends.last().expect("a backend");
    let key = KeyHandle::new(&private_key(bits)).expect("a supported key");
    let messages: Vec<[u8; 32]> = (0..SIZES[SIZES.len() - 1])
        .map(|i| Sha256::digest(i.to_be_bytes()).into())
        .collect();
    for (kind, blinding) in [("blinded", true), ("unblinded", false)] {
        println!("\n### {name}, {kind}\n");
        let signer = BatchSigner::new(backend.rsa(), Pkcs1v15::<Sha256>::new()).blinding(blinding);
        let mut contenders: Vec<_> = SIZES
            .iter()
            .map(|&size| {
                let (signer, key, messages) = (&signer, &key, &messages[..size]);
                let mut rng = ChaCha20Rng::seed_from_u64(0);
                Contender::new(label(size), size, move || {
                    let signatures = signer.sign(&mut rng, key, black_box(messages));
                    let signatures = black_box(signatures.expect("signatures"));
                    assert!(signatures.iter().all(|signature| signature.is_ok()));
                })
            })
            .collect();
        measure(&mut contenders, &[&label(SIZES[SIZES.len() - 1])], plan);
    }
}

fn label(size: usize) -> String {
    format!("batches of {size}")
}
