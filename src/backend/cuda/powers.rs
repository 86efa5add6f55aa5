//! Exponentiations of numbers from a [`PowerFeed`] as a device job.
//!
//! The kernels are those for secret exponents, of which they take one for each item. Public ones are
//! all equal.

#[cfg(feature = "rsa")]
mod flat;

use alloc::vec;
use alloc::vec::Vec;
use core::iter::repeat_n;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::Error;
use batch_modexp_core::engine::{Engine as _, SecretPowers};
use batch_modexp_core::monty::{ModulusRef, power_of_two};
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::scrubbed;
use batch_modexp_cpu::AnyEngine;
use crypto_bigint::Limb;

use super::Cuda;
use super::family::Entry;
use super::family::modexp::{self, ModExpChunk, ModExpWork};
use super::feed::{Feed, Feeding, Opened};
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::{Part, places};
use super::runtime::lock;
use super::runtime::module::Grid;
use super::runtime::pipeline::{ChunkLens, Destination, Job, Prepared, Stop, Timing};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{HostPool, NonTemporal, copy_out, write_indices};

/// Items that a thread opens at a time, few enough that each thread gets some of a chunk. With 128
/// and 64, batches of 262,144 RSA-2048 verifications took 15 and 36 % longer on an H100.
const OPENED_AT_A_TIME: usize = 256;

/// Moduli whose records a thread writes at a time. Some need `R^2` of another width, which takes much
/// longer than a copy.
const MODULI_AT_A_TIME: usize = 32;

/// A feed of exponentiations. The two numbers of an item are its base and its exponent.
pub(crate) trait PowerFeed<O>: Feed<O> {
    /// The moduli of some items, equally wide in the whole batch, each with the number of consecutive
    /// items that have it.
    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)>;
}

impl Cuda {
    /// Computes powers with exponents of `exponent_bits` bits, which is public.
    ///
    /// The moduli [have a kernel](Self::has_kernel), and are at least as wide as the exponents. The
    /// host computes items whose modulus a kernel refuses.
    pub(crate) fn run_powers<O: Destination, F: PowerFeed<O> + ?Sized>(
        &self,
        exponent_bits: u32,
        tuning: Tuning,
        feed: &F,
        output: O,
    ) -> Result<Timing, F::Error> {
        if output.len() == 0 {
            return Ok(Timing::default());
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
    host: &'a AnyEngine,
    feed: Feeding<'a, F>,
}

/// The kernel and plan with which a device computes its share.
pub(super) struct Share {
    pub(super) plan: Plan,
    pub(super) grid: Grid,
    pub(super) loaded: Loaded,
    /// Held while a chunk for this device is opened and submitted. Two at a time would both be
    /// late.
    opening: Mutex<()>,
}

/// A chunk on a device.
pub(super) struct UnderWay<T> {
    parts: Vec<Opened<T>>,
    entry: &'static Entry,
    /// The place of the powers in the output.
    powers: Part,
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
                opening: Mutex::default(),
            },
        })
    }
}

impl<'a, F: ?Sized> PowerJob<'a, F> {
    /// Makes the job for a feed with at least one item.
    pub(super) fn new<O>(cuda: &'a Cuda, exponent_bits: u32, tuning: Tuning, feed: &'a F) -> Self
    where
        F: PowerFeed<O>,
    {
        let (modulus, _) = feed.moduli(0..1)[0];
        Self {
            bits: modulus.bits(),
            exponent_bits,
            tuning,
            host: cuda.host().parallel().inner(),
            feed: Feeding {
                feed,
                threads: cuda.host_pool(),
                limbs: modulus.limbs.len(),
            },
        }
    }

    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        Plan::new(self.bits, self.exponent_bits, count, device, self.tuning)
    }

    /// Writes the inputs of a chunk: base and exponent of each item, a record for each modulus, and
    /// for each item the index of its record.
    fn fill<O>(
        &self,
        entry: &Entry,
        moduli: &[(ModulusRef<'_>, usize)],
        parts: &[Opened<F::Opened>],
        work: &ModExpWork,
        input: &mut [u64],
    ) where
        F: PowerFeed<O>,
    {
        let parts_of_input = [work.base, work.exponent, work.modulus_index, work.moduli];
        let [bases, exponents, indices, records] = places(input, parts_of_input);
        self.feed.copy(parts, [bases, exponents], entry.words());
        write_moduli(entry, moduli, [indices, records], self.feed.threads);
    }

    /// Computes on the host an item that a family refuses.
    fn compute_on_host<O>(&self, item: usize, [base, exponent]: [&[Limb]; 2], power: &mut [Limb])
    where
        F: PowerFeed<O>,
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

impl<O: Destination, F: PowerFeed<O> + ?Sized> Job<O> for PowerJob<'_, F> {
    type Share = Share;
    type Chunk = UnderWay<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Share>, F::Error> {
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
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let entry = share.plan.entry;
        let moduli = self.feed.feed.moduli(chunk.clone());
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: moduli.len(),
            exponent_bits: self.exponent_bits,
            r2_bits: entry.r2_bits(self.bits),
            window: share.plan.window,
        };
        let work = modexp::launch(entry, share.grid, &what);
        let alone = lock(&share.opening);
        let parts = self.feed.open(chunk, OPENED_AT_A_TIME, false);
        let parts = parts.map_err(Stop::Batch)?;
        let fill = |input: &mut [u64]| {
            self.fill(entry, &moduli, &parts, &work, input);
            input.len()
        };
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        drop(alone);
        Ok(UnderWay {
            parts,
            entry,
            powers: work.power,
        })
    }

    fn take(&self, chunk: Self::Chunk, items: &Range<usize>, words: &mut [u64], output: O) {
        let family = chunk.entry.family;
        let words = &mut words[chunk.powers.range()];
        let read = |item, numbers: [&[Limb]; 2], words: &[u64], power: &mut [Limb]| match family
            .is_refused(words)
        {
            true => self.compute_on_host(items.start + item, numbers, power),
            false => copy_out(words, power),
        };
        self.feed.take(chunk.parts, words, output, read);
    }
}

/// Writes a record for each modulus, and for each item the index of its record.
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
                write_modulus(entry, modulus, record, stores);
            }
        });
    });
    let each = (0..)
        .zip(moduli)
        .flat_map(|(index, &(_, len))| repeat_n(index, len));
    write_indices(each, indices);
}

/// Writes the record of a modulus: the modulus, and `2^(2 * r2_bits)` modulo it.
pub(super) fn write_modulus<'w>(
    entry: &Entry,
    modulus: ModulusRef<'_>,
    record: &'w mut [u64],
    stores: &mut NonTemporal<'w>,
) {
    let bits = modulus.bits();
    let r2_bits = entry.r2_bits(bits);
    let wider = (r2_bits != bits).then(|| scrubbed(|| power_of_two(2 * r2_bits, modulus.limbs, 0)));
    let r2 = wider.as_deref().map_or(modulus.r2, Vec::as_slice);
    let (first, second) = record.split_at_mut(entry.words());
    stores.copy_in(modulus.limbs, first);
    stores.copy_in(r2, second);
}

#[cfg(test)]
mod tests;
