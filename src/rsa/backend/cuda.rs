//! Private and public operations on GPUs. Keys with two primes of a supported size are computed by
//! [CRT batches](crate::backend::cuda::crt): the host encodes and checks, the devices do the rest.
//! For all other keys the devices only exponentiate.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::monty::low_64_bits;
use crypto_bigint::Limb;

use super::{HostEngine, Items, ModulusRef, PerThread, RsaBackend, SecretPowers};
use crate::backend::Cuda;
use crate::backend::cuda::crt::{CrtBatch, CrtClass, CrtFeed, CrtKey, CrtShape};
use crate::backend::cuda::family::Tuning;
use crate::backend::cuda::feed::Feed;
use crate::backend::cuda::runtime::pipeline::Destination;
use crate::rsa::batch::Batch;
use crate::rsa::error::Error;
use crate::rsa::key::{KeyClass, KeyHandle, KeyParts};
use crate::rsa::private_op::{self, Blinded, EncodedItems};

/// Items at a time for keys without CRT kernels; enough for the exponentiations to fill a device.
const MAX_ITEMS_THROUGH_HOST: usize = 8192;

/// Longer public exponents are computed on the host: the kernels process an exponent digit by
/// digit, as secret ones.
const MAX_EXPONENT_BITS: u32 = 64;

impl RsaBackend for Cuda {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        powers.assert_lengths();
        self.check()?;
        let bits = powers.moduli.first().map_or(0, ModulusRef::width);
        if powers.exponent_bits > bits || !self.has_kernel(bits) {
            return self.host().exponentiate(powers);
        }
        self.run_secret_powers(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), Error> {
        match items.batch.class.is_private {
            true => private_ops(self, items, |batch, items| batch.run(items)),
            false => public_ops(self, items),
        }
    }

    fn engine(&self) -> HostEngine<'_> {
        self.host().engine()
    }

    fn per_host_thread(&self) -> Option<PerThread<'_>> {
        self.host().per_thread()
    }
}

impl Cuda {
    /// Compiles the kernels for private operations with keys like this one.
    ///
    /// Otherwise the first call that needs them waits seconds. A driver with its default settings
    /// keeps compiled kernels, so this happens once on a machine. For services, before
    /// [`Auto::with_cuda`](crate::backend::Auto::with_cuda) or a queue gets the devices.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`](batch_modexp_core::Error::Cuda) if the driver cannot compile or load a
    /// kernel, [`Error::Forked`](batch_modexp_core::Error::Forked) in a forked child.
    pub fn prepare_private_op(&self, key: &KeyHandle) -> Result<(), batch_modexp_core::Error> {
        let class = KeyClass::of(key.parts());
        match (crt_kernels(self, &class), class.prime) {
            (Some(kernels), _) => self.compile(kernels.entries().collect()),
            (None, Some(prime)) => self.prepare(prime.width),
            (None, None) => self.prepare(class.n_width),
        }
    }
}

/// Runs public operations on devices, or on the host without kernels for them.
fn public_ops(cuda: &Cuda, items: Items<'_>) -> Result<(), Error> {
    let class = &items.batch.class;
    let exponent_bits = class.exponent().bits();
    if exponent_bits > MAX_EXPONENT_BITS || !cuda.has_kernel(class.n_width) {
        return cuda.host().compute(items);
    }
    let feed = ItemFeed {
        engine: cuda.engine(),
        batch: items.batch,
    };
    cuda.run_powers(exponent_bits, Tuning::default(), &feed, items)
}

