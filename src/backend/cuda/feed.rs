//! The interface to callers that make the numbers of items shortly before a device needs them, and
//! take the results.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
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
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
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

/// Items that one thread opened.
pub(super) struct Opened<T> {
    pub(super) len: usize,
    numbers: T,
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
    /// Opens the items of a chunk on all threads, in parts of `len` items.
    pub(super) fn open<O>(
        &self,
        chunk: &Range<usize>,
        len: usize,
        blinds: bool,
    ) -> Result<Vec<Opened<F::Opened>>, F::Error>
    where
        F: Feed<O>,
    {
        let starts: Vec<_> = chunk.clone().step_by(len).collect();
        let threads = match F::IS_OPEN {
            true => HostPool(None),
            false => self.threads,
        };
        let opened = threads.map_items(starts, |start| {
            let items = start..(start + len).min(chunk.end);
            Ok(Opened {
                len: items.len(),
                numbers: self.feed.open(items, blinds)?,
            })
        });
        opened.into_iter().collect()
    }

    /// Copies the numbers of a chunk to their places, with `size` words for each number. A missing
    /// number has no words for any item.
    pub(super) fn copy<O>(
        &self,
        parts: &[Opened<F::Opened>],
        mut places: [&mut [u64]; 2],
        size: usize,
    ) where
        F: Feed<O>,
    {
        let copies = parts.iter().map(|Opened { len, numbers }| {
            let places = places.each_mut().map(|words| {
                let len = (len * size).min(words.len());
                let (head, tail) = mem::take(words).split_at_mut(len);
                *words = tail;
                head
            });
            (places, numbers)
        });
        let copies: Vec<_> = copies.collect();
        // Waking threads takes longer than copying a few numbers.
        let threads = match parts.iter().map(|part| part.len).sum() {
            0..COPIED_BY_ONE_THREAD => HostPool(None),
            _ => self.threads,
        };
        threads.each_item(copies, |(places, numbers)| {
            NonTemporal::with(|stores| {
                let [first, mut second] = places.map(|words| words.chunks_exact_mut(size));
                for (item, place) in first.enumerate() {
                    let numbers = self.feed.numbers(numbers, item);
                    stores.copy_in(numbers[0], place);
                    if let Some(place) = second.next() {
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
        parts: Vec<Opened<F::Opened>>,
        words: &mut [u64],
        output: O,
        read: impl Fn(usize, [&[Limb]; 2], &[u64], &mut [Limb]) + Sync,
    ) where
        F: Feed<O>,
    {
        let size = words.len() / output.len().max(1);
        let (mut words, mut output, mut first) = (words, Some(output), 0);
        let mut shares = Vec::with_capacity(parts.len());
        for Opened { len, numbers } in parts {
            let (head, tail) = mem::take(&mut words).split_at_mut(len * size);
            words = tail;
            let (here, rest) = match output.take() {
                Some(output) => output.split_at(len),
                None => unreachable!("there are as many places as items"),
            };
            output = Some(rest);
            shares.push((first, numbers, head, here));
            first += len;
        }
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
