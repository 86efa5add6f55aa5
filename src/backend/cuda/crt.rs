//! CRT batches: `m^d mod n` for many numbers m and keys `n = p q`, computed on the devices.
//!
//! The caller is a [`Feed`], which makes the numbers and takes the results. Key records stay on the
//! devices. The results are not checked here.

use alloc::vec::Vec;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::window::Window;
use crypto_bigint::Limb;
use cudarc::driver::DriverError;

#[cfg(test)]
pub(crate) use self::tests::{ChangeInputs, Injection, Tampering};
use super::Cuda;
use super::family::crt::{CrtChunk, CrtKernels, Operands};
pub(crate) use super::family::crt::{CrtClass, CrtModulus as CrtKey, CrtShape};
use super::family::{Grid, Work};
use super::feed::{Feed, Feeding};
use super::plan::{self, Plan};
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::places;
use super::runtime::lock;
use super::runtime::pipeline::{ChunkLens, Destination, Job, Stop};
use super::runtime::probe::DeviceInfo;
use super::runtime::records::{Residence, TableInUse};
use super::runtime::slot::Slot;
use super::words::{copy_out, write_indices};

/// Consecutive items of one key.
pub(crate) struct CrtRun<'a> {
    pub(crate) len: usize,
    pub(crate) key: CrtKey<'a>,
    /// The records of the key on the devices.
    pub(crate) residence: &'a Residence,
}

/// Items that each host thread blinds sooner than a device.
///
/// A device takes as long for one item as for thousands: with RSA-2048, 0.23 ms on an H200, against
/// 1.5 us an item on the host. Several calls share the threads, and so do several devices.
const BLINDED_BY_A_THREAD: usize = 128;

/// The reciprocal of the part of a device that chunks leave free for the short launches of their
/// neighbours, if that does not add a chunk.
///
/// Without this, short launches wait for free multiprocessors, and then delay the next long launch.
/// By time stamps with RSA-2048 on an H100, recombining takes 5 % of the device's time, and
/// blinding another 12 %.
const PART_FOR_RECOMBINING: usize = 16;

/// The same for blinded items, whose short launches blind and recombine.
const PART_FOR_BLINDING_TOO: usize = 5;

/// The fewest and the most items that a thread opens at a time.
///
/// Small enough that each thread gets some, and that none finishes its last items late. Large
/// enough to fill SIMD vectors, and to make the overhead of a part negligible.
const OPENED_AT_A_TIME: [usize; 2] = [16, 128];

impl Cuda {
    /// Computes the items of all `runs` with the kernels of a [class](Self::crt_class) that accepts
    /// the widths of their keys.
    pub(crate) fn run_crt<O: Destination, F: Feed<O>>(
        &self,
        class: CrtClass,
        shape: CrtShape,
        runs: &[CrtRun<'_>],
        feed: &F,
        output: O,
    ) -> Result<(), F::Error> {
        let batch = CrtBatch::new(self, class, shape, runs, feed);
        self.devices.run(&batch, output)
    }

    /// The kernels for exponentiations modulo numbers of `n_bits` bits with two factors of
    /// `prime_bits` bits. `None` if no device has them.
    pub(crate) fn crt_class(&self, n_bits: u32, prime_bits: u32) -> Option<CrtClass> {
        plan::crt_class(n_bits, prime_bits).filter(|class| {
            self.devices
                .in_use()
                .any(|device| class.runs_on(&device.info))
        })
    }

    /// The estimated time in milliseconds for `count` exponentiations in pairs modulo two factors
    /// on the devices. `widths` are those of the products and of the factors, in bits. `None` if
    /// none has a kernel.
    pub(crate) fn predicted_halves_ms(
        &self,
        (product_bits, bits): (u32, u32),
        exponent_bits: u32,
        count: usize,
    ) -> Option<f64> {
        let class = self.crt_class(product_bits, bits)?;
        self.devices.forecast(count.div_ceil(2), |device, share| {
            let plan = Plan::of_halves(&class, exponent_bits, share, device);
            plan.map(|plan| plan.milliseconds)
        })
    }
}

struct CrtBatch<'a, F> {
    class: CrtClass,
    /// The number of devices that share the feed's threads, at least one.
    devices: usize,
    shape: CrtShape,
    runs: &'a [CrtRun<'a>],
    feed: Feeding<'a, F>,
    #[cfg(test)]
    tampering: Tampering<'a>,
}

/// The kernels and key records with which a device computes its share.
struct Share {
    kernels: CrtKernels,
    loaded: Loaded,
    window: Window,
    /// For each run of items with one key: the last item, and the index of the key's record in the
    /// table.
    key_indices: Vec<(usize, u32)>,
    /// The largest chunk that the host blinds, in items.
    blinded_by_host: usize,
}

