//! Batches of modular exponentiations: validation, and the split between devices and host.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
#[cfg(feature = "rsa")]
use core::mem;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use batch_modexp_core::batch::{check_instances, check_lengths};
#[cfg(feature = "rsa")]
use batch_modexp_core::engine::SecretPowers;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::width::{clear, place, width};
use batch_modexp_core::{BatchModExp, Error, ModExp, gathered};
use crypto_bigint::{Limb, Unsigned};

use super::Cuda;
use super::family::Tuning;
use super::feed::Feed;

/// Instances that a thread checks at a time.
const CHECKED_AT_A_TIME: usize = 512;

impl Cuda {
    /// Checks a batch of exponentiations, including its width against `max_bits`, and computes it.
    pub(super) fn check_and_run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        max_bits: u32,
        tuning: Tuning,
    ) -> Result<(), Error> {
        check_lengths(batch, out);
        self.validate(batch, exponent_bits, max_bits)
            .and_then(|is_mixed| self.run(batch, exponent_bits, out, tuning, is_mixed))
            .inspect_err(|_| clear(out))
    }

    /// Returns whether the widths of the moduli differ, or the first error in the order of the
    /// batch.
    ///
    /// On all threads: one would take as long for many instances as the devices for a tenth of
    /// them.
    fn validate<U: Unsigned + Sync>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        max_bits: u32,
    ) -> Result<bool, Error> {
        let is_mixed = AtomicBool::new(false);
        let parts = (0..).step_by(CHECKED_AT_A_TIME);
        let parts = parts.zip(batch.chunks(CHECKED_AT_A_TIME)).collect();
        let errors = self.host_pool().map_items(parts, |(first, part)| {
            let width = bits(&batch[0]);
            if part.iter().any(|instance| bits(instance) != width) {
                is_mixed.store(true, Relaxed);
            }
            let error = check_instances(part, exponent_bits, max_bits).err()?;
            Some(error.in_batch_at(first))
        });
        let error = errors.into_iter().flatten().next();
        error.map_or(Ok(is_mixed.into_inner()), Err)
    }

    /// Computes a batch that has been validated, one width after the other.
    fn run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
        is_mixed: bool,
    ) -> Result<(), Error> {
        self.devices.check()?;
        if !is_mixed {
            return self.run_one_width(batch, exponent_bits, out, tuning);
        }
        let mut widths = BTreeMap::<u32, Vec<usize>>::new();
        for (index, instance) in batch.iter().enumerate() {
            widths.entry(bits(instance)).or_default().push(index);
        }
        widths.values().try_for_each(|at| {
            gathered(batch, at, out, |instances, results| {
                self.run_one_width(instances, exponent_bits, results, tuning)
            })
        })
    }

    /// Computes instances of one width on the devices. The host computes them if there is no
    /// kernel, as for exponents that are longer than their moduli.
    fn run_one_width<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<(), Error> {
        let width = batch.first().map_or(0, bits);
        if exponent_bits > width || !self.has_kernel(width) {
            return self.host.batch_mod_exp(batch, exponent_bits, out);
        }
        self.run_powers(exponent_bits, tuning, batch, out)
    }
}

/// The width of an instance's modulus in bits.
fn bits<U: Unsigned>(instance: &ModExp<'_, U>) -> u32 {
    width(instance.params.modulus().as_ref())
}

impl<'o, U: Unsigned + Sync + Send> Feed<&'o mut [U]> for [ModExp<'_, U>] {
    type Opened = Range<usize>;
    type Error = Error;

    const IS_OPEN: bool = true;

    /// Instances that share a reference to a modulus share its record.
    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        let runs = self[items].chunk_by(|a, b| ptr::eq(a.params, b.params));
        runs.map(|run| (ModulusRef::of(run[0].params), run.len()))
            .collect()
    }

    fn open(&self, items: Range<usize>, _: bool) -> Result<Range<usize>, Error> {
        Ok(items)
    }

    fn numbers<'n>(&'n self, items: &'n Range<usize>, item: usize) -> [&'n [Limb]; 2] {
        let instance = &self[items.start + item];
        [instance.base.as_limbs(), instance.exponent.as_limbs()]
    }

    /// Each power becomes as wide as its modulus.
    fn take(&self, items: Range<usize>, powers: &[Limb], out: &'o mut [U]) {
        let powers = powers.chunks_exact(powers.len() / items.len());
        for ((instance, out), power) in self[items].iter().zip(out).zip(powers) {
            place(out, instance.params.modulus().as_ref()).copy_from_slice(power);
        }
    }
}

#[cfg(feature = "rsa")]
impl Cuda {
    /// Computes powers with secret exponents: see [`run_powers`](Self::run_powers).
    pub(crate) fn run_secret_powers(&self, mut powers: SecretPowers<'_>) -> Result<(), Error> {
        let (limbs, bits) = (powers.limbs().max(1), powers.exponent_bits);
        let out = mem::take(&mut powers.out);
        let mut places: Vec<_> = out.chunks_exact_mut(limbs).collect();
        self.run_powers(bits, Tuning::default(), &powers, &mut places[..])
    }
}

/// Numbers in flat buffers, for RSA.
#[cfg(feature = "rsa")]
impl<'o> Feed<&'o mut [&mut [Limb]]> for SecretPowers<'_> {
    type Opened = Range<usize>;
    type Error = Error;

    const IS_OPEN: bool = true;

    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        let runs = self.moduli[items].chunk_by(ModulusRef::is_same);
        runs.map(|run| (run[0], run.len())).collect()
    }

    fn open(&self, items: Range<usize>, _: bool) -> Result<Range<usize>, Error> {
        Ok(items)
    }

    fn numbers<'n>(&'n self, items: &'n Range<usize>, item: usize) -> [&'n [Limb]; 2] {
        let (item, limbs) = (items.start + item, self.limbs());
        [&self.bases[item * limbs..][..limbs], self.exponents[item]]
    }

    fn take(&self, _: Range<usize>, powers: &[Limb], places: &'o mut [&mut [Limb]]) {
        for (place, power) in places.iter_mut().zip(powers.chunks_exact(self.limbs())) {
            place.copy_from_slice(power);
        }
    }
}
