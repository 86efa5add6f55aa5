//! Modular exponentiations as a job for devices: the instances of a batch that are equally wide, and how they
//! become words in buffers.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Limb, Odd, Uint, Unsigned};
use zeroize::Zeroize;

use super::family::{ModExpChunk, ModExpWork};
use super::plan::{Plan, Tuning};
use super::registry::{Entry, Registry};
use super::runtime::device::InUse;
use super::runtime::launch::Loaded;
use super::runtime::layout::Part;
use super::runtime::module::Grid;
use super::runtime::pipeline::{Forecast, Job, Prepared, Stop, half_of};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{HostPool, copy_in, copy_out, nth, write_indices};
use crate::backend::clear;
use crate::secret::Secret;
use crate::width::{WithLimbs, with_limbs};
use crate::{BatchModExp, Error, ModExp};

/// Instances of one width, with the public numbers that they share.
pub(super) struct Group<'a, U: Unsigned> {
    batch: &'a [ModExp<'a, U>],
    /// Their indices in the batch, ascending.
    pub(super) members: Vec<usize>,
    /// The width of the moduli in bits.
    pub(super) bits: u32,
    pub(super) exponent_bits: u32,
}

impl<'a, U: Unsigned + Sync + Send> Group<'a, U> {
    /// One group for each width, the narrowest first.
    pub(super) fn by_width(
        batch: &'a [ModExp<'a, U>],
        exponent_bits: u32,
        threads: HostPool<'_>,
    ) -> Vec<Self> {
        let mut widths = BTreeMap::<u32, Vec<usize>>::new();
        let limbs = |x: &ModExp<'_, U>| x.params.modulus().as_ref().as_limbs().len();
        let [first, ..] = batch else {
            return Vec::new();
        };
        let width = limbs(first);
        let differ =
            |_, part: &[ModExp<'_, U>]| part.iter().find(|x| limbs(x) != width).map(|_| ());
        if threads.first(batch, differ).is_none() {
            return Vec::from([Self {
                batch,
                members: threads.collect(0..batch.len()),
                bits: width as u32 * Limb::BITS,
                exponent_bits,
            }]);
        }
        let mut start = 0;
        for run in batch.chunk_by(|a, b| limbs(a) == limbs(b)) {
            let members = widths
                .entry(limbs(&run[0]) as u32 * Limb::BITS)
                .or_default();
            members.extend(start..start + run.len());
            start += run.len();
        }
        widths
            .into_iter()
            .map(|(bits, members)| Self {
                batch,
                members,
                bits,
                exponent_bits,
            })
            .collect()
    }

    /// Some of the members as a group of their own.
    pub(super) fn only(&self, members: &[usize]) -> Self {
        let mut members: Vec<_> = members.iter().map(|&member| self.members[member]).collect();
        members.sort_unstable();
        Self { members, ..*self }
    }

    fn instance(&self, member: usize) -> &'a ModExp<'a, U> {
        &self.batch[self.members[member]]
    }

    /// The elements of `out` at the indices of the members.
    pub(super) fn places<'o>(&self, out: &'o mut [U], threads: HostPool<'_>) -> Vec<&'o mut U> {
        if self.members.len() == out.len() {
            return threads.collect(out);
        }
        let mut members = self.members.iter().peekable();
        let wanted = out.iter_mut().enumerate();
        wanted
            .filter(|(i, _)| members.next_if(|&&member| member == *i).is_some())
            .map(|(_, place)| place)
            .collect()
    }

    /// Computes the group on the host.
    pub(super) fn compute_on<B>(&self, host: &B, out: &mut [U]) -> Result<(), Error>
    where
        B: BatchModExp<U, Error = Error>,
    {
        let instances: Vec<_> = self.members.iter().map(|&i| self.batch[i]).collect();
        let zero = |instance: &ModExp<'_, U>| U::zero_like(instance.params.modulus().as_ref());
        let mut results: Vec<U> = instances.iter().map(zero).collect();
        host.batch_mod_exp(&instances, self.exponent_bits, &mut results)
            .map_err(|error| error.with_index(|index| self.members[index]))?;
        // Results change places with what stood there before, and then all of that is wiped.
        for (place, result) in self
            .places(out, HostPool(None))
            .into_iter()
            .zip(&mut results)
        {
            core::mem::swap(place, result);
        }
        clear(&mut results);
        Ok(())
    }

    /// The moduli of a chunk: one for each run of instances that share a reference, which is public.
    fn moduli(&self, chunk: &Range<usize>) -> Moduli {
        let mut distinct: Vec<usize> = Vec::with_capacity(chunk.len());
        let mut index = Vec::with_capacity(chunk.len());
        let params = |member: usize| ptr::from_ref(self.instance(member).params);
        for member in chunk.clone() {
            if distinct
                .last()
                .is_none_or(|&last| params(last) != params(member))
            {
                distinct.push(member);
            }
            index.push(distinct.len() as u32 - 1);
        }
        Moduli { distinct, index }
    }
}

/// Which modulus each instance of a chunk has.
struct Moduli {
    /// A member of the group for each of them.
    distinct: Vec<usize>,
    /// For each instance of the chunk, the index of its modulus among these.
    index: Vec<u32>,
}