/// Runs private operations on devices with `run`, or through the host for keys without CRT kernels,
/// or if the last device with such kernels is lost.
fn private_ops(
    cuda: &Cuda,
    mut items: Items<'_>,
    run: impl FnOnce(CrtBatch<'_, ItemFeed<'_>>, Items<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let batch = items.batch;
    if let Some(kernels) = crt_kernels(cuda, &batch.class) {
        let engine = cuda.engine();
        let feed = ItemFeed { engine, batch };
        let blinding_exponent = batch.is_blinded.then(|| low_64_bits(batch.class.e));
        let crt_batch = CrtBatch::new(cuda, kernels, blinding_exponent, &feed);
        let result = run(crt_batch, items.reborrow());
        if result.is_ok() || crt_kernels(cuda, &batch.class).is_some() {
            return result;
        }
    }
    let mut parts = items.chunks(MAX_ITEMS_THROUGH_HOST);
    let exponentiate = |powers: SecretPowers<'_>| cuda.exponentiate(powers);
    parts.try_for_each(|part| private_op::compute_items(cuda.engine().0, &exponentiate, part))
}

/// The kernels for keys with two primes. `None` for other keys.
fn crt_kernels(cuda: &Cuda, class: &KeyClass<'_>) -> Option<CrtClass> {
    let prime = class.prime?;
    if class.exponent().bits() > u64::BITS {
        return None;
    }
    cuda.crt_class(CrtShape {
        n_bits: class.n_width,
        prime_bits: prime.width,
        exponent_bits: prime.bits,
    })
}

fn crt_key(key: &KeyParts) -> CrtKey<'_> {
    let crt = key.crt();
    CrtKey {
        p: crt.p(),
        exponent_p: &crt.dp_less_1,
        q: crt.q(),
        exponent_q: &crt.dq_less_1,
        qinv: &crt.qinv,
        n: key.n(),
    }
}

/// Splits items of one class into runs of one key; all items of a key must be adjacent.
fn runs<'s, 'a>(keys: &'s [&'a KeyParts]) -> impl Iterator<Item = &'s [&'a KeyParts]> {
    let mut rest = keys;
    core::iter::from_fn(move || {
        let first = *rest.first()?;
        let is_same = |key: &&KeyParts| ptr::eq(*key, first);
        // Galloping search: runs are often long, and reading each item of a large batch would take
        // as long as thousands of them on a device.
        let mut bound = 1;
        while rest.get(bound).is_some_and(is_same) {
            bound *= 2;
        }
        let len = rest[..bound.min(rest.len())].partition_point(is_same);
        let (run, others) = rest.split_at(len);
        rest = others;
        Some(run)
    })
}

/// Encodes items, and takes their results.
struct ItemFeed<'a> {
    engine: HostEngine<'a>,
    batch: Batch<'a>,
}

impl<'a, 's> Feed<Items<'s>> for ItemFeed<'a> {
    /// Encoded items; with bases and factors if the host has blinded them.
    type Opened = (EncodedItems<'a>, Option<Blinded>);
    type Error = Error;

    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        let runs = runs(&self.batch.keys[items]);
        runs.map(|run| (run[0].n(), run.len())).collect()
    }

    fn open(&self, items: Range<usize>, blinds: bool) -> Result<Self::Opened, Error> {
        let encoded = EncodedItems::new(self.batch.range(items))?;
        let blinded = blinds.then(|| encoded.blind(self.engine.0));
        Ok((encoded, blinded))
    }

    /// The base and the factor, or the encoded message and the random number, or the encoded message
    /// and the public exponent.
    fn numbers<'n>(&'n self, (encoded, blinded): &'n Self::Opened, item: usize) -> [&'n [Limb]; 2] {
        let class = &self.batch.class;
        let number = |numbers: &'n [Limb]| number(numbers, class.limbs(), item);
        match (blinded, &encoded.blinding) {
            (Some(blinded), _) => [number(&blinded.bases), number(&blinded.factors)],
            (None, Some(blinding)) => [number(&encoded.ems), number(&blinding.r)],
            (None, None) => [number(&encoded.ems), class.e],
        }
    }

    fn take(&self, (encoded, _): Self::Opened, results: &[Limb], items: Items<'s>) {
        match self.batch.class.is_private {
            true => encoded.check_and_write(self.engine.0, results, items),
            false => encoded.write_public(results, items),
        }
    }
}

impl<'s> CrtFeed<Items<'s>> for ItemFeed<'_> {
    fn keys(&self, items: Range<usize>) -> Vec<(CrtKey<'_>, usize)> {
        let runs = runs(&self.batch.keys[items]);
        runs.map(|run| (crt_key(run[0]), run.len())).collect()
    }
}

/// One of the numbers, each as wide as n.
fn number(numbers: &[Limb], limbs: usize, item: usize) -> &[Limb] {
    &numbers[item * limbs..][..limbs]
}

impl Destination for Items<'_> {
    fn len(&self) -> usize {
        self.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at(middle)
    }
}

#[cfg(test)]
mod tests;
