//! Calibrates: compares measured with predicted times of kernels and the choices before and after,
//! and writes a file for `with_calibration`.

use core::error::Error;
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::time::Instant;

use batch_modexp::backend::cuda::{DeviceInfo, EntryPoint, entry_points, fastest_entry_point};
use batch_modexp::backend::{Auto, Cuda};

use super::milliseconds;

/// Thread blocks for each multiprocessor in a full batch.
const BLOCKS: usize = 12;

/// Calibrates, prints the results, and writes them to `path`. `open` opens the devices anew.
pub(crate) fn run(
    open: impl Fn() -> Result<Cuda, Box<dyn Error>>,
    bits: &[u32],
    batch: &[usize],
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let cuda = open()?;
    let before: Vec<_> = cuda.devices().cloned().collect();
    let started = Instant::now();
    for &bits in bits {
        cuda.prepare(bits)?;
    }
    println!(
        "# kernels loaded in {:.2} s",
        started.elapsed().as_secs_f64()
    );
    let mut auto = Auto::with_cuda(cuda);
    let break_even = |auto: &Auto| -> Vec<_> {
        let widths = bits.iter();
        widths.map(|&bits| auto.break_even(bits, bits)).collect()
    };
    let even_before = break_even(&auto);
    let started = Instant::now();
    let calibration = auto.calibrate(bits)?;
    println!("# measured in {:.2} s", started.elapsed().as_secs_f64());
    let even_after = break_even(&auto);
    // Reads the file back, as another process would.
    fs::write(path, calibration.to_string())?;
    let read = fs::read_to_string(path)?.parse()?;
    let calibrated = open()?.with_calibration(&read)?;
    for (before, after) in before.iter().zip(calibrated.devices()) {
        println!("{after}");
        bits.iter().for_each(|&bits| kernels(bits, before, after));
        choices(bits, batch, [before, after]);
    }
    println!(
        "{:>5} {:>28} {:>28}",
        "bits", "break-even, as predicted", "as measured"
    );
    for ((bits, before), after) in bits.iter().zip(even_before).zip(even_after) {
        let count = |even: Option<usize>| even.map_or("never".to_owned(), |even| even.to_string());
        println!("{bits:>5} {:>28} {:>28}", count(before), count(after));
    }
    println!("# written to {}", path.display());
    Ok(())
}

/// Prints a line for each kernel of a width: one thread block alone, and a full device.
fn kernels(bits: u32, before: &DeviceInfo, after: &DeviceInfo) {
    println!(
        "{:>5} {:>8} {:>16} {:>14} {:>12} {:>14} {:>12}",
        "bits", "family", "entry point", "predicted ms", "measured ms", "predicted/s", "measured/s"
    );
    for point in entry_points(bits) {
        let one = point.instances_per_block();
        let full = one * BLOCKS * after.multiprocessors() as usize;
        let of = |count| {
            Some((
                point.forecast(before, count)?,
                point.forecast(after, count)?,
            ))
        };
        let (Some(one), Some(times)) = (of(one), of(full)) else {
            continue;
        };
        let per_second = |time: Duration| full as f64 / time.as_secs_f64();
        println!(
            "{bits:>5} {:>8} {:>16} {:>14.3} {:>12.3} {:>14.0} {:>12.0}",
            point.family(),
            point.name(),
            milliseconds(one.0),
            milliseconds(one.1),
            per_second(times.0),
            per_second(times.1),
        );
    }
}

/// Prints a line for each batch, with the kernel chosen before and after.
fn choices(bits: &[u32], batch: &[usize], devices: [&DeviceInfo; 2]) {
    println!(
        "{:>5} {:>7} {:>26} {:>26}",
        "bits", "batch", "chosen before", "chosen after"
    );
    for &bits in bits {
        for &count in batch {
            let name = |point: &EntryPoint| format!("{} {}", point.family(), point.name());
            let [before, after] = devices.map(|device| {
                let chosen = fastest_entry_point(device, bits, bits, count);
                chosen.map_or("none".to_owned(), name)
            });
            let changed = if before == after { "" } else { "  changed" };
            println!("{bits:>5} {count:>7} {before:>26} {after:>26}{changed}");
        }
    }
}