impl<O: Destination, F: Feed<O>> Job<O> for CrtBatch<'_, F> {
    type Share = Share;
    type Chunk = Vec<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        let plan = Plan::of_halves(&self.class, self.shape.exponent_bits, count, device)?;
        Some(plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<(Share, ChunkLens), F::Error> {
        let device = call.device;
        let (class, exponent_bits) = (&self.class, self.shape.exponent_bits);
        let plan = Plan::of_halves(class, exponent_bits, count, &device.info);
        let plan = plan.expect("a device with a share has a kernel");
        let table = call.table(class.records());
        let key_indices = self.key_indices(&table);
        let key_indices = key_indices.map_err(|error| device.fault(error))?;
        let mut loaded = Loaded {
            kernels: Vec::with_capacity(4),
            records: Some(table.hold()),
        };
        let mut load = |entry| Grid::load(entry, device, &mut loaded);
        let kernels = CrtKernels {
            halves: load(plan.entry)?,
            recombine: load(class.recombine)?,
            join: load(class.join)?,
            blind: load(class.blind)?,
            records: class.records(),
        };
        // An instance of the kernel is half of an item.
        let resident = kernels.halves.resident_instances() / 2;
        let per_block = plan.entry.image.instances_per_block.div_ceil(2);
        let part = match self.feed.feed.is_blinded() {
            true => PART_FOR_BLINDING_TOO,
            false => PART_FOR_RECOMBINING,
        };
        // If the items fit on the device at once, two halves need less host work at the start and
        // the end. For larger shares, full chunks make fewer threads wait for each other.
        let lens = match count > resident {
            true => ChunkLens {
                most: resident,
                least: resident - resident / part,
                per_block,
            },
            false => ChunkLens::halves(resident, per_block),
        };
        let sharing = call.calls * self.devices;
        let share = Share {
            kernels,
            loaded,
            window: plan.window,
            key_indices,
            blinded_by_host: BLINDED_BY_A_THREAD * self.feed.threads.count() / sharing,
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
        let operands = match self.feed.feed.is_blinded() {
            false => Operands::Same,
            true if chunk.len() <= share.blinded_by_host => Operands::Given,
            true => Operands::Blinded,
        };
        let what = CrtChunk {
            count: chunk.len(),
            shape: self.shape,
            window: share.window,
            operands,
        };
        let work = share.kernels.exponentiate(&what);
        #[cfg(test)]
        if let Some(injection) = self.tampering.injection.cloned() {
            let chunk = chunk.clone();
            slot.inject(alloc::boxed::Box::new(move |point| {
                injection(&chunk, point);
            }));
        }
        let (blinds, loaded) = (operands == Operands::Given, &share.loaded);
        let write_indices = |input: &mut [u64]| self.write_indices(share, chunk, &work, input);
        let _alone = lock(submitting);
        self.feed
            .submit(chunk, blinds, &work, loaded, slot, write_indices)
    }

    fn take(&self, _: &Share, parts: Self::Chunk, _: &Range<usize>, words: &mut [u64], output: O) {
        let read = |_, _: [&_; 2], words: &_, result: &mut _| copy_out(words, result);
        self.feed.take(parts, words, output, read);
    }
}

impl<'a, F> CrtBatch<'a, F> {
    fn new(
        cuda: &'a Cuda,
        class: CrtClass,
        shape: CrtShape,
        runs: &'a [CrtRun<'a>],
        feed: &'a F,
    ) -> Self {
        Self {
            class,
            devices: cuda.devices.in_use().count(),
            shape,
            runs,
            feed: Feeding {
                feed,
                threads: cuda.host_pool(),
                limbs: (shape.n_bits / Limb::BITS) as usize,
                part: OPENED_AT_A_TIME,
            },
            #[cfg(test)]
            tampering: Tampering::default(),
        }
    }

    /// The indices of the keys in the table. Keys without a record get one.
    fn key_indices(&self, table: &TableInUse<'_>) -> Result<Vec<(usize, u32)>, DriverError> {
        let mut indices = Vec::with_capacity(self.runs.len());
        let mut end = 0;
        for CrtRun {
            len,
            key,
            residence,
        } in self.runs
        {
            let write = |record: &mut [u64]| self.class.write_record(key, record);
            end += len;
            indices.push((end, table.index_of(residence, write)?));
        }
        Ok(indices)
    }

    /// Writes the key indices of a chunk.
    fn write_indices(&self, share: &Share, chunk: &Range<usize>, work: &Work, input: &mut [u64]) {
        let [indices] = places(input, [work.indices]);
        let runs = &share.key_indices;
        let mut runs = runs[runs.partition_point(|run| run.0 <= chunk.start)..]
            .iter()
            .peekable();
        let index_of = |item| {
            while runs.next_if(|run| run.0 <= item).is_some() {}
            runs.peek().map_or(0, |run| run.1)
        };
        write_indices(chunk.clone().map(index_of), indices);
        #[cfg(test)]
        if let Some(change) = self.tampering.inputs {
            change(places(input, [work.numbers[0], work.indices]));
        }
    }
}

#[cfg(test)]
mod tests;
