//! A group of private operations as a job for devices: from the representatives to the results, each with the
//! device's verdict, in one go.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crypto_bigint::BoxedUint;
use cudarc::driver::DriverError;

use super::super::group::{PrimeClass, crt, runs};
use super::super::op::PrivateOp;
use crate::Error;
use crate::backend::cuda::family::crt::{CrtChunk, CrtClass, CrtKernels, CrtModulus, CrtWork};
use crate::backend::cuda::plan::CrtPlan;
use crate::backend::cuda::runtime::device::InUse;
use crate::backend::cuda::runtime::launch::Loaded;
use crate::backend::cuda::runtime::layout::Part;
use crate::backend::cuda::runtime::pipeline::{Forecast, Job, Prepared};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::records::HeldTable;
use crate::backend::cuda::runtime::slot::Slot;
use crate::backend::cuda::words::{HostPool, copy_in, copy_out, nth, write_indices};
use crate::secret::Secret;
use crate::window::Window;

/// Private operations with keys that have all public numbers but n in common.
pub(super) struct CrtJob<'a> {
    pub(super) classes: &'a [CrtClass],
    pub(super) threads: HostPool<'a>,
    /// The width of n in bits.
    pub(super) n_bits: u32,
    pub(super) prime: PrimeClass,
    pub(super) public_exponent: u64,
    /// The lanes, of which the keys are used.
    pub(super) ops: &'a [PrivateOp<'a>],
    /// The number of each lane, below n and as wide, in place of its own.
    pub(super) representatives: Vec<&'a BoxedUint>,
    pub(super) inject_fault: InjectFault<'a>,
}

/// What tests do to the inputs of each chunk on their way to the device: the words of the representatives, of
/// their copies, and of the indices of keys, two to a word.
pub(super) type InjectFault<'a> = &'a (dyn Fn([&mut [u64]; 3]) + Sync);

/// A result, or `None` for a lane that did not pass the device's check.
pub(super) type Verdict = Option<Secret<BoxedUint>>;

/// What a device computes its share with.
pub(super) struct Share {
    kernels: CrtKernels,
    loaded: Loaded,
    window: Window,
    /// The first lane of the share, and for each of its lanes the index of its key in the table.
    start: usize,
    key_indices: Vec<u32>,
}

impl Job<Verdict> for CrtJob<'_> {
    type Share = Share;
    /// Where the powers and the verdicts are in the output.
    type Chunk = (Part, Part);

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast> {
        let plan = CrtPlan::new(self.classes, self.prime.bits, count, device)?;
        Some(plan.halves.forecast)
    }

    fn prepare(&self, slots: &InUse<'_>, share: &Range<usize>) -> Result<Prepared<Share>, Error> {
        let device = slots.device();
        let plan = CrtPlan::new(self.classes, self.prime.bits, share.len(), device.info());
        let Some(CrtPlan { class, halves }) = plan else {
            unreachable!("a device without a forecast has no share");
        };
        let table = slots.table(class.records());
        let key_indices = self.key_indices(share, class, &table);
        let entries = [halves.entry, class.recombine, class.check, class.blind];
        let [exp, recombine, check, blind] = entries.map(|entry| device.kernel(&entry.image));
        let (exp, recombine, check, blind) = (exp?, recombine?, check?, blind?);
        let kernels = CrtKernels {
            halves: (halves.entry, exp.grid()),
            recombine: (class.recombine, recombine.grid()),
            check: (class.check, check.grid()),
            blind: (class.blind, blind.grid()),
            records: class.records(),
        };
        // An instance of the kernel is a half.
        let resident = exp.grid().resident_instances() / 2;
        Ok(Prepared {
            resident,
            chunk: resident,
            per_block: halves.entry.image.instances_per_block.div_ceil(2),
            share: Share {
                kernels,
                loaded: Loaded {
                    kernels: vec![exp, recombine, check, blind],
                    records: Some(table.into_table()),
                },
                window: halves.window,
                start: share.start,
                key_indices: key_indices.map_err(|error| device.fault(error))?,
            },
        })
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<(Part, Part), DriverError> {
        let what = CrtChunk {
            count: chunk.len(),
            n_bits: self.n_bits,
            prime_bits: self.prime.width,
            exponent_bits: self.prime.bits,
            public_exponent: self.public_exponent,
            window: share.window,
            is_blinded: false,
        };
        let work = share.kernels.exponentiate(&what);
        let fill = |input: &mut [u64]| self.fill(share, chunk, &work, input);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok((work.power, work.verdict))
    }

    /// Copies the results that passed the device's check.
    fn take(
        &self,
        (power, verdict): (Part, Part),
        chunk: &Range<usize>,
        output: &[u64],
        places: &mut [Verdict],
    ) {
        let (powers, verdicts) = (&output[power.range()], &output[verdict.range()]);
        let size = powers.len() / chunk.len();
        let passed = |lane: usize| (verdicts[lane / 2] >> (32 * (lane % 2))) as u32 == 1;
        self.threads.each(places, |lane, place| {
            *place = passed(lane).then(|| {
                let mut value = Secret::new(BoxedUint::zero_with_precision(self.n_bits));
                copy_out(&powers[nth(lane, size)], value.as_mut_limbs());
                value
            });
        });
    }
}

impl CrtJob<'_> {
    /// The indices of the lanes' keys in the table. Neighbours with the same key are looked up once.
    fn key_indices(
        &self,
        share: &Range<usize>,
        class: &CrtClass,
        table: &HeldTable<'_>,
    ) -> Result<Vec<u32>, DriverError> {
        let mut indices = Vec::with_capacity(share.len());
        for run in runs(&self.ops[share.clone()]) {
            let (parts, crt) = (run[0].key.parts(), crt(&run[0]));
            let modulus = CrtModulus {
                p: crt.p(),
                dp: &crt.dp,
                q: crt.q(),
                dq: &crt.dq,
                qinv: &crt.qinv,
                n: parts.n.as_ref(),
            };
            let write = |record: &mut [u64]| class.family().write_record(class, &modulus, record);
            let index = table.index_of(&parts.on_devices, write)?;
            indices.extend(run.iter().map(|_| index));
        }
        Ok(indices)
    }

    /// Writes representatives, their copies and the indices of their keys to `input`, all of it.
    fn fill(&self, share: &Share, chunk: &Range<usize>, work: &CrtWork, input: &mut [u64]) {
        let representatives = &self.representatives[chunk.clone()];
        let (Some(base_copy), None) = (work.base_copy, work.blind) else {
            unreachable!("numbers that are not blinded have a copy");
        };
        // Twice from the caller's number: a fault in one of the copies shows in the check.
        for copy in [work.base, base_copy] {
            let size = copy.len() / chunk.len();
            self.threads
                .each_chunk(&mut input[copy.range()], size, |lane, place| {
                    copy_in(representatives[lane].as_limbs(), place);
                });
        }
        let indices = &share.key_indices[chunk.start - share.start..chunk.end - share.start];
        write_indices(indices, &mut input[work.record_index.range()]);

        let parts = [work.base, base_copy, work.record_index].map(Part::range);
        if let Ok(parts) = input.get_disjoint_mut(parts) {
            (self.inject_fault)(parts);
        }
    }
}
