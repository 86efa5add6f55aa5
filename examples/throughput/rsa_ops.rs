//! RSA on the GPUs: private operations as the backend computes them, and signatures as users get them.

use core::error::Error;
use core::time::Duration;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, PrivateOp, RsaPrivateOp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use crypto_bigint::BoxedUint;
use rsa::RsaPrivateKey;
use rsa::sha2::Sha256;
use rsa::traits::PublicKeyParts;

use super::{milliseconds, percentile};

pub(crate) fn measure(
    cuda: Cuda,
    bits: usize,
    batches: &[usize],
    seconds: f64,
) -> Result<(), Box<dyn Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(bits as u64);
    let private_key = RsaPrivateKey::new(&mut rng, bits)?;
    let key = KeyHandle::new(&private_key)?;
    let most = batches.iter().copied().max().unwrap_or(0);
    let width = private_key.n_params().bits_precision();
    let numbers: Vec<_> = (0..2 * most)
        .map(|_| number(&mut rng, bits, width))
        .collect();
    let messages: Vec<_> = (0..most as u64).map(u64::to_be_bytes).collect();

    println!("RSA-{bits}, one key");
    println!(
        "{:>34} {:>7} {:>5} {:>10} {:>10} {:>10}",
        "", "batch", "runs", "p50 ms", "p99 ms", "per second"
    );
    let signer = BatchSigner::new(&cuda, Pkcs1v15::<Sha256>::new());
    let unblinded = BatchSigner::new(&cuda, Pkcs1v15::<Sha256>::new()).blinding(false);
    for &batch in batches {
        for (name, is_blinded) in [
            ("private operation", false),
            ("private operation, blinded", true),
        ] {
            let ops: Vec<_> = numbers[..2 * batch]
                .chunks_exact(2)
                .map(|pair| PrivateOp::new(&key, &pair[0], is_blinded.then_some(&pair[1])))
                .collect();
            report(name, batch, seconds, || {
                let results = cuda.private_op(&ops)?;
                if results.iter().any(Result::is_err) {
                    return Err("a private operation failed its check".into());
                }
                Ok(())
            })?;
        }
        for (name, signer) in [("signature", &unblinded), ("signature, blinded", &signer)] {
            report(name, batch, seconds, || {
                let signatures = signer.sign(&mut rng, &key, &messages[..batch])?;
                if signatures.iter().any(Result::is_err) {
                    return Err("a signature failed its check".into());
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Below the modulus: its highest byte is zero.
fn number(rng: &mut ChaCha20Rng, bits: usize, width: u32) -> BoxedUint {
    let mut bytes = vec![0; bits.div_ceil(8) - 1];
    rng.fill_bytes(&mut bytes);
    BoxedUint::from_le_slice(&bytes, width).unwrap_or_else(|_| unreachable!("it is shorter"))
}

fn report(
    name: &str,
    batch: usize,
    seconds: f64,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    // Once without a look at the clock, to load kernels and allocate buffers.
    work()?;
    let mut times: Vec<Duration> = Vec::new();
    let started = Instant::now();
    while times.len() < 5 || (started.elapsed().as_secs_f64() < seconds && times.len() < 500) {
        let called = Instant::now();
        work()?;
        times.push(called.elapsed());
    }
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!(
        "{name:>34} {batch:>7} {:>5} {:>10.3} {:>10.3} {:>10.0}",
        times.len(),
        milliseconds(p50),
        milliseconds(p99),
        batch as f64 / p50.as_secs_f64()
    );
    Ok(())
}
