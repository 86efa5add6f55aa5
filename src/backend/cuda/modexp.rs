//! Modular exponentiations as a device job: the conversion between instances of a group and words
//! in buffers.

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::BorrowMut;
use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::{WithLimbs, with_limbs};
use batch_modexp_core::{BatchModExp, Error, ModExp};
use crypto_bigint::modular::{FixedMontyParams, MontyParams};
use crypto_bigint::{Limb, Odd, Uint, Unsigned};
use cudarc::driver::DriverError;

use super::family::entry::{Entry, Registry};
use super::family::{ModExpChunk, ModExpWork};
use super::group::Group;
use super::inputs::Parts;
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::Part;
use super::runtime::module::Grid;
use super::runtime::pipeline::{ChunkLens, Forecast, Job, Prepared, Stop};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::{Outgoing, Slot};
use super::words::{HostPool, NonTemporal, Rows};

impl<U: Unsigned + Sync + Send> Group<'_, ModExp<'_, U>> {
    /// Computes the group on the host.
    pub(super) fn compute_on<B>(
        &self,
        host: &B,
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error>
    where
        B: BatchModExp<U, Error = Error>,
    {
        self.compute_with(out, |instances, results| {
            host.batch_mod_exp(instances, exponent_bits, results)
        })
    }
}

/// The exponentiations of a group.
pub(super) struct ModExpJob<'a, U: Unsigned> {
    pub(super) group: &'a Group<'a, ModExp<'a, U>>,
    /// The length of the exponents, which is public.
    pub(super) exponent_bits: u32,
    pub(super) registry: Registry,
    pub(super) tuning: Tuning,
    pub(super) threads: HostPool<'a>,
    /// Members whose moduli a family refused.
    pub(super) refused: Mutex<Vec<usize>>,
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
            resident,
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
    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        Plan::new(
            self.registry,
            self.group.bits,
            self.exponent_bits,
            count,
            device,
            self.tuning,
        )
    }

    /// Writes and sends all inputs of a chunk.
    fn fill(
        &self,
        entry: &Entry,
        chunk: &Range<usize>,
        work: &ModExpWork,
        inputs: Outgoing<'_>,
    ) -> Result<(), DriverError> {
        let parts = Parts {
            numbers: [work.base, work.exponent],
            modulus_index: work.modulus_index,
            records: work.moduli,
        };
        self.group.fill(
            chunk,
            inputs,
            &parts,
            self.threads,
            |_, instance, [base, exponent], stores| {
                stores.copy_in(instance.base.as_limbs(), base);
                stores.copy_in(instance.exponent.as_limbs(), exponent);
            },
            |instance, record, stores| {
                write_modulus(entry, instance.params, record, stores);
            },
        )
    }

    /// Moves powers to their places, each as wide as its modulus, and records refused members.
    fn store<P: BorrowMut<U> + Send>(
        &self,
        entry: &Entry,
        chunk: &Range<usize>,
        words: &mut [u64],
        out: &mut [P],
    ) {
        let size = words.len() / chunk.len();
        let rows = Rows::new(words, size);
        self.threads.each_with_row(out, rows, |i, out, words| {
            let member = chunk.start + i;
            if entry.family.is_refused(words) {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                refused.push(member);
            }
            self.group.store(member, words, out.borrow_mut());
        });
    }
}

impl<'p, U, P> Job<&'p mut [P]> for ModExpJob<'_, U>
where
    U: Unsigned + Sync + Send,
    P: BorrowMut<U> + Send,
{
    type Share = Share;
    type Chunk = Submitted;
    type Error = Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast> {
        self.plan(device, count).map(|plan| plan.forecast)
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
            r2_bits: entry.r2_bits(self.group.bits),
            window: share.plan.window,
        };
        let work = entry.family.mod_exp(entry, share.grid, &what);
        let fill = |inputs: Outgoing<'_>| self.fill(entry, chunk, &work, inputs);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok(Submitted {
            entry,
            power: work.power,
        })
    }

    fn take(
        &self,
        chunk: Submitted,
        members: &Range<usize>,
        words: &mut [u64],
        places: &'p mut [P],
    ) {
        let powers = &mut words[chunk.power.range()];
        self.store(chunk.entry, members, powers, places);
    }
}

/// Writes the record of a modulus.
pub(super) fn write_modulus<'w, U: Unsigned>(
    entry: &Entry,
    params: &MontyParams<U>,
    record: &'w mut [u64],
    stores: &mut NonTemporal<'w>,
) {
    let modulus = params.modulus().as_ref().as_limbs();
    let bits = modulus.len() as u32 * Limb::BITS;
    let r2_bits = entry.r2_bits(bits);
    let wide = (r2_bits != bits).then(|| wide_r2(modulus, r2_bits));
    let r2 = wide
        .as_deref()
        .map_or(params.r2().as_limbs(), Vec::as_slice);
    let family = entry.family;
    family.write_modulus(entry, modulus, r2, record, stores);
}

/// `2^(2 * r2_bits)` modulo a modulus narrower than `r2_bits`, in constant time.
fn wide_r2(modulus: &[Limb], r2_bits: u32) -> Secret<Vec<Limb>> {
    let limbs = (r2_bits / Limb::BITS) as usize;
    with_limbs(limbs, WideR2 { modulus, limbs })
}

struct WideR2<'a> {
    modulus: &'a [Limb],
    limbs: usize,
}

impl WithLimbs for WideR2<'_> {
    type Output = Secret<Vec<Limb>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        assert_eq!(LIMBS, self.limbs, "classes have widths that numbers have");
        let mut wide = Secret::new(Uint::<LIMBS>::ZERO);
        wide.as_mut_limbs()[..self.modulus.len()].copy_from_slice(self.modulus);
        // A copy of an odd number.
        let params = FixedMontyParams::new(Odd::new(*wide).expect("an odd modulus"));
        let params = Secret::new(params);
        Secret::new(params.r2().as_limbs().to_vec())
    }
}

#[cfg(test)]
mod tests;
