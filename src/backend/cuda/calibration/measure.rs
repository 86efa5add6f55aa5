//! Measures kernels: one block alone, and as many blocks as a device computes at a time. Exponents
//! are so short that all measurements take a few seconds on any chip.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use batch_modexp_core::window::Window;
use batch_modexp_core::{Error, ModExp};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};

use super::super::family::{self, Entry, Tuning};
use super::super::powers::PowerJob;
use super::super::runtime::device::Device;
use super::super::runtime::probe::{BlockTimes, Costs};
use super::Cuda;

/// Runs of each kind. The fastest counts, because other load on the machine only slows runs down.
const RUNS: usize = 3;

/// The target time of a run, which bounds the length of its exponents.
const RUN: Duration = Duration::from_millis(10);

/// Digits of the shortest exponents, fewer than half of any full length.
const FEWEST_DIGITS: u32 = 8;

/// Duration of the work that raises the clocks of an idle device.
const WARM_UP: Duration = Duration::from_millis(200);

/// Measures the kernels for moduli of these widths on a device.
pub(super) fn costs(cuda: &Cuda, device: &Device, widths: &[u32]) -> Result<Costs, Error> {
    let serving = widths.iter().filter(|&&bits| bits > 0);
    let serving = serving.flat_map(|&bits| family::serving(bits));
    let running = serving.filter(|entry| entry.runs_on(&device.info));
    let entries: BTreeMap<_, _> = running.map(|entry| (entry.key, entry)).collect();
    let mut costs = Costs::default();
    let mut calls = Vec::new();
    for (&key, entry) in &entries {
        let operands = Operands::new(entry.bits);
        let of = |count| Measurement {
            cuda,
            device,
            entry,
            operands: &operands,
            count,
        };
        let resident = device.kernel(entry)?.resident_instances();
        let per_block = entry.instances_per_block;
        let (one, full) = (of(per_block), of(resident));
        if calls.is_empty() {
            full.warm_up()?;
        }
        let multiprocessors = device.info.multiprocessors().max(1) as usize;
        let blocks = resident / per_block;
        let blocks_each = (blocks / multiprocessors).max(1) as u64;
        let (alone, besides) = one.whole()?;
        let (shared, _) = full.whole()?;
        let times = BlockTimes {
            alone_ns: alone.max(1),
            shared_ns: (shared / blocks_each).max(1),
        };
        costs.kernels.insert(key, times);
        calls.push(besides);
    }
    calls.sort_unstable();
    let median = calls.get(calls.len() / 2);
    costs.call_ns = median.map(|call| (call.as_nanos() as u64).max(1));
    Ok(costs)
}

/// A batch for a kernel on a device.
struct Measurement<'a> {
    cuda: &'a Cuda,
    device: &'a Device,
    entry: &'static Entry,
    operands: &'a Operands,
    count: usize,
}

impl Measurement<'_> {
    /// The time of the kernel in nanoseconds, with exponents as long as its numbers and the best
    /// window for them, and the time of a call besides.
    ///
    /// All digits take equally long, so the times of two lengths give those of all others.
    fn whole(&self) -> Result<(u64, Duration), Error> {
        let all = self.window().digit_count(self.entry.bits) as u32;
        self.run(FEWEST_DIGITS)?;
        let (of_short, besides) = self.fastest(FEWEST_DIGITS)?;
        let most = RUN.as_secs_f64() / of_short.max(1e-9) * f64::from(FEWEST_DIGITS);
        let long = (most as u32).clamp(2 * FEWEST_DIGITS, all);
        let (of_long, _) = self.fastest(long)?;
        let each = (of_long - of_short).max(0.0) / f64::from(long - FEWEST_DIGITS);
        let whole = of_long + each * f64::from(all - long);
        Ok(((whole * 1e9) as u64, besides))
    }

    /// The shortest times of the kernel, in seconds, and of a call besides.
    fn fastest(&self, digits: u32) -> Result<(f64, Duration), Error> {
        let mut fastest = [Duration::MAX; 2];
        for _ in 0..RUNS {
            let [kernel, besides] = self.run(digits)?;
            fastest = [fastest[0].min(kernel), fastest[1].min(besides)];
        }
        Ok((fastest[0].as_secs_f64(), fastest[1]))
    }

    fn warm_up(&self) -> Result<(), Error> {
        let mut left = WARM_UP;
        while !left.is_zero() {
            let [kernel, besides] = self.run(FEWEST_DIGITS)?;
            left = left.saturating_sub(kernel + besides);
        }
        Ok(())
    }

    fn window(&self) -> Window {
        self.entry.family.best_window(self.entry.bits)
    }

    /// Runs one launch with exponents of `digits` digits. Returns the time of the kernel, and that of
    /// the call besides.
    ///
    /// Results are ignored: an instance whose modulus the family refuses takes as
    /// long as any other.
    fn run(&self, digits: u32) -> Result<[Duration; 2], Error> {
        let exponent_bits = (digits * self.window().bits()).min(self.entry.bits);
        let batch = self.operands.batch(self.count);
        let mut out: Vec<_> = batch.iter().map(|instance| instance.base.clone()).collect();
        let tuning = Tuning {
            entry_point: Some(self.entry),
            window: Some(self.window()),
            single_launch: true,
        };
        let started = Instant::now();
        let job = PowerJob::new(self.cuda, exponent_bits, tuning, &batch[..]);
        self.device.take_timing();
        let devices = [(self.device, 1.0)];
        self.cuda.devices.run_on(&devices, &job, &mut out[..])?;
        let kernel = self.device.take_timing().kernel;
        Ok([kernel, started.elapsed().saturating_sub(kernel)])
    }
}

/// Fixed operands, which all instances share. The times of kernels do not depend on them.
struct Operands {
    params: BoxedMontyParams,
    base: BoxedUint,
    exponent: BoxedUint,
}

impl Operands {
    fn new(bits: u32) -> Self {
        // Odd, with the top bit set. Limbs are multiples of the golden ratio.
        let number = |multiplier: u64| {
            let mut number = BoxedUint::max(bits);
            let top = number.as_limbs().len() - 1;
            for (i, limb) in (0..).zip(&mut number.as_mut_limbs()[..top]) {
                *limb = Limb(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(2 * i + multiplier) as _);
            }
            number
        };
        Self {
            params: BoxedMontyParams::new(Odd::new(number(1)).expect("an odd number")),
            base: number(3),
            exponent: number(5),
        }
    }

    fn batch(&self, count: usize) -> Vec<ModExp<'_, BoxedUint>> {
        let instance = ModExp {
            base: &self.base,
            exponent: &self.exponent,
            params: self.params.as_ref(),
        };
        vec![instance; count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto_bigint::Integer as _;

    #[test]
    fn operands_fill_their_width() {
        for bits in family::widths() {
            let operands = Operands::new(bits);
            for count in [1, 16, 17, 1000] {
                let batch = operands.batch(count);
                assert_eq!(batch.len(), count);
                for x in batch {
                    let modulus = x.params.modulus().as_ref();
                    assert_eq!(modulus.bit_width(), bits);
                    assert!(bool::from(modulus.is_odd()));
                    assert!(x.base.bit_width() > bits - 64 && x.exponent.bit_width() > bits - 64);
                }
            }
        }
    }
}
