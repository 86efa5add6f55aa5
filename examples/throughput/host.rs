//! The host's part of signing on a device, measured with a device that answers at once: what is left is to open lanes
//! (hash, encode, draw random numbers) and to deliver the candidates (check, octets).

use core::error::Error;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, PrivateOps, RsaPrivateOp};
use batch_modexp::{BatchModExp, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::{BoxedUint, Limb};
use rayon::prelude::*;
use rsa::PrivateKey;
use rsa::sha2::Sha256;

use super::{milliseconds, percentile};

/// Measures and prints the host's part of signing with a fresh key of `bits` bits: needs no GPU, but computes the answers
/// on one where there is one.
pub(crate) fn measure(
    bits: usize,
    batches: &[usize],
    threads: Option<core::num::NonZeroUsize>,
    seconds: f64,
) -> Result<(), Box<dyn Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(bits as u64);
    let key = KeyHandle::new(&PrivateKey::new(&mut rng, bits)?)?;
    let most = batches.iter().copied().max().unwrap_or(0);
    let messages: Vec<_> = (0..most as u64).map(u64::to_be_bytes).collect();
    let auto = Auto::with(Kind::GpuOrCpu, threads)?;
    let threads = threads.map_or_else(std::thread::available_parallelism, Ok)?;

    println!("RSA-{bits}, one key, the host's part alone, {threads} threads");
    println!(
        "open, deliver: microseconds of a thread a signature; rest: milliseconds a batch on the calling thread"
    );
    println!(
        "{:>7} {:>9} {:>5} {:>10} {:>11} {:>7} {:>8} {:>7}",
        "batch", "blinded", "runs", "p50 ms", "per second", "open", "deliver", "rest"
    );
    for &batch in batches {
        let messages = &messages[..batch];
        let answers = Answers::of(&auto, threads.get(), &mut rng, &key, messages)?;
        for blinding in [false, true] {
            let signer = BatchSigner::new(&answers, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            let mut sign = || -> Result<Duration, Box<dyn Error>> {
                let called = Instant::now();
                let signatures = signer.sign(&mut rng, &key, messages)?;
                let took = called.elapsed();
                match signatures.iter().any(Result::is_err) {
                    true => Err("a signature failed its check".into()),
                    false => Ok(took),
                }
            };
            sign()?;
            answers.take();
            let mut times: Vec<Duration> = Vec::new();
            let started = Instant::now();
            while times.len() < 5
                || (started.elapsed().as_secs_f64() < seconds && times.len() < 500)
            {
                times.push(sign()?);
            }
            let runs = times.len();
            let stages = answers.take();
            let whole: Duration = times.iter().sum();
            let each = |spent: Duration| spent.as_secs_f64() * 1e6 / (runs * batch) as f64;
            let p50 = percentile(&mut times, 50);
            println!(
                "{:>7} {:>9} {:>5} {:>10.3} {:>11.0} {:>7.2} {:>8.2} {:>7.2}",
                batch,
                blinding,
                runs,
                milliseconds(p50),
                batch as f64 / p50.as_secs_f64(),
                each(stages.opening),
                each(stages.delivering),
                milliseconds(whole.saturating_sub(stages.pool)) / runs as f64,
            );
        }
    }
    Ok(())
}

/// A device that has been told the answers.
pub(crate) struct Answers {
    /// Those of a batch of one key, in order.
    candidates: Vec<Limb>,
    threads: rayon::ThreadPool,
    spent: Spent,
}

/// Nanoseconds that threads spent, summed up, and those of the whole pool from its first thread to its last.
#[derive(Default)]
struct Spent {
    opening: AtomicU64,
    delivering: AtomicU64,
    pool: AtomicU64,
}

/// Where the time of a batch went.
struct Stages {
    opening: Duration,
    delivering: Duration,
    pool: Duration,
}

impl Answers {
    /// Those of `backend`, to be given on `threads` threads.
    pub(crate) fn of(
        backend: &dyn RsaPrivateOp,
        threads: usize,
        rng: &mut ChaCha20Rng,
        key: &KeyHandle,
        messages: &[[u8; 8]],
    ) -> Result<Self, Box<dyn Error>> {
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
        let mut candidates = Vec::new();
        for signature in signer.sign(rng, key, messages)? {
            let width = (key.bits()).next_multiple_of(Limb::BITS);
            let number = BoxedUint::from_be_slice(signature?.as_ref(), width);
            candidates.extend_from_slice(number.map_err(|_| "it is as wide as n")?.as_limbs());
        }
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads);
        Ok(Self {
            candidates,
            threads: threads.build()?,
            spent: Spent::default(),
        })
    }

    /// What the threads did since the last call, summed over all of them; and how long the pool was at it.
    fn take(&self) -> Stages {
        let take = |spent: &AtomicU64| Duration::from_nanos(spent.swap(0, Ordering::Relaxed));
        Stages {
            opening: take(&self.spent.opening),
            delivering: take(&self.spent.delivering),
            pool: take(&self.spent.pool),
        }
    }
}

/// Runs `f` and adds the time that it takes.
fn timed<R>(spent: &AtomicU64, f: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let result = f();
    let took = started.elapsed().as_nanos() as u64;
    spent.fetch_add(took, Ordering::Relaxed);
    result
}

impl RsaPrivateOp for Answers {
    /// In parts, one for each thread and 32,768 lanes. Those of devices' chunks are shorter.
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), batch_modexp::rsa::Error> {
        const CHUNK: usize = 32_768;
        let limbs = self.candidates.len() / ops.len().max(1);
        let len = ops.len().min(CHUNK);
        let len = len.div_ceil(self.threads.current_num_threads());
        let len = len.max(16).next_multiple_of(8);
        let parts: Vec<_> = ops
            .chunks(len)
            .zip(self.candidates.chunks(len * limbs))
            .collect();
        let answer = |(ops, answers): (PrivateOps<'_>, &[Limb])| {
            let chunk = timed(&self.spent.opening, || ops.open())?;
            timed(&self.spent.delivering, || chunk.deliver(answers))
        };
        let on_all = || parts.into_par_iter().try_for_each(answer);
        timed(&self.spent.pool, || self.threads.install(on_all))
    }
}

impl BatchModExp<BoxedUint> for Answers {
    type Error = batch_modexp::Error;

    fn batch_mod_exp(
        &self,
        _: &[ModExp<'_, BoxedUint>],
        _: u32,
        _: &mut [BoxedUint],
    ) -> Result<(), Self::Error> {
        unreachable!("nobody asks for an exponentiation")
    }
}
