//! Modular products as a device job: the conversion between instances of a group and words in
//! buffers.

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::BorrowMut;
use core::ops::Range;

use batch_modexp_core::checks::{Form, check_factors};
use batch_modexp_core::width::clear;
use batch_modexp_core::{BatchModMul, Error, ModMul, Serial};
use crypto_bigint::{Limb, Unsigned};

use super::Cuda;
use super::family::entry::{Entry, Registry};
use super::family::mul::{self, ModMulChunk, ModMulWork};
use super::group::{Group, Places};
use super::inputs::Parts;
use super::registry::SHIPPED;
use super::runtime::device::Call;
use super::runtime::launch::Loaded;
use super::runtime::layout::Part;
use super::runtime::module::Grid;
use super::runtime::pipeline::{ChunkLens, Forecast, Job, Prepared, Stop};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::{Outgoing, Slot};
use super::words::{HostPool, Rows};

/// Products modulo numbers of up to 512 bits run on the devices, wider ones on the host's threads.
/// A batch may mix both.
///
/// For operands in host memory, a product takes longer on a device than on the host, because of the
/// copies. [`Auto`](crate::backend::Auto) therefore never sends any. Buffers are wiped like those
/// of exponentiations.
impl<U: Unsigned + Sync + Send> BatchModMul<U> for Cuda
where
    Serial: BatchModMul<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.multiply(Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.multiply(Form::Montgomery, batch, out)
    }
}

impl Cuda {
    fn multiply<U: Unsigned + Sync + Send>(
        &self,
        form: Form,
        batch: &[ModMul<'_, U>],
        out: &mut [U],
    ) -> Result<(), Error>
    where
        Serial: BatchModMul<U, Error = Error>,
    {
        let check = |instances: &[_]| check_factors(instances, u32::MAX);
        self.checked(batch, out, check)
            .and_then(|groups| self.multiply_checked(form, groups, out))
            .inspect_err(|_| clear(out))
    }

    /// Computes a batch that has been validated.
    fn multiply_checked<U: Unsigned + Sync + Send>(
        &self,
        form: Form,
        groups: Vec<Group<'_, ModMul<'_, U>>>,
        out: &mut [U],
    ) -> Result<(), Error>
    where
        Serial: BatchModMul<U, Error = Error>,
    {
        self.devices.check()?;
        let threads = self.host_pool();
        let has_kernel = |bits| {
            let mut entries = SHIPPED.multiplying(bits);
            entries.any(|entry| self.devices().any(|device| entry.runs_on(device)))
        };
        let (on_devices, on_host): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| has_kernel(group.bits));
        // The host first: it may find a modulus too wide.
        for group in on_host {
            group.compute_with(out, |instances, results| match form {
                Form::Ordinary => self.host.batch_mod_mul(instances, results),
                Form::Montgomery => self.host.batch_monty_mul(instances, results),
            })?;
        }
        for group in on_devices {
            let job = ModMulJob {
                group: &group,
                form,
                registry: SHIPPED,
                threads,
            };
            match group.places(out) {
                Places::All(out) => self.devices.run(&job, out)?,
                Places::At(mut places) => self.devices.run(&job, &mut places)?,
            };
        }
        Ok(())
    }
}

/// The products of a group.
pub(super) struct ModMulJob<'a, U: Unsigned> {
    pub(super) group: &'a Group<'a, ModMul<'a, U>>,
    pub(super) form: Form,
    pub(super) registry: Registry,
    pub(super) threads: HostPool<'a>,
}

/// The kernel with which a device computes its share.
pub(super) struct Share {
    entry: &'static Entry,
    grid: Grid,
    loaded: Loaded,
}

impl<'a, U: Unsigned + Sync + Send> ModMulJob<'a, U> {
    /// The kernel that should finish products first on a device.
    fn entry(&self, device: &DeviceInfo) -> Option<&'static Entry> {
        let time = |entry: &&Entry| mul::milliseconds(entry, device, 1);
        self.registry
            .multiplying(self.group.bits)
            .filter(|entry| entry.runs_on(device))
            .min_by(|a, b| time(a).total_cmp(&time(b)))
    }

    /// Writes and sends all inputs of a chunk.
    ///
    /// The kernel divides by the radix of its class. A factor placed in the highest limbs makes
    /// that the radix of the modulus, which may be narrower.
    fn fill(
        &self,
        entry: &Entry,
        chunk: &Range<usize>,
        work: &ModMulWork,
        inputs: Outgoing<'_>,
    ) -> Result<(), Stop<Error>> {
        let below = ((entry.bits - self.group.bits) / Limb::BITS) as usize;
        let parts = Parts {
            numbers: [work.a, work.b],
            modulus_index: work.modulus_index,
            records: work.moduli,
        };
        self.group.fill(
            chunk,
            inputs,
            &parts,
            self.threads,
            |_, instance, [a, b], stores| {
                stores.copy_in(instance.a.as_limbs(), a);
                stores.copy_in_from(below, instance.b.as_limbs(), b);
                Ok(())
            },
            |instance, record, stores| {
                let (modulus, r2) = record.split_at_mut(entry.words());
                stores.copy_in(instance.params.modulus().as_ref().as_limbs(), modulus);
                stores.copy_in_from(below, instance.params.r2().as_limbs(), r2);
            },
        )
    }
}

impl<'p, U, P> Job<&'p mut [P]> for ModMulJob<'_, U>
where
    U: Unsigned + Sync + Send,
    P: BorrowMut<U> + Send,
{
    type Share = Share;
    /// The place of the products in the output.
    type Chunk = Part;
    type Error = Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast> {
        self.entry(device).map(|entry| Forecast {
            key: entry.image.key,
            milliseconds: mul::milliseconds(entry, device, count),
        })
    }

    fn prepare(&self, call: &Call<'_>, _: usize) -> Result<Prepared<Share>, Error> {
        let device = call.device();
        let Some(entry) = self.entry(device.info()) else {
            unreachable!("a device without a forecast has no share");
        };
        let kernel = device.kernel(&entry.image)?;
        let grid = kernel.grid();
        let (resident, per_block) = (grid.resident_instances(), entry.image.instances_per_block);
        Ok(Prepared {
            resident,
            chunks: ChunkLens::halves(resident, per_block),
            share: Share {
                entry,
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
    ) -> Result<Part, Stop<Error>> {
        let entry = share.entry;
        let what = ModMulChunk {
            count: chunk.len(),
            moduli: chunk.len(),
            form: self.form,
        };
        let work = mul::launch(entry, share.grid, &what);
        let fill = |inputs: Outgoing<'_>| self.fill(entry, chunk, &work, inputs);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok(work.product)
    }

    fn take(&self, product: Part, members: &Range<usize>, words: &mut [u64], places: &'p mut [P]) {
        let words = &mut words[product.range()];
        let size = words.len() / members.len();
        let rows = Rows::new(words, size);
        self.threads.each_with_row(places, rows, |i, out, words| {
            self.group.store(members.start + i, words, out.borrow_mut());
        });
    }
}

#[cfg(test)]
mod tests;
