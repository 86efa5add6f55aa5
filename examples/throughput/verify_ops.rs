//! Measures whole RSA verifications, from messages and signatures to verdicts.

use core::error::Error;
use std::time::Instant;

use batch_modexp::backend::{Auto, Cpu, Cuda, Kind};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{BatchSigner, BatchVerifier, KeyHandle, Pkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rsa::PrivateKey;
use rsa::sha2::Sha256;

use super::{milliseconds, percentile};

/// Measures and prints PKCS#1 v1.5 with SHA-256 and messages of 32 bytes.
pub(crate) fn measure(
    cuda: &Cuda,
    bits: usize,
    batches: &[usize],
    seconds: f64,
) -> Result<(), Box<dyn Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(bits as u64);
    let key = KeyHandle::new(&PrivateKey::new(&mut rng, bits)?)?;
    let public = key.public_key();
    let most = batches.iter().copied().max().unwrap_or(0);
    let mut messages = vec![[0; 32]; most];
    messages
        .iter_mut()
        .for_each(|message| rng.fill_bytes(message));
    let scheme = Pkcs1v15::<Sha256>::new();
    let signatures = BatchSigner::new(cuda, scheme).sign(&mut rng, &key, &messages)?;
    let signed: Result<Vec<_>, _> = messages
        .iter()
        .zip(&signatures)
        .map(|(message, signature)| Ok::<_, batch_modexp::rsa::Error>((message, signature?)))
        .collect();
    let signed = signed?;

    let threads = cuda.host_threads().try_into()?;
    let cpu = Cpu::with_threads(threads)?;
    let auto = Auto::with(Kind::GpuOrCpu, Some(threads))?;
    println!("RSA-{bits} verification, one key, {threads} threads");
    println!(
        "{:>6} {:>7} {:>5} {:>10} {:>10} {:>10}",
        "", "batch", "runs", "p50 ms", "p99 ms", "per second"
    );
    for &batch in batches {
        for (what, backend) in [
            ("cuda", cuda as &dyn RsaBackend),
            ("cpu", &cpu),
            ("auto", &auto),
        ] {
            let verifier = BatchVerifier::new(backend, scheme);
            let verify = || -> Result<_, Box<dyn Error>> {
                let called = Instant::now();
                verifier.verify(&public, &signed[..batch])?.all_valid()?;
                Ok(called.elapsed())
            };
            // Without timing, to load kernels and allocate buffers, and for `auto` to measure.
            for _ in 0..8 {
                verify()?;
            }
            let mut times = Vec::new();
            let started = Instant::now();
            while times.len() < 5
                || (started.elapsed().as_secs_f64() < seconds && times.len() < 500)
            {
                times.push(verify()?);
            }
            let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
            println!(
                "{what:>6} {batch:>7} {:>5} {:>10.3} {:>10.3} {:>10.0}",
                times.len(),
                milliseconds(p50),
                milliseconds(p99),
                batch as f64 / p50.as_secs_f64()
            );
        }
    }
    Ok(())
}
