//! Exponentiations of numbers from a [`Feed`] as a device job.
//!
//! The kernels are those for secret exponents, of which they take one for each item. Public ones are
//! all equal. Parameters and records of `modexp_BITS_tT` and `fixed_entries_BITS_tT` are the same in
//! all families (`kernels/README.md`).
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::engine::{Engine as _, SecretPowers};
use batch_modexp_core::monty::{ModulusRef, power_of_two};
use batch_modexp_core::secret::{Secret, scrubbed};
use batch_modexp_core::window::Window;
use batch_modexp_cpu::AnyEngine;
use crypto_bigint::Limb;

use super::Cuda;
use super::family::{Entry, Operation, Plan, Tuning};
use super::feed::{Feed, Feeding, LIMBS_PER_WORD, NonTemporal, copy_out, write_records};
use super::runtime::device::Call;
use super::runtime::launch::{Argument, Kernel, Work, places};
use super::runtime::lock;
use super::runtime::pipeline::{Destination, Job, Stop, chunk_len};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;

/// Items that a thread opens at a time, few enough that each thread gets some of a chunk. With 128
/// and 64, batches of 262,144 RSA-2048 verifications took 15 and 36 % longer on an H100.
const OPENED_AT_A_TIME: usize = 256;

impl Cuda {
    /// Computes powers with exponents of `exponent_bits` bits, which is public.
    ///
    /// The moduli [have a kernel](Self::has_kernel), and are at least as wide as the exponents. The
    /// host computes items whose modulus a kernel refuses.
    pub(crate) fn run_powers<O: Destination, F: Feed<O> + ?Sized>(
        &self,
        exponent_bits: u32,
        tuning: Tuning,
        feed: &F,
        output: O,
    ) -> Result<(), F::Error> {
        if output.len() == 0 {
            return Ok(());
        }
        let job = PowerJob::new(self, exponent_bits, tuning, feed);
        self.devices.run(&job, output)
    }
}

/// See [`Cuda::run_powers`].
pub(super) struct PowerJob<'a, F: ?Sized> {
    /// The width of the moduli in bits.
    bits: u32,
    exponent_bits: u32,
    tuning: Tuning,
    /// The only kernel for the job, if its results are entries of a table.
    entries_by: Option<&'static Entry>,
    host: &'a AnyEngine,
    feed: Feeding<'a, F>,
}

/// The kernel with which a device computes its share, and the public properties of all its chunks.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    /// The length of the exponents in bits, at most the width of the kernel.
    pub(super) exponent_bits: u32,
    /// The width of the Montgomery parameters in bits, as from [`Entry::r2_bits`].
    pub(super) r2_bits: u32,
    pub(super) window: Window,
}

impl Prepared {
    /// Lays out a chunk of `count` exponentiations or table entries, modulo `moduli` different
    /// numbers, and makes its launch.
    pub(super) fn work(&self, count: usize, moduli: usize) -> Work<'_> {
        let entry = self.kernel.entry;
        let operations = [Operation::ModExp, Operation::FixedEntries];
        entry.check(&operations, self.r2_bits, self.exponent_bits);
        let mut work = Work::default();
        work.numbers = [(); 2].map(|()| work.input(count * entry.words()));
        work.indices = work.input(count.div_ceil(2));
        work.records = work.input(moduli * 2 * entry.words());
        let power = work.output(count * entry.result_words());
        let scratch = work.scratch(self.kernel.scratch_words(count, self.window.table_len()));
        let [base, exponent] = work.numbers.map(Argument::Words);
        let arguments = vec![
            Argument::Words(power),
            base,
            exponent,
            Argument::Words(work.records),
            Argument::Indices {
                part: work.indices,
                count,
                records: work.records,
                size: 2 * entry.words(),
            },
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(self.exponent_bits),
            Argument::U32(self.r2_bits),
            Argument::U32(self.window.bits()),
        ];
        // SAFETY: these are the parameters of `modexp_BITS_tT` and `fixed_entries_BITS_tT`, checked
        // above; every part has the length that its buffer must have.
        unsafe { work.add_launch(&self.kernel, count, arguments) };
        work
    }
}

impl<'a, F: ?Sized> PowerJob<'a, F> {
    /// Makes the job for a feed with at least one item.
    pub(super) fn new<O>(cuda: &'a Cuda, exponent_bits: u32, tuning: Tuning, feed: &'a F) -> Self
    where
        F: Feed<O>,
    {
        let (modulus, _) = feed.moduli(0..1)[0];
        Self {
            bits: modulus.width(),
            exponent_bits,
            tuning,
            entries_by: None,
            host: cuda.host().parallel().inner(),
            feed: Feeding {
                feed,
                threads: cuda.host_pool(),
                limbs: modulus.limbs.len(),
                part: [OPENED_AT_A_TIME; 2],
            },
        }
    }

