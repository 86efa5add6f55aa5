//! Measures modular exponentiation on the GPUs of this machine, for widths, batch sizes and
//! windows. Times kernels alone, by the device's clock, and whole calls between host memory.
//!
//! ```text
//! cargo run --release --example throughput -- --bits 1024,2048 --csv throughput.csv
//! cargo run --release --example throughput -- --full --csv kernels.csv
//! cargo run --release --example throughput -- --bits 1024 --secrets
//! cargo run --release --example throughput -- --tune calibration.txt
//! cargo run --release --example throughput -- --rsa 2048
//! cargo run --release --example throughput -- --verify 2048
//! CUDA_DEVICE_MAX_CONNECTIONS=32 cargo run --release --example throughput -- --rsa 2048 --load 0.5,0.9 --batch 1584,2112,3168
//! ```

mod full_device;
mod load;
mod rsa_ops;
mod secrets;
mod tune;
mod verify_ops;
mod workload;

use core::error::Error;
use core::time::Duration;
use std::fs;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::cuda::Window;
use batch_modexp::backend::cuda::{DeviceInfo, EntryPoint, Tuning, entry_points, widths};
use clap::Parser;

use workload::{Exponents, Workload};

/// Throughput and latency of modular exponentiation on NVIDIA GPUs.
#[derive(Parser)]
struct Options {
    /// Widths of the moduli in bits, multiples of 64; the default is those that there are kernels
    /// for.
    #[arg(long, value_delimiter = ',', default_values_t = widths())]
    bits: Vec<u32>,
    /// Batch sizes.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 256, 1024, 4096, 16384, 65536])]
    batch: Vec<usize>,
    /// Windows in bits, 1 to 6; the default is what the backend chooses.
    #[arg(long, value_delimiter = ',')]
    window: Vec<u32>,
    /// Length of the exponents in bits; the default is the width.
    #[arg(long)]
    exponent_bits: Option<u32>,
    /// The devices; the default is all of them.
    #[arg(long, value_delimiter = ',')]
    device: Vec<usize>,
    /// Threads of the host; the default is one for each core.
    #[arg(long)]
    threads: Option<core::num::NonZeroUsize>,
    /// Seconds to spend on each measurement.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Measures the kernels alone instead, on one device, each of them with as many instances as
    /// fill it, exponents as long as the moduli and 256 moduli; the batch sizes are not looked at.
    #[arg(long, conflicts_with_all = ["rsa", "secrets", "batch", "exponent_bits"])]
    full: bool,
    /// Compares exponents of all zeros, all ones, one bit and random bits instead, to show that the
    /// kernel's time does not depend on them.
    #[arg(long, conflicts_with_all = ["rsa", "csv"])]
    secrets: bool,
    /// Calibrates instead: measures the kernels and the processor, prints predictions and the
    /// kernels chosen before and after for these batch sizes, and writes a calibration to this
    /// file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rsa", "secrets", "csv", "full", "window", "exponent_bits", "seconds"])]
    tune: Option<std::path::PathBuf>,
    /// Measures RSA with a fresh key of this many bits instead, with and without blinding: the
    /// kernels, whole signatures from message to octets, and the processor alone.
    #[arg(long)]
    rsa: Option<usize>,
    /// Measures RSA verification with a fresh key of this many bits instead, on the GPUs, the
    /// processor and both.
    #[arg(long, conflicts_with_all = ["rsa", "secrets", "csv", "full", "tune"])]
    verify: Option<usize>,
    /// With `--rsa`: measures how long signatures wait instead, when messages come evenly at these
    /// parts of the rate of large batches, and are signed in batches of the given sizes.
    #[arg(long, value_delimiter = ',', requires = "rsa", value_parser = part)]
    load: Vec<f64>,
    /// With `--load`: how many threads sign batches at a time.
    #[arg(long, default_value_t = 16, requires = "load", value_parser = clap::value_parser!(u16).range(1..=256))]
    callers: u16,
    /// Where to write the measurements as comma-separated values.
    #[arg(long)]
    csv: Option<std::path::PathBuf>,
}

/// One line of the table.
pub(crate) struct Row {
    bits: u32,
    batch: usize,
    family: &'static str,
    entry_point: &'static str,
    window: Option<u32>,
    exponent_bits: u32,
    runs: usize,
    kernel: Duration,
    p50: Duration,
    p99: Duration,
}

impl Row {
    fn kernel_per_second(&self) -> f64 {
        self.batch as f64 / self.kernel.as_secs_f64()
    }

