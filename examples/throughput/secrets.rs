//! Checks that the time of kernels does not depend on exponents.

use core::error::Error;
use core::time::Duration;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::cuda::Tuning;

use super::workload::{Exponents, Workload};
use super::{milliseconds, percentile};

/// Interleaves launches with different exponents, and compares the medians with the spread of
/// repetitions.
pub(crate) fn compare(cuda: &Cuda, bits: &[u32], batch: &[usize]) -> Result<(), Box<dyn Error>> {
    const REPEATS: usize = 51;
    for &bits in bits {
        for &batch in batch {
            let kinds = [
                Exponents::Zeros,
                Exponents::Ones,
                Exponents::OneBit,
                Exponents::Random,
            ];
            let workloads = kinds.map(|kind| Workload::new(bits, batch, kind));
            let batches = workloads.each_ref().map(|workload| workload.batch(batch));
            let mut tuning = Tuning::default();
            tuning.single_launch = true;
            let mut out = workloads[0].zeros(batch);
            let mut times = [const { Vec::new() }; 4];
            for repeat in 0..=REPEATS {
                for (batch, times) in batches.iter().zip(&mut times) {
                    cuda.batch_mod_exp_tuned(batch, bits, &mut out, tuning)?;
                    let kernel = cuda.take_timing().kernel;
                    // The first round warms up.
                    if repeat > 0 {
                        times.push(kernel);
                    }
                }
            }
            let mut medians = Vec::new();
            let mut spread = Duration::ZERO;
            for (kind, times) in kinds.iter().zip(&mut times) {
                let median = percentile(times, 50);
                let quartiles = percentile(times, 75) - percentile(times, 25);
                println!(
                    "{bits} bits, batch {batch}, {:>8}: median {:.4} ms, between quartiles {:.4} ms",
                    kind.name(),
                    milliseconds(median),
                    milliseconds(quartiles)
                );
                medians.push(median);
                spread = spread.max(quartiles);
            }
            let largest = medians.iter().max().copied().unwrap_or_default();
            let smallest = medians.iter().min().copied().unwrap_or_default();
            println!(
                "{bits} bits, batch {batch}: medians differ by {:.4} ms, repeats spread by {:.4} ms",
                milliseconds(largest - smallest),
                milliseconds(spread)
            );
        }
    }
    Ok(())
}
