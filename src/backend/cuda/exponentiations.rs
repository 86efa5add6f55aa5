//! Splits a batch of exponentiations between the devices and the host.

use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use batch_modexp_core::checks::check_instances;
use batch_modexp_core::width::clear;
use batch_modexp_core::{BatchModExp, Error, ModExp};
use crypto_bigint::Unsigned;

use super::group::{Group, Places};
use super::modexp::ModExpJob;
use super::plan::Tuning;
use super::registry::SHIPPED;
use super::runtime::pipeline::Timing;
use super::{Cuda, Serial};

impl Cuda {
    /// Checks a batch of exponentiations, including its width against `max_bits`, and computes it.
    pub(super) fn check_and_run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        max_bits: u32,
        tuning: Tuning,
    ) -> Result<Timing, Error>
    where
        Serial: BatchModExp<U, Error = Error>,
    {
        let check = |instances: &[_]| check_instances(instances, exponent_bits, max_bits);
        self.checked(batch, out, check)
            .and_then(|groups| self.run(groups, exponent_bits, out, tuning))
            .inspect_err(|_| clear(out))
    }

    /// Computes a batch that has been validated.
    fn run<U: Unsigned + Sync + Send>(
        &self,
        groups: Vec<Group<'_, ModExp<'_, U>>>,
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<Timing, Error>
    where
        Serial: BatchModExp<U, Error = Error>,
    {
        self.devices.check()?;
        let (on_devices, on_host): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| self.serves(group.bits, exponent_bits));
        // The host first: it may find a modulus too wide.
        for group in on_host {
            group.compute_on(&self.host, exponent_bits, out)?;
        }
        let mut timing = Timing::default();
        for group in on_devices {
            timing += self.run_group(&group, exponent_bits, out, tuning)?;
        }
        Ok(timing)
    }

    /// Whether the devices have a kernel for such a group. They have none for exponents that are
    /// longer than their moduli.
    fn serves(&self, bits: u32, exponent_bits: u32) -> bool {
        exponent_bits <= bits && self.has_kernel(bits)
    }

    /// Computes a group on devices, and on the host the instances that a family refuses.
    fn run_group<U: Unsigned + Sync + Send>(
        &self,
        group: &Group<'_, ModExp<'_, U>>,
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<Timing, Error>
    where
        Serial: BatchModExp<U, Error = Error>,
    {
        let job = ModExpJob {
            group,
            exponent_bits,
            registry: SHIPPED,
            tuning,
            threads: self.host_pool(),
            refused: Mutex::default(),
        };
        let timing = match group.places(out) {
            Places::All(out) => self.devices.run(&job, out)?,
            Places::At(mut places) => self.devices.run(&job, &mut places)?,
        };
        let refused = job
            .refused
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if !refused.is_empty() {
            let refused = group.only(&refused);
            refused.compute_on(&self.host, exponent_bits, out)?;
        }
        Ok(timing)
    }
}