    fn per_second(&self) -> f64 {
        self.batch as f64 / self.p50.as_secs_f64()
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(path) = &options.tune {
        return tune::run(|| open(&options), &options.bits, &options.batch, path);
    }
    let cuda = open(&options)?;
    for device in cuda.devices() {
        println!("{device}");
    }
    if options.secrets {
        return secrets::compare(&cuda, &options.bits, &options.batch);
    }

    if options.full {
        let table = full_device::measure(&cuda, &options.bits, &options.window, options.seconds)?;
        if let Some(path) = &options.csv {
            fs::write(path, table.csv())?;
        }
        return Ok(());
    }
    if let Some(bits) = options.verify {
        return verify_ops::measure(&cuda, bits, &options.batch, options.seconds);
    }
    if let (Some(bits), false) = (options.rsa, options.load.is_empty()) {
        let offer = load::OfferedLoad {
            bits,
            loads: &options.load,
            batches: &options.batch,
            callers: options.callers.into(),
            seconds: options.seconds,
        };
        let csv = load::measure(&cuda, &offer)?;
        if let Some(path) = &options.csv {
            fs::write(path, csv)?;
        }
        return Ok(());
    }
    if let Some(bits) = options.rsa {
        let table = rsa_ops::measure(&cuda, bits, &options.batch, options.seconds)?;
        if let Some(path) = &options.csv {
            fs::write(path, table.csv()?)?;
        }
        return Ok(());
    }

    println!(
        "{:>5} {:>7} {:>6} {:>16} {:>6} {:>5} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "bits",
        "batch",
        "family",
        "entry point",
        "window",
        "runs",
        "kernel ms",
        "kernel/s",
        "p50 ms",
        "p99 ms",
        "end to end/s"
    );
    let mut rows = Vec::new();
    let most = options.batch.iter().copied().max().unwrap_or(0);
    for &bits in &options.bits {
        let started = Instant::now();
        cuda.prepare(bits)?;
        println!(
            "# {bits} bits: kernels loaded in {:.2} s",
            started.elapsed().as_secs_f64()
        );
        let workload = Workload::new(bits, most, Exponents::Random);
        for &batch in &options.batch {
            for entry_point in entry_points(bits) {
                for window in windows(&options.window) {
                    let row = measure(&cuda, &workload, batch, entry_point, window, &options)?;
                    print(&row);
                    rows.push(row);
                }
            }
        }
    }
    if let Some(path) = &options.csv {
        fs::write(path, csv(&rows)?)?;
    }
    Ok(())
}

/// Parses a fraction above 0 and at most 1.
fn part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().map_err(|error| error.to_string())?;
    match part > 0.0 && part <= 1.0 {
        true => Ok(part),
        false => Err("must be above 0 and at most 1".to_owned()),
    }
}

/// Opens the requested devices.
fn open(options: &Options) -> Result<Cuda, Box<dyn Error>> {
    let mut cuda = match options.device.as_slice() {
        [_, _, ..] if options.full => return Err("--full measures one device".into()),
        [] if options.full => {
            let found = Cuda::probe()?;
            let first = found.iter().map(DeviceInfo::ordinal).take(1);
            Cuda::with_devices(&first.collect::<Vec<_>>())?
        }
        [] => Cuda::new()?,
        devices => Cuda::with_devices(devices)?,
    };
    if let Some(threads) = options.threads {
        cuda = cuda.with_host_threads(threads)?;
    }
    Ok(cuda)
}

/// The requested windows, or `None` for the backend's choice.
fn windows(asked: &[u32]) -> Vec<Option<Window>> {
    if asked.is_empty() {
        return vec![None];
    }
    asked
        .iter()
        .map(|&bits| Window::new(bits))
        .filter(Option::is_some)
        .collect()
}

fn measure(
    cuda: &Cuda,
    workload: &Workload,
    batch: usize,
    entry_point: &'static EntryPoint,
    window: Option<Window>,
    options: &Options,
) -> Result<Row, Box<dyn Error>> {
    let bits = workload.bits;
    let exponent_bits = options.exponent_bits.unwrap_or(bits).min(bits);
    let mut tuning = Tuning::default();
    tuning.entry_point = Some(entry_point);
    tuning.window = window;
    let mut single = tuning;
    single.single_launch = true;

    let batch_of = workload.batch(batch);
    let mut out = workload.zeros(batch);
    // Once without timing, to allocate the buffers.
    for tuning in [single, tuning] {
        cuda.batch_mod_exp_tuned(&batch_of, exponent_bits, &mut out, tuning)?;
    }
    let (mut kernel, mut calls) = (Vec::new(), Vec::new());
    let started = Instant::now();
    while kernel.len() < 3
        || (started.elapsed().as_secs_f64() < options.seconds && kernel.len() < 500)
    {
        cuda.take_timing();
        cuda.batch_mod_exp_tuned(&batch_of, exponent_bits, &mut out, single)?;
        kernel.push(cuda.take_timing().kernel);
        let called = Instant::now();
        cuda.batch_mod_exp_tuned(&batch_of, exponent_bits, &mut out, tuning)?;
        calls.push(called.elapsed());
    }
    Ok(Row {
        bits,
        batch,
        family: entry_point.family(),
        entry_point: entry_point.name(),
        window: window.map(Window::bits),
        exponent_bits,
        runs: kernel.len(),
        kernel: percentile(&mut kernel, 50),
        p50: percentile(&mut calls, 50),
        p99: percentile(&mut calls, 99),
    })
}

pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn window_name(window: Option<u32>) -> String {
    window.map_or("auto".to_owned(), |bits| bits.to_string())
}

fn print(row: &Row) {
    println!(
        "{:>5} {:>7} {:>6} {:>16} {:>6} {:>5} {:>12.3} {:>12.0} {:>12.3} {:>12.3} {:>12.0}",
        row.bits,
        row.batch,
        row.family,
        row.entry_point,
        window_name(row.window),
        row.runs,
        milliseconds(row.kernel),
        row.kernel_per_second(),
        milliseconds(row.p50),
        milliseconds(row.p99),
        row.per_second(),
    );
}

fn csv(rows: &[Row]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    writeln!(
        text,
        "bits,batch,family,entry_point,window,exponent_bits,runs,kernel_ms,kernel_per_s,p50_ms,p99_ms,end_to_end_per_s"
    )?;
    for row in rows {
        writeln!(
            text,
            "{},{},{},{},{},{},{},{:.4},{:.0},{:.4},{:.4},{:.0}",
            row.bits,
            row.batch,
            row.family,
            row.entry_point,
            window_name(row.window),
            row.exponent_bits,
            row.runs,
            milliseconds(row.kernel),
            row.kernel_per_second(),
            milliseconds(row.p50),
            milliseconds(row.p99),
            row.per_second(),
        )?;
    }
    Ok(text)
}