/// The exponentiations of a group.
pub(super) struct ModExpJob<'a, U: Unsigned> {
    pub(super) group: &'a Group<'a, U>,
    pub(super) registry: Registry,
    pub(super) tuning: Tuning,
    pub(super) threads: HostPool<'a>,
    /// Members whose moduli a family has refused.
    pub(super) refused: Mutex<Vec<usize>>,
}

/// A chunk that is under way.
pub(super) struct Submitted {
    entry: &'static Entry,
    /// Where the powers are in the output.
    power: Part,
}

/// What a device computes its share with.
pub(super) struct Share {
    plan: Plan,
    grid: Grid,
    loaded: Loaded,
}

impl<'a, U: Unsigned + Sync + Send> ModExpJob<'a, U> {
    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let Group {
            bits,
            exponent_bits,
            ..
        } = *self.group;
        Plan::new(
            self.registry,
            bits,
            exponent_bits,
            count,
            device,
            self.tuning,
        )
    }

    /// Writes the inputs of a chunk, all of them.
    fn fill(
        &self,
        entry: &Entry,
        chunk: &Range<usize>,
        moduli: &Moduli,
        work: &ModExpWork,
        input: &mut [u64],
    ) {
        let group = self.group;
        let mut numbers = |part: Part, number: fn(&'a ModExp<'a, U>) -> &'a U| {
            let size = part.len() / chunk.len();
            self.threads
                .each_chunk(&mut input[part.range()], size, |i, place| {
                    let instance = group.instance(chunk.start + i);
                    copy_in(number(instance).as_limbs(), place);
                });
        };
        numbers(work.base, |x| x.base);
        numbers(work.exponent, |x| x.exponent);

        let r2_bits = entry.r2_bits(group.bits);
        let size = work.moduli.len() / moduli.distinct.len();
        self.threads
            .each_chunk(&mut input[work.moduli.range()], size, |i, record| {
                let params = group.instance(moduli.distinct[i]).params;
                let modulus = params.modulus().as_ref().as_limbs();
                if r2_bits == group.bits {
                    let r2 = params.r2().as_limbs();
                    entry.family.write_modulus(entry, modulus, r2, record);
                } else {
                    let r2 = wide_r2(modulus, r2_bits);
                    entry.family.write_modulus(entry, modulus, &r2, record);
                }
            });
        write_indices(&moduli.index, &mut input[work.modulus_index.range()]);
    }

    /// Copies powers to their places, each as wide as its modulus, and notes what was refused.
    fn store(&self, entry: &Entry, chunk: &Range<usize>, words: &[u64], out: &mut [&mut U]) {
        let size = words.len() / chunk.len();
        self.threads.each(out, |i, out| {
            let member = chunk.start + i;
            if entry.family.is_refused(&words[nth(i, size)]) {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                refused.push(member);
            }
            let modulus = self.group.instance(member).params.modulus().as_ref();
            if out.as_limbs().len() != modulus.as_limbs().len() {
                out.as_mut_limbs().zeroize();
                **out = U::from_limb_like(Limb::ZERO, modulus);
            }
            copy_out(&words[nth(i, size)], out.as_mut_limbs());
        });
    }
}

impl<U: Unsigned + Sync + Send> Job<&mut U> for ModExpJob<'_, U> {
    type Share = Share;
    type Chunk = Submitted;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast> {
        self.plan(device, count).map(|plan| plan.forecast)
    }

    fn prepare(&self, slots: &InUse<'_>, count: usize) -> Result<Prepared<Share>, Error> {
        let device = slots.device();
        let Some(plan) = self.plan(device.info(), count) else {
            unreachable!("a device without a forecast has no share");
        };
        let kernel = device.kernel(&plan.entry.image)?;
        let grid = kernel.grid();
        let (resident, per_block) = (
            grid.resident_instances(),
            plan.entry.image.instances_per_block,
        );
        Ok(Prepared {
            resident,
            chunk: if self.tuning.single_launch {
                count
            } else {
                half_of(resident, per_block)
            },
            per_block,
            share: Share {
                plan,
                grid,
                loaded: Loaded {
                    kernels: vec![kernel],
                    records: None,
                },
            },
        })
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Submitted, Stop> {
        let (entry, moduli) = (share.plan.entry, self.group.moduli(chunk));
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: moduli.distinct.len(),
            exponent_bits: self.group.exponent_bits,
            r2_bits: entry.r2_bits(self.group.bits),
            window: share.plan.window,
        };
        let work = entry.family.mod_exp(entry, share.grid, &what);
        let fill = |input: &mut [u64]| self.fill(entry, chunk, &moduli, &work, input);
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
        output: &[u64],
        places: &mut [&mut U],
    ) {
        let powers = &output[chunk.power.range()];
        self.store(chunk.entry, members, powers, places);
    }
}

/// `2^(2 * r2_bits)` modulo a modulus that is narrower than `r2_bits`, in constant time.
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
        // It is odd, being a copy of an odd number.
        let params = FixedMontyParams::new(Odd::new(*wide).expect("an odd modulus"));
        let params = Secret::new(params);
        Secret::new(params.r2().as_limbs().to_vec())
    }
}

#[cfg(test)]
mod tests;
