//! The interface to callers that make the numbers of items shortly before a device needs them, and
//! take the results.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;
use crypto_bigint::Limb;

use super::runtime::pipeline::Destination;
use super::words::{HostPool, NonTemporal};

/// The caller of a batch: makes the numbers of items, and takes their results. Any thread may call
/// its functions.
pub(crate) trait Feed<O>: Sync {
    /// The numbers of some items.
    type Opened: Send + Sync;
    type Error: From<Error> + Send;

    /// Whether items need no work to be opened, so that no threads are woken for it.
    const IS_OPEN: bool = false;

    /// Whether bases are blinded. Only CRT batches can be.
    fn is_blinded(&self) -> bool {
        false
    }

    /// The moduli of some items, equally wide in the whole batch, each with the number of consecutive
    /// items that have it.
    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)>;

    /// Makes the numbers of some items, and blinds them if the batch is blinded and `blinds`.
    fn open(&self, items: Range<usize>, blinds: bool) -> Result<Self::Opened, Self::Error>;

    /// The two numbers of an opened item to copy to the device: for exponentiations the base and the
    /// exponent. Chunks with one number for each item ignore the second one.
    fn numbers<'n>(&'n self, opened: &'n Self::Opened, item: usize) -> [&'n [Limb]; 2];

    /// Takes the results of the opened items.
    fn take(&self, opened: Self::Opened, results: &[Limb], output: O);
}

/// A feed, and the threads that call it.
pub(super) struct Feeding<'a, F: ?Sized> {
    pub(super) feed: &'a F,
    pub(super) threads: HostPool<'a>,
    /// Limbs in each result.
    pub(super) limbs: usize,
}

/// Chunks of fewer items are copied by the thread that drives the device.
const COPIED_BY_ONE_THREAD: usize = 1024;

impl<F: ?Sized> Feeding<'_, F> {
    /// Opens the items of a chunk on all threads, in parts of `len` items. The last part has the
    /// rest.
    pub(super) fn open<O>(
        &self,
        chunk: &Range<usize>,
        len: usize,
        blinds: bool,
    ) -> Result<Vec<F::Opened>, F::Error>
    where
        F: Feed<O>,
    {
        let starts: Vec<_> = chunk.clone().step_by(len).collect();
        let threads = match F::IS_OPEN {
            true => HostPool(None),
            false => self.threads,
        };
        let open = |start| self.feed.open(start..(start + len).min(chunk.end), blinds);
        threads.map_items(starts, open).into_iter().collect()
    }

    /// Copies the numbers of a chunk, opened in parts of `len` items, to their places, with `size`
    /// words for each number. A missing number has no words for any item.
    pub(super) fn copy<O>(
        &self,
        parts: &[F::Opened],
        len: usize,
        [firsts, seconds]: [&mut [u64]; 2],
        size: usize,
    ) where
        F: Feed<O>,
    {
        // Waking threads takes longer than copying a few numbers.
        let threads = match firsts.len() / size {
            0..COPIED_BY_ONE_THREAD => HostPool(None),
            _ => self.threads,
        };
        let mut seconds = seconds.chunks_mut(len * size);
        let places = firsts.chunks_mut(len * size);
        let places = places.map(|firsts| [firsts, seconds.next().unwrap_or_default()]);
        let copies = parts.iter().zip(places).collect();
        threads.each_item(copies, |(numbers, places): (_, [&mut [u64]; 2])| {
            NonTemporal::with(|stores| {
                let [firsts, mut seconds] = places.map(|words| words.chunks_exact_mut(size));
                for (item, place) in firsts.enumerate() {
                    let numbers = self.feed.numbers(numbers, item);
                    stores.copy_in(numbers[0], place);
                    if let Some(place) = seconds.next() {
                        stores.copy_in(numbers[1], place);
                    }
                }
            });
        });
    }

    /// Passes the results of a chunk, opened in parts of `len` items, to the feed, on all threads,
    /// and wipes the words.
    ///
    /// `words` has all of them. `read` makes a result from the words of an item, its index in the
    /// chunk, and its numbers.
    pub(super) fn take<O: Destination>(
        &self,
        parts: Vec<F::Opened>,
        len: usize,
        words: &mut [u64],
        output: O,
        read: impl Fn(usize, [&[Limb]; 2], &[u64], &mut [Limb]) + Sync,
    ) where
        F: Feed<O>,
    {
        assert_eq!(parts.len(), output.len().div_ceil(len), "other parts");
        let size = words.len() / output.len().max(1);
        let mut rest = Some(output);
        let parts = parts.into_iter().zip(words.chunks_mut(len * size));
        let shares = (0..)
            .step_by(len)
            .zip(parts)
            .map(|(first, (numbers, words))| {
                let output = rest.take().map(|rest| rest.split_at(words.len() / size));
                let Some((output, others)) = output else {
                    unreachable!("there are as many places as items");
                };
                rest = Some(others);
                (first, numbers, words, output)
            });
        let shares: Vec<(_, _, &mut [u64], O)> = shares.collect();
        self.threads
            .each_item(shares, |(first, numbers, words, output)| {
                let mut results = Secret::new(vec![Limb::ZERO; output.len() * self.limbs]);
                let items = results.chunks_exact_mut(self.limbs);
                for (i, (result, words)) in items.zip(words.chunks_exact_mut(size)).enumerate() {
                    read(first + i, self.feed.numbers(&numbers, i), words, result);
                    words.fill(0);
                }
                self.feed.take(numbers, &results, output);
            });
    }
}
