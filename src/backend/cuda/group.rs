//! The instances of a batch that are equally wide, which devices compute together, and their moduli.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use batch_modexp_core::width::clear;
use batch_modexp_core::{Error, ModExp, ModMul};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Integer as _, Limb, Unsigned, Zero as _};
use zeroize::Zeroize;

use super::words::{HostPool, copy_out};

/// What all instances have, whatever is computed of them.
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

impl<U: Unsigned + Sync + Send> Instance for ModMul<'_, U> {
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

/// Which instances of a batch a group has.
enum Members {
    All,
    /// Those at these indices, ascending.
    At(Vec<usize>),
}

/// Where the results of a group go.
pub(super) enum Places<'o, U> {
    /// Its batch has no other instances.
    All(&'o mut [U]),
    At(Vec<&'o mut U>),
}

impl<'a, I: Instance> Group<'a, I> {
    /// All of a batch, if it seems to be of one width: some of its instances are looked at.
    pub(super) fn supposed(batch: &'a [I]) -> Option<Self> {
        const SEEN: usize = 16;
        let width = limbs(batch.first()?);
        let mut seen = batch
            .iter()
            .step_by(batch.len().div_ceil(SEEN))
            .chain(batch.last());
        seen.all(|instance| limbs(instance) == width)
            .then(|| Self::of_one_width(batch, width))
    }

    pub(super) fn of_one_width(batch: &'a [I], limbs: usize) -> Self {
        Self {
            batch,
            members: Members::All,
            bits: limbs as u32 * Limb::BITS,
        }
    }

    /// One group for each width, the narrowest first.
    pub(super) fn by_width(batch: &'a [I], threads: HostPool<'_>) -> Vec<Self> {
        let nothing = |_, _: &[I]| None::<Infallible>;
        Self::by_width_unless(batch, threads, nothing).unwrap_or_else(|never| match never {})
    }

    /// The same unless something is `wrong` with the batch: what that says of the first of its parts, each given with the index of its first
    /// instance. Both in one pass: for all threads to begin takes as long as to look at thousands of instances.
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

    /// Whether its batch has no other instances.
    pub(super) fn is_all(&self) -> bool {
        matches!(self.members, Members::All)
    }

    /// How many instances there are.
    pub(super) fn len(&self) -> usize {
        match &self.members {
            Members::All => self.batch.len(),
            Members::At(members) => members.len(),
        }
    }

    /// The index of a member in the batch.
    pub(super) fn index(&self, member: usize) -> usize {
        match &self.members {
            Members::All => member,
            Members::At(members) => members[member],
        }
    }

    /// Some of the members as a group of their own.
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

    /// The elements of `out`, results of the batch, for the members.
    pub(super) fn places<'o>(&self, out: &'o mut [I::Number]) -> Places<'o, I::Number> {
        let Members::At(members) = &self.members else {
            return Places::All(out);
        };
        let mut members = members.iter().peekable();
        let wanted = out.iter_mut().enumerate();
        let wanted = wanted.filter(|(i, _)| members.next_if(|&member| member == i).is_some());
        Places::At(wanted.map(|(_, place)| place).collect())
    }

    /// Has the group computed on the host, by `compute`.
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
        // Results change places with what stood there before, and then all of that is wiped.
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
