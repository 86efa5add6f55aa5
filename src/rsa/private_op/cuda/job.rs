//! Private operations as a job for devices: from the representatives to the candidates in one go.
//!
//! Around each chunk the host's threads do what is theirs: they open lanes while the chunk before is computed, and
//! check candidates while the chunk after is.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crypto_bigint::Limb;
use cudarc::driver::DriverError;

use super::super::batch::Batch;
use super::super::blinding::Operands;
use super::super::group::{PrimeClass, crt, runs};
use super::super::opened::Opened;
use super::super::places::{Place, Room};
use crate::backend::cuda::family::crt::{
    CrtChunk, CrtClass, CrtKernels, CrtModulus, CrtWork, Operands as Form,
};
use crate::backend::cuda::plan::CrtPlan;
use crate::backend::cuda::runtime::device::Call;
use crate::backend::cuda::runtime::launch::Loaded;
use crate::backend::cuda::runtime::layout::Part;
use crate::backend::cuda::runtime::pipeline::{ChunkLens, Forecast, Job, Prepared, Stop};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::records::TableInUse;
use crate::backend::cuda::runtime::slot::{Outgoing, Slot};
#[cfg(test)]
use crate::backend::cuda::runtime::strike::Reach;
use crate::backend::cuda::words::{HostPool, copy_in, copy_out, write_indices};
use crate::engine::Engine;
use crate::rsa::Error;
use crate::secret::Secret;
use crate::window::Window;

/// Private operations with keys of one class.
pub(super) struct CrtJob<'a> {
    pub(super) classes: &'a [CrtClass],
    pub(super) threads: HostPool<'a>,
    /// How many devices there are, at least one, to which the threads belong.
    pub(super) devices: usize,
    pub(super) prime: PrimeClass,
    pub(super) batch: &'a Batch<'a>,
    /// Blinds and checks, on the host.
    pub(super) engine: &'a dyn Engine,
    /// Those of the batch's lanes that are computed. Chunks count from the first of them.
    pub(super) lanes: Range<usize>,
    pub(super) inject_fault: InjectFault<'a>,
    #[cfg(test)]
    pub(super) strike: Option<Strike>,
    /// Whether a lane has failed its check.
    pub(super) any_fault: AtomicBool,
}

/// What a part of the lanes is computed from, if the host has made it.
type Made = Option<Operands>;

/// So many lanes each thread of the host blinds sooner than a device, which takes as long for one as for thousands: measured
/// with RSA-2048, 0.23 ms on an H200 against 1.5 us a lane. Several calls share the threads, and so do several devices.
const BLINDED_BY_A_THREAD: usize = 128;

/// Of so many parts of a device chunks leave one, if that makes no more of them, to the short launches of those before and after, which otherwise
/// wait for room and then hold up the next long launch: by time stamps with RSA-2048 on an H100, recombining is 5 % of what the device does,
/// and blinding is another 12 %.
const PART_FOR_RECOMBINING: usize = 16;

/// Of blinded lanes: for both.
const PART_FOR_BLINDING_TOO: usize = 5;

/// Chunks of fewer lanes are copied by the thread that drives the device.
const COPIED_BY_ONE_THREAD: usize = 1024;

/// What tests do to the inputs of each chunk on their way to the device: the words of the representatives, and of the
/// indices of keys, two to a word.
pub(super) type InjectFault<'a> = &'a (dyn Fn([&mut [u64]; 2]) + Sync);

