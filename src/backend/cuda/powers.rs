//! Exponentiations of numbers from a [`Feed`] as a device job.
//!
//! The kernels are those for secret exponents, of which they take one for each item. Public ones are
//! all equal.

use alloc::vec;
use alloc::vec::Vec;
use core::iter::repeat_n;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::engine::{Engine as _, SecretPowers};
use batch_modexp_core::monty::{ModulusRef, power_of_two};
use batch_modexp_core::secret::{Secret, scrubbed};
use batch_modexp_core::window::Window;
use batch_modexp_cpu::AnyEngine;
use crypto_bigint::Limb;

use super::Cuda;
use super::family::modexp::{self, ModExpChunk};
use super::family::{Entry, Grid};
use super::feed::{Feed, Feeding};
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::places;
use super::runtime::lock;
use super::runtime::pipeline::{ChunkLens, Destination, Job, Stop};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{HostPool, LIMBS_PER_WORD, NonTemporal, copy_out, write_indices};

/// Items that a thread opens at a time, few enough that each thread gets some of a chunk. With 128
/// and 64, batches of 262,144 RSA-2048 verifications took 15 and 36 % longer on an H100.
const OPENED_AT_A_TIME: usize = 256;

/// Moduli whose records a thread writes at a time. Some need `R^2` of another width, which takes much
/// longer than a copy.
const MODULI_AT_A_TIME: usize = 32;

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

/// The kernel and the window with which a device computes its share.
pub(super) struct Share {
    grid: Grid,
    window: Window,
    loaded: Loaded,
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
    type Share = Share;
    type Chunk = Vec<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    /// A chunk fills half of the device.
    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<(Share, ChunkLens), F::Error> {
        let plan = self.plan(&call.device.info, count);
        let plan = plan.expect("a device with a share has a kernel");
        let mut loaded = Loaded::default();
        let grid = Grid::load(plan.entry, call.device, &mut loaded)?;
        let per_block = plan.entry.image.instances_per_block;
        let mut lens = ChunkLens::halves(grid.resident_instances(), per_block);
        if self.tuning.single_launch {
            lens.most = count;
        }
        let share = Share {
            grid,
            window: plan.window,
            loaded,
        };
        Ok((share, lens))
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let entry = share.grid.entry;
        let moduli = self.feed.feed.moduli(chunk.clone());
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: moduli.len(),
            exponent_bits: self.exponent_bits,
            r2_bits: entry.r2_bits(self.bits),
            window: share.window,
        };
        let work = modexp::launch(share.grid, &what);
        let write_moduli = |input: &mut [u64]| {
            let places = places(input, [work.indices, work.records]);
            write_moduli(entry, &moduli, places, self.feed.threads);
        };
        let loaded = &share.loaded;
        let _alone = lock(submitting);
        self.feed
            .submit(chunk, false, &work, loaded, slot, write_moduli)
    }

    fn take(
        &self,
        share: &Share,
        parts: Self::Chunk,
        items: &Range<usize>,
        words: &mut [u64],
        output: O,
    ) {
        let family = share.grid.entry.family;
        let is_refused = |words: &[u64]| self.entries_by.is_none() && family.is_refused(words);
        let read = |item, numbers: [&[Limb]; 2], words: &[u64], power: &mut [Limb]| match is_refused(
            words,
        ) {
            true => self.compute_on_host(items.start + item, numbers, power),
            false => copy_out(words, power),
        };
        self.feed.take(parts, words, output, read);
    }
}

/// Writes a record for each modulus, and for each item the index of its record. A record has the
/// modulus, and `2^(2 * r2_bits)` modulo it.
fn write_moduli(
    entry: &Entry,
    moduli: &[(ModulusRef<'_>, usize)],
    [indices, records]: [&mut [u64]; 2],
    threads: HostPool<'_>,
) {
    let size = 2 * entry.words();
    let parts = records.chunks_mut(MODULI_AT_A_TIME * size);
    let parts = moduli.chunks(MODULI_AT_A_TIME).zip(parts).collect();
    threads.each_item(parts, |(moduli, records): (&[_], &mut [_])| {
        NonTemporal::with(|stores| {
            for (&(modulus, _), record) in moduli.iter().zip(records.chunks_exact_mut(size)) {
                let bits = modulus.width();
                let r2_bits = entry.r2_bits(bits);
                let wider = || scrubbed(|| power_of_two(2 * r2_bits, modulus.limbs, 0));
                let wider = (r2_bits != bits).then(wider);
                let r2 = wider.as_deref().map_or(modulus.r2, Vec::as_slice);
                let (first, second) = record.split_at_mut(entry.words());
                stores.copy_in(modulus.limbs, first);
                stores.copy_in(r2, second);
            }
        });
    });
    let each = (0..)
        .zip(moduli)
        .flat_map(|(index, &(_, len))| repeat_n(index, len));
    write_indices(each, indices);
}

#[cfg(test)]
mod tests;
