//! Measures the kernels alone, with the same operands and batches that fill a device.

use core::error::Error;
use core::fmt::Write as _;
use core::time::Duration;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::cuda::Window;
use batch_modexp::backend::cuda::{EntryPoint, Tuning, entry_points};

use super::workload::{Exponents, Workload};
use super::{milliseconds, percentile, window_name, windows};

/// Thread blocks for each multiprocessor. Whole rounds, if 1, 2, 3, 4 or 6 of them fit at a time.
const BLOCKS: usize = 12;

/// More moduli take the host longer, but not the kernels.
const MODULI: usize = 256;

/// The time of a kernel for a batch.
struct Rate {
    bits: u32,
    entry_point: &'static EntryPoint,
    instances: usize,
    window: Option<Window>,
    runs: usize,
    kernel: Duration,
}

impl Rate {
    fn per_second(&self) -> f64 {
        self.instances as f64 / self.kernel.as_secs_f64()
    }
}

/// The rates of all kernels.
pub(crate) struct Table(Vec<Rate>);

/// Measures every kernel for each of the widths, with exponents as long as the moduli. `cuda` has
/// one device.
pub(crate) fn measure(
    cuda: &Cuda,
    bits: &[u32],
    asked_windows: &[u32],
    seconds: f64,
) -> Result<Table, Box<dyn Error>> {
    let devices = cuda.devices();
    let multiprocessors = devices.map(|device| device.multiprocessors()).sum::<u32>() as usize;
    let instances = |point: &EntryPoint| multiprocessors * BLOCKS * point.instances_per_block();
    println!(
        "{:>5} {:>8} {:>16} {:>9} {:>6} {:>5} {:>12} {:>12}",
        "bits", "family", "entry point", "instances", "window", "runs", "kernel ms", "kernel/s"
    );
    let mut rates = Vec::new();
    for &bits in bits {
        cuda.prepare(bits)?;
        let most = entry_points(bits).map(instances).max();
        let workload = Workload::with_moduli(bits, most.unwrap_or(0), MODULI, Exponents::Random);
        for entry_point in entry_points(bits) {
            for window in windows(asked_windows) {
                let instances = instances(entry_point);
                let mut tuning = Tuning::default();
                tuning.entry_point = Some(entry_point);
                tuning.window = window;
                tuning.single_launch = true;
                let (runs, kernel) = median(cuda, &workload, instances, tuning, seconds)?;
                let rate = Rate {
                    bits,
                    entry_point,
                    instances,
                    window,
                    runs,
                    kernel,
                };
                println!(
                    "{bits:>5} {:>8} {:>16} {instances:>9} {:>6} {runs:>5} {:>12.3} {:>12.0}",
                    entry_point.family(),
                    entry_point.name(),
                    window_name(window.map(Window::bits)),
                    milliseconds(kernel),
                    rate.per_second(),
                );
                rates.push(rate);
            }
        }
    }
    Ok(Table(rates))
}

/// Runs a batch at least three times; returns the number of runs and their median time.
fn median(
    cuda: &Cuda,
    workload: &Workload,
    instances: usize,
    tuning: Tuning,
    seconds: f64,
) -> Result<(usize, Duration), Box<dyn Error>> {
    let batch = workload.batch(instances);
    let mut out = workload.zeros(instances);
    let mut run = || {
        cuda.batch_mod_exp_tuned(&batch, workload.bits, &mut out, tuning)?;
        Ok::<_, Box<dyn Error>>(cuda.take_timing().kernel)
    };
    // Once without timing, to allocate the buffers.
    run()?;
    let mut times = Vec::new();
    let started = Instant::now();
    while times.len() < 3 || (started.elapsed().as_secs_f64() < seconds && times.len() < 500) {
        times.push(run()?);
    }
    Ok((times.len(), percentile(&mut times, 50)))
}

impl Table {
    pub(crate) fn csv(&self) -> String {
        let mut text =
            String::from("bits,family,entry_point,instances,window,runs,kernel_ms,kernel_per_s\n");
        for rate in &self.0 {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{:.4},{:.0}",
                rate.bits,
                rate.entry_point.family(),
                rate.entry_point.name(),
                rate.instances,
                window_name(rate.window.map(Window::bits)),
                rate.runs,
                milliseconds(rate.kernel),
                rate.per_second(),
            );
        }
        text
    }
}