/// What tests do to each chunk's memory on the device, between launches; with the lanes of the batch that it has.
#[cfg(test)]
pub(super) type Strike = alloc::sync::Arc<dyn Fn(&Range<usize>, &Reach<'_>) + Send + Sync>;

/// What a device computes its share with.
pub(super) struct Share {
    kernels: CrtKernels,
    loaded: Loaded,
    window: Window,
    /// For each run of lanes with one key the last of them and the index of its key in the table.
    key_indices: Vec<(usize, u32)>,
    /// Held while a chunk for this device is opened and sent off: two at a time would both be late. Those for others wait for
    /// nobody but the host's threads.
    opening: Mutex<()>,
    /// Chunks of at most so many lanes are blinded by the host.
    blinded_by_host: usize,
}

/// A chunk that a device works on: parts of its lanes, each as a thread has opened it, and where the candidates are in
/// the output.
pub(super) struct UnderWay {
    parts: Vec<Opened>,
    candidates: Part,
}

impl<P: Place> Job<P> for CrtJob<'_> {
    type Share = Share;
    type Chunk = UnderWay;
    type Error = Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast> {
        let plan = CrtPlan::new(self.classes, self.prime.bits, count, device)?;
        Some(plan.halves.forecast)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Share>, Error> {
        let device = call.device();
        let plan = CrtPlan::new(self.classes, self.prime.bits, count, device.info());
        let Some(CrtPlan { class, halves }) = plan else {
            unreachable!("a device without a forecast has no share");
        };
        let table = call.table(class.records());
        let key_indices = self.key_indices(class, &table);
        let sharing = call.calls() * self.devices;
        let entries = [halves.entry, class.recombine, class.join, class.blind];
        let [exp, recombine, join, blind] = entries.map(|entry| device.kernel(&entry.image));
        let (exp, recombine, join, blind) = (exp?, recombine?, join?, blind?);
        let kernels = CrtKernels {
            halves: (halves.entry, exp.grid()),
            recombine: (class.recombine, recombine.grid()),
            join: (class.join, join.grid()),
            blind: (class.blind, blind.grid()),
            records: class.records(),
        };
        // An instance of the kernel is a half.
        let resident = exp.grid().resident_instances() / 2;
        let per_block = halves.entry.image.instances_per_block.div_ceil(2);
        let part = match self.batch.is_blinded {
            true => PART_FOR_BLINDING_TOO,
            false => PART_FOR_RECOMBINING,
        };
        Ok(Prepared {
            resident,
            // Where one fills the device, two halves begin and end with less of the host's work; of many, whole ones
            // have fewer threads wait for each other.
            chunks: match count > resident {
                true => ChunkLens {
                    most: resident,
                    least: resident - resident / part,
                    per_block,
                },
                false => ChunkLens::halves(resident, per_block),
            },
            share: Share {
                kernels,
                loaded: Loaded {
                    kernels: vec![exp, recombine, join, blind],
                    records: Some(table.hold()),
                },
                window: halves.window,
                key_indices: key_indices.map_err(|error| device.fault(error))?,
                opening: Mutex::default(),
                blinded_by_host: BLINDED_BY_A_THREAD * self.threads.count() / sharing,
            },
        })
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<UnderWay, Stop<Error>> {
        let operands = match self.batch.is_blinded {
            false => Form::Same,
            true if chunk.len() <= share.blinded_by_host => Form::Given,
            true => Form::Blinded,
        };
        let what = CrtChunk {
            count: chunk.len(),
            n_bits: self.batch.class.n_width,
            prime_bits: self.prime.width,
            exponent_bits: self.prime.bits,
            public_exponent: self.batch.class.e_low,
            window: share.window,
            operands,
        };
        let work = share.kernels.exponentiate(&what);
        let alone = share.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.open(chunk, operands).map_err(Stop::Batch)?;
        let fill = |mut inputs: Outgoing<'_>| {
            self.fill(share, chunk, &opened, &work, inputs.words());
            inputs.send()
        };
        #[cfg(test)]
        if let Some(strike) = self.strike.clone() {
            let chunk = chunk.clone();
            slot.strike(alloc::boxed::Box::new(move |reach| strike(&chunk, reach)));
        }
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        drop(alone);
        Ok(UnderWay {
            parts: opened.into_iter().map(|(opened, _)| opened).collect(),
            candidates: work.product,
        })
    }

    /// Checks the candidates, and puts those that pass to their places.
    fn take(
        &self,
        UnderWay { parts, candidates }: UnderWay,
        chunk: &Range<usize>,
        output: &mut [u64],
        places: &mut [P],
    ) {
        let words = &mut output[candidates.range()];
        let (size, limbs) = (words.len() / chunk.len(), self.batch.class.limbs());
        let mut rest = (words, places);
        let parts = parts.into_iter().map(|opened| {
            let len = opened.range.len();
            let (words, places) = core::mem::take(&mut rest);
            let (words, other_words) = words.split_at_mut(len * size);
            let (places, other_places) = places.split_at_mut(len);
            rest = (other_words, other_places);
            (opened, words, places)
        });
        self.threads
            .each_item(parts.collect(), |(opened, words, places)| {
                let mut candidates = Secret::new(vec![Limb::ZERO; places.len() * limbs]);
                let numbers = candidates.chunks_exact_mut(limbs);
                for (number, words) in numbers.zip(words.chunks_exact_mut(size)) {
                    copy_out(words, number);
                    words.fill(0);
                }
                opened.close(
                    self.engine,
                    self.batch,
                    &candidates,
                    P::places(Room::Made(places)),
                );
                if places.iter().any(is_fault) {
                    self.any_fault.store(true, Relaxed);
                }
            });
    }
}

/// Whether a lane has failed its check.
pub(super) fn is_fault(place: &impl Place) -> bool {
    matches!(place.error(), Some(Error::Fault { .. }))
}

impl CrtJob<'_> {
    /// Opens the lanes of a chunk on all threads, in parts, each with the operands if they are to be given.
    fn open(&self, chunk: &Range<usize>, operands: Form) -> Result<Vec<(Opened, Made)>, Error> {
        let range = self.lanes.start + chunk.start..self.lanes.start + chunk.end;
        let len = self.part_len(chunk.len());
        let end = range.end;
        let starts: Vec<_> = range.step_by(len).collect();
        let opened = self.threads.map_items(starts, |start| {
            let opened = Opened::new(self.batch, start..(start + len).min(end))?;
            let made = (operands == Form::Given).then(|| opened.operands(self.engine, self.batch));
            Ok((opened, made))
        });
        opened.into_iter().collect()
    }

    /// How many lanes a thread takes at a time: few enough for each to have some, and for none to be late with its last ones when the others are done, for
    /// threads share cores; enough to fill vectors, and for what a part costs besides to be little.
    fn part_len(&self, count: usize) -> usize {
        const FEWEST: usize = 16;
        const MOST: usize = 128;
        count
            .div_ceil(self.threads.count())
            .clamp(FEWEST, MOST)
            .next_multiple_of(8)
    }

    /// The indices of the lanes' keys in the table, which get a place there if they have none yet.
    fn key_indices(
        &self,
        class: &CrtClass,
        table: &TableInUse<'_>,
    ) -> Result<Vec<(usize, u32)>, DriverError> {
        let mut indices = Vec::new();
        let mut end = 0;
        for run in runs(&self.batch.keys[self.lanes.clone()]) {
            let (parts, crt) = (run[0].parts(), crt(&run[0]));
            let modulus = CrtModulus {
                p: crt.p(),
                exponent_p: &crt.dp_less_1,
                q: crt.q(),
                exponent_q: &crt.dq_less_1,
                qinv: &crt.qinv,
                n: parts.n.as_ref(),
            };
            let write = |record: &mut [u64]| class.family().write_record(class, &modulus, record);
            end += run.len();
            indices.push((end, table.index_of(&parts.on_devices, write)?));
        }
        Ok(indices)
    }

    /// Writes numbers and the indices of keys to `input`, all of it.
    fn fill(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        opened: &[(Opened, Made)],
        work: &CrtWork,
        input: &mut [u64],
    ) {
        let limbs = self.batch.class.limbs();
        let size = work.first.len() / chunk.len();
        let range = |part: Option<Part>| part.map_or(0..0, Part::range);
        let parts = [Some(work.first), work.second].map(range);
        let Ok(parts) = input.get_disjoint_mut(parts) else {
            unreachable!("parts of a layout do not overlap");
        };
        // What is not there has no words for any lane.
        let mut rest = parts;
        let lanes = opened.iter().map(|(opened, made)| {
            let places = rest.each_mut().map(|words| {
                let len = (opened.range.len() * size).min(words.len());
                let (head, tail) = core::mem::take(words).split_at_mut(len);
                *words = tail;
                head
            });
            let numbers: [&[Limb]; 2] = match (made, &opened.blinds) {
                (Some(made), _) => [&made.bases, &made.factors],
                (None, Some(blinds)) => [&opened.representatives, &blinds.numbers],
                (None, None) => [&opened.representatives, &[]],
            };
            (places, numbers)
        });
        // Waking threads takes longer than copying a few numbers.
        let threads = match chunk.len() {
            0..COPIED_BY_ONE_THREAD => HostPool(None),
            _ => self.threads,
        };
        threads.each_item(lanes.collect(), |(places, numbers)| {
            for (words, numbers) in places.into_iter().zip(numbers) {
                let numbers = numbers.chunks_exact(limbs);
                for (number, place) in numbers.zip(words.chunks_exact_mut(size)) {
                    copy_in(number, place);
                }
            }
        });
        let first = share
            .key_indices
            .partition_point(|run| run.0 <= chunk.start);
        let mut run = share.key_indices[first..].iter().peekable();
        let indices = chunk.clone().map(|lane| {
            while run.next_if(|run| run.0 <= lane).is_some() {}
            run.peek().map_or(0, |run| run.1)
        });
        write_indices(indices, &mut input[work.record_index.range()]);

        let parts = [work.first, work.record_index].map(Part::range);
        if let Ok(parts) = input.get_disjoint_mut(parts) {
            (self.inject_fault)(parts);
        }
    }
}
