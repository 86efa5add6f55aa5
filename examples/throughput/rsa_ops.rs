//! RSA on the GPUs: times of kernels and of whole signatures.

use core::error::Error;
use core::time::Duration;
use std::io::Write as _;
use std::time::Instant;

use batch_modexp::backend::cuda::Timing;
use batch_modexp::backend::{Auto, Cpu, Cuda, Kind};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use rsa::PrivateKey;
use rsa::sha2::Sha256;

use super::{milliseconds, percentile};

/// Measurements with keys of one size.
pub(crate) struct Table {
    bits: usize,
    threads: usize,
    rows: Vec<Row>,
}

/// A line of the table.
struct Row {
    what: &'static str,
    devices: usize,
    batch: usize,
    runs: usize,
    p50: Duration,
    p99: Duration,
}

/// Measures and prints.
pub(crate) fn measure(
    cuda: &Cuda,
    bits: usize,
    batches: &[usize],
    seconds: f64,
) -> Result<Table, Box<dyn Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(bits as u64);
    let key = KeyHandle::new(&PrivateKey::new(&mut rng, bits)?)?;
    let most = batches.iter().copied().max().unwrap_or(0);
    let messages: Vec<_> = (0..most as u64).map(u64::to_be_bytes).collect();
    let devices = cuda.devices().count();
    let threads = cuda.host_threads();
    let cpu = Cpu::with_threads(threads.try_into()?)?;
    let auto = Auto::with(Kind::GpuOrCpu, Some(threads.try_into()?))?;

    println!("RSA-{bits}, one key, {devices} devices, {threads} threads");
    println!(
        "{:>26} {:>7} {:>5} {:>10} {:>10} {:>10}",
        "", "batch", "runs", "p50 ms", "p99 ms", "per second"
    );
    let mut rows = Vec::new();
    for &batch in batches {
        let messages = &messages[..batch];
        for (what, backend, blinding) in [
            ("kernels", cuda as &dyn RsaBackend, false),
            ("kernels, blinded", cuda, true),
            ("signatures", cuda, false),
            ("signatures, blinded", cuda, true),
            ("cpu", &cpu, false),
            ("cpu, blinded", &cpu, true),
            ("auto, blinded", &auto, true),
        ] {
            // The processor is too slow for the batch sizes of a GPU.
            if what.starts_with("cpu") && batch > 16_384 {
                continue;
            }
            let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            // `None` if chunks overlap on the device: the times of their kernels then do not give
            // the rate.
            let mut sign = || -> Result<Option<Duration>, Box<dyn Error>> {
                cuda.take_timing();
                let called = Instant::now();
                let signatures = signer.sign(&mut rng, &key, messages)?;
                let took = called.elapsed();
                if signatures.iter().any(|signature| signature.is_err()) {
                    return Err("a signature failed its check".into());
                }
                Ok(if what.starts_with("kernels") {
                    // The time of the kernels, by the devices' clocks. Overlapping chunks each count
                    // in full, so batches of one wave are the most accurate.
                    let Timing { kernel, chunks, .. } = cuda.take_timing();
                    let is_alone = (1..=devices as u32).contains(&chunks);
                    is_alone.then(|| kernel / chunks)
                } else {
                    Some(took)
                })
            };
            // Without timing, to load kernels and allocate buffers, and for `auto` to measure.
            for _ in 0..if what.starts_with("auto") { 8 } else { 1 } {
                sign()?;
            }
            let mut times: Vec<Duration> = Vec::new();
            let started = Instant::now();
            while times.len() < 5
                || (started.elapsed().as_secs_f64() < seconds && times.len() < 500)
            {
                match sign()? {
                    Some(time) => times.push(time),
                    None => break,
                }
            }
            if times.is_empty() {
                continue;
            }
            let row = Row {
                what,
                devices,
                batch,
                runs: times.len(),
                p50: percentile(&mut times, 50),
                p99: percentile(&mut times, 99),
            };
            row.print();
            rows.push(row);
        }
    }
    if let Some(count) = auto.rsa_break_even(&key) {
        println!("auto: GPUs from {count} signatures on");
    }
    Ok(Table {
        bits,
        threads,
        rows,
    })
}

impl Row {
    fn per_second(&self) -> f64 {
        self.batch as f64 / self.p50.as_secs_f64()
    }

    fn print(&self) {
        println!(
            "{:>26} {:>7} {:>5} {:>10.3} {:>10.3} {:>10.0}",
            self.what,
            self.batch,
            self.runs,
            milliseconds(self.p50),
            milliseconds(self.p99),
            self.per_second()
        );
    }
}

impl Table {
    /// Comma-separated values.
    pub(crate) fn csv(&self) -> std::io::Result<Vec<u8>> {
        let Self { bits, threads, .. } = self;
        let mut text = Vec::new();
        writeln!(
            text,
            "bits,threads,devices,what,batch,runs,p50_ms,p99_ms,per_s"
        )?;
        for row in &self.rows {
            writeln!(
                text,
                "{bits},{threads},{},\"{}\",{},{},{:.4},{:.4},{:.0}",
                row.devices,
                row.what,
                row.batch,
                row.runs,
                milliseconds(row.p50),
                milliseconds(row.p99),
                row.per_second()
            )?;
        }
        Ok(text)
    }
}
