//! Batches of modular exponentiations: validation, the split between devices and host, and the
//! device job.

mod inputs;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use batch_modexp_core::checks::{check_instances, check_lengths};
use batch_modexp_core::width::{clear, place, width};
use batch_modexp_core::{BatchModExp, Error, ModExp, gathered};
use crypto_bigint::Unsigned;

use super::Cuda;
use super::family::entry::Entry;
use super::family::{ModExpChunk, modexp};
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::Part;
use super::runtime::lock;
use super::runtime::module::Grid;
use super::runtime::pipeline::{ChunkLens, Job, Prepared, Stop, Timing};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{HostPool, copy_out};

#[cfg(feature = "rsa")]
pub(super) use inputs::write_moduli;
pub(super) use inputs::write_modulus;

impl Cuda {
    /// Checks a batch of exponentiations, including its width against `max_bits`, and computes it.
    pub(super) fn check_and_run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        max_bits: u32,
        tuning: Tuning,
    ) -> Result<Timing, Error> {
        check_lengths(batch, out);
        self.validate(batch, exponent_bits, max_bits)
            .and_then(|is_mixed| self.run(batch, exponent_bits, out, tuning, is_mixed))
            .inspect_err(|_| clear(out))
    }

    /// Returns whether the widths of the moduli differ, or the first error in the order of the
    /// batch.
    ///
    /// On all threads: one would take as long for many instances as the devices for a tenth of
    /// them.
    fn validate<U: Unsigned + Sync>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        max_bits: u32,
    ) -> Result<bool, Error> {
        let is_mixed = AtomicBool::new(false);
        let error = self.host_pool().first(batch, |first, part| {
            let width = bits(&batch[0]);
            if part.iter().any(|instance| bits(instance) != width) {
                is_mixed.store(true, Relaxed);
            }
            let error = check_instances(part, exponent_bits, max_bits).err()?;
            Some(error.in_batch_at(first))
        });
        error.map_or(Ok(is_mixed.into_inner()), Err)
    }

    /// Computes a batch that has been validated, one width after the other.
    fn run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
        is_mixed: bool,
    ) -> Result<Timing, Error> {
        self.devices.check()?;
        if !is_mixed {
            return self.run_one_width(batch, exponent_bits, out, tuning);
        }
        let mut widths = BTreeMap::<u32, Vec<usize>>::new();
        for (index, instance) in batch.iter().enumerate() {
            widths.entry(bits(instance)).or_default().push(index);
        }
        let mut timing = Timing::default();
        for at in widths.values() {
            timing += gathered(batch, at, out, |instances, results| {
                self.run_one_width(instances, exponent_bits, results, tuning)
            })?;
        }
        Ok(timing)
    }

    /// Computes instances of one width on the devices. The host computes them if there is no
    /// kernel, as for exponents that are longer than their moduli, and those that a family refuses.
    fn run_one_width<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<Timing, Error> {
        let on_host = |instances: &[ModExp<'_, U>], results: &mut [U]| {
            self.host.batch_mod_exp(instances, exponent_bits, results)
        };
        let job = ModExpJob::new(batch, exponent_bits, tuning, self.host_pool());
        if batch.is_empty() || exponent_bits > job.bits || !self.has_kernel(job.bits) {
            return on_host(batch, out).map(|()| Timing::default());
        }
        let timing = self.devices.run(&job, &mut *out)?;
        let refused = job.refused.into_inner();
        let refused = refused.unwrap_or_else(PoisonError::into_inner);
        if !refused.is_empty() {
            gathered(batch, &refused, out, on_host)?;
        }
        Ok(timing)
    }
}

/// The width of an instance's modulus in bits.
fn bits<U: Unsigned>(instance: &ModExp<'_, U>) -> u32 {
    width(instance.params.modulus().as_ref())
}

/// Exponentiations with moduli of one width.
pub(super) struct ModExpJob<'a, U: Unsigned> {
    batch: &'a [ModExp<'a, U>],
    /// The width of the moduli in bits.
    bits: u32,
    /// The length of the exponents, which is public.
    exponent_bits: u32,
    tuning: Tuning,
    threads: HostPool<'a>,
    /// The indices of instances whose moduli a family refused.
    refused: Mutex<Vec<usize>>,
}

/// A chunk that was submitted.
pub(super) struct Submitted {
    entry: &'static Entry,
    /// The place of the powers in the output.
    power: Part,
}

/// The kernel and plan with which a device computes its share.
pub(super) struct Share {
    pub(super) plan: Plan,
    pub(super) grid: Grid,
    pub(super) loaded: Loaded,
}

impl Share {
    /// Loads the kernel of a plan. A chunk fills half of the device.
    pub(super) fn prepare(plan: Plan, call: &Call<'_>) -> Result<Prepared<Self>, Error> {
        let kernel = call.device().kernel(&plan.entry.image)?;
        let grid = kernel.grid();
        let resident = grid.resident_instances();
        Ok(Prepared {
            chunks: ChunkLens::halves(resident, plan.entry.image.instances_per_block),
            share: Self {
                plan,
                grid,
                loaded: Loaded {
                    kernels: vec![kernel],
                    records: None,
                },
            },
        })
    }
}

impl<'a, U: Unsigned + Sync + Send> ModExpJob<'a, U> {
    pub(super) fn new(
        batch: &'a [ModExp<'a, U>],
        exponent_bits: u32,
        tuning: Tuning,
        threads: HostPool<'a>,
    ) -> Self {
        Self {
            batch,
            bits: batch.first().map_or(0, bits),
            exponent_bits,
            tuning,
            threads,
            refused: Mutex::default(),
        }
    }

    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let Self {
            bits,
            exponent_bits,
            tuning,
            ..
        } = *self;
        Plan::new(bits, exponent_bits, count, device, tuning)
    }

    /// Moves powers to their places, each as wide as its modulus, and records refused instances.
    /// `first` is the index of the first one.
    fn store(&self, entry: &Entry, first: usize, words: &mut [u64], out: &mut [U]) {
        let size = words.len() / out.len();
        self.threads
            .each_with_number(out, words, size, |i, out, words| {
                let index = first + i;
                if entry.family.is_refused(words) {
                    let mut refused = lock(&self.refused);
                    refused.push(index);
                }
                copy_out(
                    words,
                    place(out, self.batch[index].params.modulus().as_ref()),
                );
            });
    }
}

impl<'o, U: Unsigned + Sync + Send> Job<&'o mut [U]> for ModExpJob<'_, U> {
    type Share = Share;
    type Chunk = Submitted;
    type Error = Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Share>, Error> {
        let Some(plan) = self.plan(call.device().info(), count) else {
            unreachable!("a device without a forecast has no share");
        };
        let mut prepared = Share::prepare(plan, call)?;
        if self.tuning.single_launch {
            prepared.chunks.most = count;
        }
        Ok(prepared)
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Submitted, Stop<Error>> {
        let entry = share.plan.entry;
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: chunk.len(),
            exponent_bits: self.exponent_bits,
            r2_bits: entry.r2_bits(self.bits),
            window: share.plan.window,
        };
        let work = modexp::launch(entry, share.grid, &what);
        let fill = |input: &mut [u64]| self.fill(entry, chunk, &work, input);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok(Submitted {
            entry,
            power: work.power,
        })
    }

    fn take(&self, chunk: Submitted, range: &Range<usize>, words: &mut [u64], places: &'o mut [U]) {
        let powers = &mut words[chunk.power.range()];
        self.store(chunk.entry, range.start, powers, places);
    }
}

#[cfg(test)]
mod tests;
