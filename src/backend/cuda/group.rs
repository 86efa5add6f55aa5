//! Groups of instances of equal width, which devices compute together, and their moduli.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use batch_modexp_core::width::clear;
use batch_modexp_core::{Error, ModExp};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Integer as _, Limb, Unsigned, Zero as _};
use zeroize::Zeroize;

use super::words::{HostPool, copy_out};

/// The properties that all kinds of instances share.
pub(super) trait Instance: Copy + Sync {
    /// The type of its numbers.
    type Number: Unsigned + Sync + Send;

    /// Its modulus with the Montgomery constants.
    fn params(&self) -> &MontyParams<Self::Number>;
}

impl<U: Unsigned + Sync + Send> Instance for ModExp<'_, U> {
    type Number = U;

    fn params(&self) -> &MontyParams<U> {
        self.params
    }
}

/// Instances of one width.
pub(super) struct Group<'a, I> {
    batch: &'a [I],
    members: Members,
    /// The width of the moduli in bits.
    pub(super) bits: u32,
}

/// The instances of a batch that belong to a group.
enum Members {
    All,
    /// The instances at these indices, ascending.
    At(Vec<usize>),
}

/// The places for the results of a group.
pub(super) enum Places<'o, U> {
    /// All places: the batch has no other instances.
    All(&'o mut [U]),
    At(Vec<&'o mut U>),
}

impl<'a, I: Instance> Group<'a, I> {
    fn of_one_width(batch: &'a [I], limbs: usize) -> Self {
        Self {
            batch,
            members: Members::All,
            bits: limbs as u32 * Limb::BITS,
        }
    }

    /// One group for each width, narrowest first.
    pub(super) fn by_width(batch: &'a [I], threads: HostPool<'_>) -> Vec<Self> {
        let nothing = |_, _: &[I]| None::<Infallible>;
        Self::by_width_unless(batch, threads, nothing).unwrap_or_else(|never| match never {})
    }

    /// Groups the batch by width and checks it in the same pass, because starting all threads takes
    /// as long as checking thousands of instances.
    ///
    /// `wrong` gets a part of the batch and the index of its first instance, and returns an error.
    /// The first error in the order of the batch is returned.
    pub(super) fn by_width_unless<E: Send>(
        batch: &'a [I],
        threads: HostPool<'_>,
        wrong: impl Fn(usize, &[I]) -> Option<E> + Sync,
    ) -> Result<Vec<Self>, E> {
        let [first, ..] = batch else {
            return Ok(Vec::new());
        };
        let width = limbs(first);
        let is_one = AtomicBool::new(true);
        let found = threads.first(batch, |first, part| {
            if part.iter().any(|instance| limbs(instance) != width) {
                is_one.store(false, Relaxed);
            }
            wrong(first, part)
        });
        match found {
            Some(error) => Err(error),
            None if is_one.into_inner() => Ok(Vec::from([Self::of_one_width(batch, width)])),
            None => Ok(Self::of_several_widths(batch)),
        }
    }

    fn of_several_widths(batch: &'a [I]) -> Vec<Self> {
        let mut widths = BTreeMap::<u32, Vec<usize>>::new();
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
                members: Members::At(members),
                bits,
            })
            .collect()
    }

    /// The number of instances.
    pub(super) fn len(&self) -> usize {
        match &self.members {
            Members::All => self.batch.len(),
            Members::At(members) => members.len(),
        }
    }

    /// The index in the batch of a member.
    pub(super) fn index(&self, member: usize) -> usize {
        match &self.members {
            Members::All => member,
            Members::At(members) => members[member],
        }
    }

    /// A group of some of the members.
    pub(super) fn only(&self, members: &[usize]) -> Self {
        let mut members: Vec<_> = members.iter().map(|&member| self.index(member)).collect();
        members.sort_unstable();
        Self {
            members: Members::At(members),
            ..*self
        }
    }

    pub(super) fn instance(&self, member: usize) -> &'a I {
        &self.batch[self.index(member)]
    }

    /// The elements of `out`, the results of the batch, for the members.
    pub(super) fn places<'o>(&self, out: &'o mut [I::Number]) -> Places<'o, I::Number> {
        let Members::At(members) = &self.members else {
            return Places::All(out);
        };
        let mut members = members.iter().peekable();
        let wanted = out.iter_mut().enumerate();
        let wanted = wanted.filter(|(i, _)| members.next_if(|&member| member == i).is_some());
        Places::At(wanted.map(|(_, place)| place).collect())
    }

    /// Computes the group on the host with `compute`.
    pub(super) fn compute_with(
        &self,
        out: &mut [I::Number],
        compute: impl FnOnce(&[I], &mut [I::Number]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let instances: Vec<_> = (0..self.len()).map(|i| *self.instance(i)).collect();
        let zero = |instance: &I| I::Number::zero_like(instance.params().modulus().as_ref());
        let mut results: Vec<_> = instances.iter().map(zero).collect();
        compute(&instances, &mut results)
            .map_err(|error| error.with_index(|index| self.index(index)))?;
        // Swap the results with the previous values, and then wipe those.
        for (member, result) in results.iter_mut().enumerate() {
            mem::swap(&mut out[self.index(member)], result);
        }
        clear(&mut results);
        Ok(())
    }

    /// Copies the result of a member to its place, as wide as its modulus.
    pub(super) fn store(&self, member: usize, words: &[u64], out: &mut I::Number) {
        let modulus = self.instance(member).params().modulus().as_ref();
        if out.as_limbs().len() != modulus.as_limbs().len() {
            out.as_mut_limbs().zeroize();
            *out = I::Number::from_limb_like(Limb::ZERO, modulus);
        }
        copy_out(words, out.as_mut_limbs());
    }
}

/// Limbs in the modulus of an instance.
fn limbs(instance: &impl Instance) -> usize {
    instance.params().modulus().as_ref().as_limbs().len()
}
