//! Batches divided among threads.

use alloc::vec::Vec;
use core::num::NonZeroUsize;

use batch_modexp_core::BatchModExp;
use batch_modexp_cpu::Parallel;
use crypto_bigint::BoxedUint;

use super::{HostEngine, ITEMS_AT_A_TIME, Items, ModulusRef, PerThread, RsaBackend, SecretPowers};
use crate::rsa::error::Error;

/// Each thread computes its share, private operations from the encoded messages to the check.
impl<B: RsaBackend + BatchModExp<BoxedUint> + Sync> RsaBackend for Parallel<B> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        let count = powers.moduli.len();
        let bits = powers.moduli.first().map_or(0, ModulusRef::width);
        let share = share(self, count, bits, 1);
        let mut rest = Some(powers);
        let shares = core::iter::from_fn(|| {
            let powers = rest.take().filter(|rest| !rest.moduli.is_empty())?;
            let middle = share.min(powers.moduli.len());
            let (powers, others) = powers.split_at(middle);
            rest = Some(others);
            Some(powers)
        });
        let shares: Vec<_> = shares.collect();
        let shares = shares.into_iter().enumerate();
        self.workers().each_share(shares, |(i, powers)| {
            let done = self.inner().exponentiate(powers);
            done.map_err(|error| error.in_batch_at(i * share))
        })
    }

    fn compute(&self, items: Items<'_>) -> Result<(), Error> {
        let share = match items.batch.class.is_private {
            true => {
                let bits = items.exponentiation_bits();
                share(self, items.len(), bits, items.exponentiations())
            }
            false => public_share(self.threads(), &items),
        };
        let shares: Vec<_> = items.chunks(share).collect();
        self.workers()
            .each_share(shares.into_iter(), |items| self.inner().compute(items))
    }

    fn engine(&self) -> HostEngine<'_> {
        self.inner().engine()
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        let threads = NonZeroUsize::new(self.threads())?;
        Some(PerThread {
            backend: self.inner(),
            threads,
            granularity: BatchModExp::<BoxedUint>::granularity(self.inner()),
        })
    }
}

/// How many of `count` items a thread takes at a time. An item has `exponentiations`.
///
/// Few shares, because each prepares its moduli once. A share has at most [`ITEMS_AT_A_TIME`]
/// items, and a multiple of those that the backend computes at a time, or fewer if the last
/// thread then ends sooner.
fn share<B: BatchModExp<BoxedUint>>(
    backend: &Parallel<B>,
    count: usize,
    bits: u32,
    exponentiations: usize,
) -> usize {
    let at_a_time = BatchModExp::<BoxedUint>::granularity(backend.inner());
    let most = count.div_ceil(backend.threads());
    let most = most.clamp(1, ITEMS_AT_A_TIME);
    let most = most.next_multiple_of(at_a_time.div_ceil(exponentiations));
    backend.share(count, most, |items| {
        BatchModExp::<BoxedUint>::relative_time(backend.inner(), bits, items * exponentiations)
    })
}

/// The number of public operations that a thread takes at a time.
///
/// A quarter of the fair share, so that an interrupted thread delays the others little. At
/// least about 50 microseconds of work, the time to wake another thread.
fn public_share(threads: usize, items: &Items<'_>) -> usize {
    /// Fills the vectors of every engine.
    const LANES: usize = 8;
    /// With e = 65537 an operation is about 20 products of 64-bit words for each pair of words.
    const MIN_WORD_PRODUCTS: usize = (1 << 16) / 20;
    let words = items.exponentiation_bits().div_ceil(64).max(1) as usize;
    let least = MIN_WORD_PRODUCTS.div_ceil(words * words);
    let quarter = items.len().div_ceil(4 * threads).min(ITEMS_AT_A_TIME);
    quarter.max(least).next_multiple_of(LANES)
}
