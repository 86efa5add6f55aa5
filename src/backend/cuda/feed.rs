//! The interface to callers that make the numbers of items shortly before a device needs them, and
//! take the results.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;
use crypto_bigint::Limb;

use super::runtime::launch::{Work, places};
use super::runtime::pipeline::{Destination, Stop};
use super::runtime::slot::Slot;
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
    /// items that have it. Only for exponentiations.
    fn moduli(&self, _items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        Vec::new()
    }

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
    /// The fewest and the most items that a thread opens at a time, multiples of 8.
    pub(super) part: [usize; 2],
}

/// Chunks of fewer items are copied by the thread that drives the device.
const COPIED_BY_ONE_THREAD: usize = 1024;

impl<F: ?Sized> Feeding<'_, F> {
    /// Items of a chunk that a thread opens at a time: an equal part for each thread, within the
    /// bounds. The last part has the rest.
    fn part_len(&self, count: usize) -> usize {
        let [fewest, most] = self.part;
        let equal = count.div_ceil(self.threads.count());
        equal.clamp(fewest, most).next_multiple_of(8)
    }

    /// Opens the items of a chunk on all threads, copies their numbers, and submits the chunk.
    /// `rest` writes the other inputs.
    pub(super) fn submit<O>(
        &self,
        chunk: &Range<usize>,
        blinds: bool,
        work: &Work<'_>,
        slot: &mut Slot,
        rest: impl FnOnce(&mut [u64]),
    ) -> Result<Vec<F::Opened>, Stop<F::Error>>
    where
        F: Feed<O>,
    {
        let parts = self.open(chunk, blinds).map_err(Stop::Batch)?;
        let fill = |input: &mut [u64]| {
            self.copy(&parts, places(input, work.numbers), chunk.len());
            rest(input);
        };
        slot.submit(work, fill)?;
        Ok(parts)
    }

    /// Opens the items of a chunk on all threads.
    pub(super) fn open<O>(
        &self,
        chunk: &Range<usize>,
        blinds: bool,
    ) -> Result<Vec<F::Opened>, F::Error>
    where
        F: Feed<O>,
    {
        let len = self.part_len(chunk.len());
        let starts: Vec<_> = chunk.clone().step_by(len).collect();
        let threads = match F::IS_OPEN {
            true => HostPool(None),
            false => self.threads,
        };
        let open = |start| self.feed.open(start..(start + len).min(chunk.end), blinds);
        threads.map_items(starts, open).into_iter().collect()
    }

    /// Copies the numbers of the `count` items of a chunk to their places. A missing number has no
    /// words for any item.
    pub(super) fn copy<O>(
        &self,
        parts: &[F::Opened],
        [firsts, seconds]: [&mut [u64]; 2],
        count: usize,
    ) where
        F: Feed<O>,
    {
        // Waking threads takes longer than copying a few numbers.
        let threads = match count {
            0..COPIED_BY_ONE_THREAD => HostPool(None),
            _ => self.threads,
        };
        let (len, size) = (self.part_len(count), firsts.len() / count);
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

    /// Passes the results of a chunk to the feed, on all threads, and wipes the words.
    ///
    /// `words` has all of them. `read` makes a result from the words of an item, its index in the
    /// chunk, and its numbers.
    pub(super) fn take<O: Destination>(
        &self,
        parts: Vec<F::Opened>,
        words: &mut [u64],
        output: O,
        read: impl Fn(usize, [&[Limb]; 2], &[u64], &mut [Limb]) + Sync,
    ) where
        F: Feed<O>,
    {
        let len = self.part_len(output.len());
        assert_eq!(parts.len(), output.len().div_ceil(len), "other parts");
        let size = words.len() / output.len().max(1);
        let (mut shares, mut rest) = (Vec::with_capacity(parts.len()), output);
        for (numbers, words) in parts.into_iter().zip(words.chunks_mut(len * size)) {
            let (output, others) = rest.split_at(words.len() / size);
            shares.push((shares.len() * len, numbers, words, output));
            rest = others;
        }
        self.threads.each_item(
            shares,
            |(first, numbers, words, output): (_, _, &mut [_], O)| {
                let mut results = Secret::new(vec![Limb::ZERO; output.len() * self.limbs]);
                let items = results.chunks_exact_mut(self.limbs);
                for (i, (result, words)) in items.zip(words.chunks_exact_mut(size)).enumerate() {
                    read(first + i, self.feed.numbers(&numbers, i), words, result);
                    words.fill(0);
                }
                self.feed.take(numbers, &results, output);
            },
        );
    }
}
