//! Batches of a caller's numbers on several threads.

use batch_modexp_core::batch::{Form, check_lengths};
use batch_modexp_core::width::{MAX_BITS, clear, width};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::Unsigned;

use super::{Cpu, Parallel};

impl<B> Parallel<B> {
    /// The number of instances that a thread takes at a time, from a batch of `len` of `bits` bits.
    fn share_of<U: Unsigned>(&self, bits: u32, len: usize) -> usize
    where
        B: BatchModExp<U>,
    {
        // A quarter of the fair share, so that an interrupted thread delays the others little. A
        // whole multiple of the number that the backend computes at the same time.
        let most = len.div_ceil(4 * self.threads()).max(1);
        let most = most.next_multiple_of(self.inner.granularity());
        self.share(len, most, |count| self.inner.relative_time(bits, count))
    }
}

impl<U, B> BatchModExp<U> for Parallel<B>
where
    U: Unsigned + Sync,
    B: BatchModExp<U, Error = Error> + Sync,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        check_lengths(batch, out);
        let widths = batch.iter().map(|x| width(x.params.modulus().as_ref()));
        let share = self.share_of(widths.max().unwrap_or(0), batch.len());
        let shares = batch.chunks(share).zip(out.chunks_mut(share)).enumerate();
        let result = self.workers.each_share(shares, |(i, (batch, out))| {
            self.inner
                .batch_mod_exp(batch, exponent_bits, out)
                .map_err(|error| error.in_batch_at(i * share))
        });
        result.inspect_err(|_| clear(out))
    }

    fn granularity(&self) -> usize {
        self.threads() * self.inner.granularity()
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        let share = self.share_of(bits, count);
        let shares = count.div_ceil(share).div_ceil(self.threads());
        shares as u64 * self.inner.relative_time(bits, share.min(count))
    }
}

/// The least work that a thread takes at a time, in products of two 64-bit words: about 50
/// microseconds of a vector unit, as long as waking another thread takes.
const MIN_WORD_PRODUCTS: usize = 1 << 16;

/// Full vectors of every backend.
const LANES: usize = 8;

impl<U, B> BatchModMul<U> for Parallel<B>
where
    U: Unsigned + Sync,
    B: BatchModMul<U, Error = Error> + Sync,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Montgomery, batch, out)
    }
}

fn run<U, B>(
    parallel: &Parallel<B>,
    form: Form,
    batch: &[ModMul<'_, U>],
    out: &mut [U],
) -> Result<(), Error>
where
    U: Unsigned + Sync,
    B: BatchModMul<U, Error = Error> + Sync,
{
    check_lengths(batch, out);
    let inner = |batch: &[ModMul<'_, U>], out: &mut [U]| match form {
        Form::Ordinary => parallel.inner.batch_mod_mul(batch, out),
        Form::Montgomery => parallel.inner.batch_monty_mul(batch, out),
    };
    let widths = batch.iter().map(|x| width(x.params.modulus().as_ref()));
    let share = share(parallel.threads(), widths.max().unwrap_or(0), batch.len());
    let shares = batch.chunks(share).zip(out.chunks_mut(share)).enumerate();
    let result = parallel.workers.each_share(shares, |(i, (batch, out))| {
        inner(batch, out).map_err(|error| error.in_batch_at(i * share))
    });
    result.inspect_err(|_| clear(out))
}

/// The number of products that a thread takes at a time, from a batch of `len` of up to `bits`
/// bits. It is a quarter of the fair share, so that an interrupted thread delays the others little,
/// but at least the work that is worth waking a thread for.
pub(super) fn share(threads: usize, bits: u32, len: usize) -> usize {
    let quarter = len.div_ceil(4 * threads).max(1);
    quarter.max(least_products(bits)).next_multiple_of(LANES)
}

/// The least number of products of up to `bits` bits that a thread takes at a time.
pub(super) fn least_products(bits: u32) -> usize {
    // Wider ones are refused later.
    let words = bits.clamp(1, MAX_BITS).div_ceil(64) as usize;
    MIN_WORD_PRODUCTS.div_ceil(words * words)
}

impl<U> BatchModExp<U> for Cpu
where
    U: Unsigned + Sync,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        self.0.batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        <_ as BatchModExp<U>>::granularity(&self.0)
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        <_ as BatchModExp<U>>::relative_time(&self.0, bits, count)
    }
}

/// `Serial` computes narrow products and small batches where it is faster. The choice depends on
/// the widths, the number of instances, and which of them share a modulus. It follows measurements
/// on one processor of each kind.
impl<U> BatchModMul<U> for Cpu
where
    U: Unsigned + Sync,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.0.batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.0.batch_monty_mul(batch, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_stay_where_they_are() {
        for (threads, bits, len, expected) in [
            (2, 256, 4096, 4096),
            (2, 256, 1 << 16, 1 << 13),
            (2, 4096, 16, 16),
            (2, 4096, 1024, 128),
            (16, 4096, 1024, 16),
            (16, 16_384, 64, 8),
            (3, 0, 0, 1 << 16),
            (2, u32::MAX, 16, 8),
        ] {
            let share = share(threads, bits, len);
            assert_eq!(share, expected, "{len} of {bits} bits on {threads} threads");
        }
    }
}