    /// Computes entries of a table with this kernel. The results are operands.
    pub(super) fn of_entries(mut self, kernel: &'static Entry) -> Self {
        self.entries_by = Some(kernel);
        self.feed.limbs = kernel.result_words() * LIMBS_PER_WORD;
        self
    }

    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let exponent_bits = self.exponent_bits;
        match self.entries_by {
            None => Plan::new(self.bits, exponent_bits, count, device, self.tuning),
            Some(kernel) => Plan::fastest([kernel].into_iter(), exponent_bits, count, device),
        }
    }

    /// Computes on the host an item that a family refuses.
    fn compute_on_host<O>(&self, item: usize, [base, exponent]: [&[Limb]; 2], power: &mut [Limb])
    where
        F: Feed<O>,
    {
        let (modulus, _) = self.feed.feed.moduli(item..item + 1)[0];
        // The base may be narrower than the modulus.
        let mut wide = Secret::new(vec![Limb::ZERO; power.len()]);
        wide[..base.len()].copy_from_slice(base);
        self.host.pow(SecretPowers {
            moduli: &[modulus],
            exponents: &[exponent],
            exponent_bits: self.exponent_bits,
            bases: &wide,
            out: power,
        });
    }
}

impl<O: Destination, F: Feed<O> + ?Sized> Job<O> for PowerJob<'_, F> {
    type Prepared = Prepared;
    type Chunk = Vec<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    /// A chunk fills half of the device.
    fn prepare(&self, call: &Call<'_>, share: usize) -> Result<(Prepared, usize), F::Error> {
        let plan = self.plan(&call.device.info, share.saturating_mul(call.calls));
        let plan = plan.expect("a device with a share has a kernel");
        let kernel = call.device.kernel(plan.entry)?;
        let half = kernel.resident_instances().div_ceil(2);
        let len = match self.tuning.single_launch {
            true => share,
            false => chunk_len(share, half, plan.entry.instances_per_block),
        };
        let prepared = Prepared {
            kernel,
            exponent_bits: self.exponent_bits,
            r2_bits: plan.entry.r2_bits(self.bits),
            window: plan.window,
        };
        Ok((prepared, len))
    }

    fn submit(
        &self,
        prepared: &Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let entry = prepared.kernel.entry;
        // Looking for moduli takes long in large chunks; the other thread need not wait for it.
        let moduli = self.feed.feed.moduli(chunk.clone());
        let work = prepared.work(chunk.len(), moduli.len());
        let _alone = lock(submitting);
        self.feed.submit(chunk, false, &work, slot, |input| {
            let places = places(input, [work.indices, work.records]);
            let threads = self.feed.threads;
            write_records(threads, &moduli, places, |modulus, record, stores| {
                write_modulus(entry, modulus, record, stores);
            });
        })
    }

    fn take(
        &self,
        prepared: &Prepared,
        parts: Self::Chunk,
        items: &Range<usize>,
        words: &mut [u64],
        output: O,
    ) {
        let family = prepared.kernel.entry.family;
        let refuses = self.entries_by.is_none();
        let read = |item, numbers: [&[Limb]; 2], words: &[u64], power: &mut [Limb]| {
            if refuses && family.is_refused(words) {
                self.compute_on_host(items.start + item, numbers, power);
            } else {
                copy_out(words, power);
            }
        };
        self.feed.take(parts, words, output, read);
    }
}

/// Writes the record of a modulus: the modulus, and `2^(2 * r2_bits)` modulo it. Some need another
/// width of this power, which takes much longer than a copy.
fn write_modulus<'w>(
    entry: &Entry,
    modulus: &ModulusRef<'_>,
    record: &'w mut [u64],
    stores: &mut NonTemporal<'w>,
) {
    let bits = modulus.width();
    let r2_bits = entry.r2_bits(bits);
    let wider = || scrubbed(|| power_of_two(2 * r2_bits, modulus.limbs, 0));
    let wider = (r2_bits != bits).then(wider);
    let r2 = wider.as_deref().map_or(modulus.r2, Vec::as_slice);
    let (first, second) = record.split_at_mut(entry.words());
    stores.copy_in(modulus.limbs, first);
    stores.copy_in(r2, second);
}

#[cfg(test)]
mod tests;
