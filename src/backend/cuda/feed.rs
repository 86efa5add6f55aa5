//! The host's part of a chunk: threads that make the numbers of items shortly before a device needs
//! them, copy them to buffers, and take the results.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::iter::repeat_n;
use core::marker::PhantomData;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;
use batch_modexp_cpu::Workers;
use crypto_bigint::Limb;

use super::runtime::launch::{Work, places};
use super::runtime::pipeline::{Destination, Stop};
use super::runtime::slot::Slot;

/// The caller of a batch: makes the numbers of items, and takes their results. Any thread may call
/// its functions.
pub(crate) trait Feed<O>: Sync {
    /// The numbers of some items.
    type Opened: Send + Sync;
    type Error: From<Error> + Send;

    /// Whether items need no work to be opened, so that no threads are woken for it.
    const IS_OPEN: bool = false;

    /// The moduli of some items, equally wide in the whole batch, each with the number of consecutive
    /// items that have it. Only for exponentiations.
    fn moduli(&self, _items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        Vec::new()
    }

    /// Makes the numbers of some items, and blinds them if `blinds`. Only CRT batches are blinded.
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

/// Numbers that a thread copies at a time. Waking a thread takes longer than copying fewer. With
/// more, some threads would have nothing left while others copy their last numbers.
pub(crate) const COPIED_AT_A_TIME: usize = 256;

/// The host threads beside a device: the calling thread, and a pool if there is one.
#[derive(Clone, Copy)]
pub(crate) struct HostPool<'a>(pub(crate) Option<&'a Workers>);

impl HostPool<'_> {
    /// Calls `f` for each item, on all threads if there are several items. The calling thread takes
    /// part.
    ///
    /// Each thread takes one item after another, and none waits for an item of another thread. With
    /// rayon's parallel iterators, a waiting thread begins items for another device, and the first
    /// call then waits for those too (docs/log/performance-gpu-log.md, "Several devices").
    pub(crate) fn each_item<T: Send>(self, items: Vec<T>, f: impl Fn(T) + Sync) {
        let Some(workers) = self.0 else {
            return items.into_iter().for_each(f);
        };
        let Ok(()) = workers.each_share(items.into_iter(), |item| {
            f(item);
            Ok::<(), Infallible>(())
        });
    }

    /// Calls `f` with the place and the number of each element, on several threads if there are
    /// many, and wipes the numbers. Each number has `size` of the words.
    pub(crate) fn each_with_number<T: Send>(
        self,
        places: &mut [T],
        words: &mut [u64],
        size: usize,
        f: impl Fn(&mut T, &[u64]) + Sync,
    ) {
        let parts = places.chunks_mut(COPIED_AT_A_TIME);
        let parts = parts.zip(words.chunks_mut(COPIED_AT_A_TIME * size));
        self.each_item(parts.collect(), |(places, words)| {
            for (place, number) in places.iter_mut().zip(words.chunks_exact_mut(size)) {
                f(place, number);
                number.fill(0);
            }
        });
    }

    /// The number of threads.
    pub(crate) fn count(self) -> usize {
        self.0.map_or(0, Workers::count) + 1
    }

    /// Calls `f` for each item, on several threads, and returns the results in order.
    pub(crate) fn map_items<T: Send, R: Send>(
        self,
        items: Vec<T>,
        f: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let pairs = items.into_iter().zip(&mut results).collect();
        self.each_item(pairs, |(item, result)| *result = Some(f(item)));
        // Complete: if an item had panicked, this would not be reached.
        results.into_iter().flatten().collect()
    }
}

/// Records that a thread writes at a time. Some contain a number that is computed for them, which takes
/// much longer than a copy.
const RECORDS_AT_A_TIME: usize = 32;

/// Writes a record for each owner, and for each item the index of its owner's record. The owners come
/// with their numbers of consecutive items.
pub(crate) fn write_records<R: Sync>(
    threads: HostPool<'_>,
    owners: &[(R, usize)],
    [indices, records]: [&mut [u64]; 2],
    write: impl for<'w> Fn(&R, &'w mut [u64], &mut NonTemporal<'w>) + Sync,
) {
    let size = records.len() / owners.len();
    let parts = records.chunks_mut(RECORDS_AT_A_TIME * size);
    let parts = owners.chunks(RECORDS_AT_A_TIME).zip(parts).collect();
    threads.each_item(parts, |(owners, records): (&[_], &mut [_])| {
        NonTemporal::with(|stores| {
            for ((owner, _), record) in owners.iter().zip(records.chunks_exact_mut(size)) {
                write(owner, record, stores);
            }
        });
    });
    let each = (0..).zip(owners);
    write_indices(
        each.flat_map(|(index, &(_, len))| repeat_n(index, len)),
        indices,
    );
}

/// Writes indices to `words`, two to a word. A last index without a partner is paired with zero.
fn write_indices(indices: impl Iterator<Item = u32>, words: &mut [u64]) {
    let mut indices = indices.fuse();
    for word in words {
        let [low, high] = [(); 2].map(|()| u64::from(indices.next().unwrap_or(0)));
        *word = low | high << 32;
    }
}

/// Limbs in one word.
pub(crate) const LIMBS_PER_WORD: usize = (u64::BITS / Limb::BITS) as usize;

/// Copies `limbs` to `words`, with zeros above.
pub(crate) fn copy_in(limbs: &[Limb], words: &mut [u64]) {
    write_limbs(limbs, words, |place, word| *place = word);
}

/// Copies `limbs` to `words` with `store`, with zeros above.
// A limb has 32 bits on some targets.
#[allow(clippy::unnecessary_cast)]
fn write_limbs(limbs: &[Limb], words: &mut [u64], store: impl Fn(&mut u64, u64)) {
    if LIMBS_PER_WORD == 1 {
        let (places, above) = words.split_at_mut(limbs.len().min(words.len()));
        let pairs = places.iter_mut().zip(limbs);
        pairs.for_each(|(place, limb)| store(place, limb.0 as u64));
        return above.iter_mut().for_each(|place| store(place, 0));
    }
    let mut parts = limbs.chunks(LIMBS_PER_WORD);
    for place in words {
        let limbs = parts.next().unwrap_or_default();
        let word = (0..).zip(limbs).fold(0, |word, (part, limb)| {
            word | (limb.0 as u64) << (part * Limb::BITS)
        });
        store(place, word);
    }
}

/// Writes numbers with stores that bypass the caches (non-temporal stores: Intel SDM, volume 1,
/// 10.4.6.2). It borrows their places, so that nothing reads them before they are in memory.
///
/// The host writes the inputs of a chunk once, and only the device reads them, from memory. An
/// ordinary store first loads the line into a cache, and evicts other data. The device waits for
/// its first chunks while they are being written (docs/log/performance-gpu-log.md, "Past the
/// caches").
///
/// It is not `Send`, because a fence only orders the stores of its own thread. The pointer ensures
/// that.
pub(crate) struct NonTemporal<'w>(PhantomData<(&'w mut [u64], *mut ())>);

impl<'w> NonTemporal<'w> {
    /// Runs `write`, which writes numbers. All stores are complete when this returns.
    pub(crate) fn with<R>(write: impl FnOnce(&mut Self) -> R) -> R {
        // Dropped, with its fence, even if `write` panics.
        let mut stores = Self(PhantomData);
        write(&mut stores)
    }

    /// Copies `limbs` to `words`, with zeros above.
    pub(crate) fn copy_in(&mut self, limbs: &[Limb], words: &'w mut [u64]) {
        write_limbs(limbs, words, store);
    }
}

impl Drop for NonTemporal<'_> {
    /// Orders the stores before later ones, such as those that announce the numbers to other
    /// threads and the device.
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: all processors of this architecture have SSE.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn store(place: &mut u64, word: u64) {
    // SAFETY: the place is that of a word, and all processors of this architecture have SSE2. A
    // fence precedes every other access: the place is borrowed until this thread drops the
    // `NonTemporal`, which executes one.
    unsafe { core::arch::x86_64::_mm_stream_si64(core::ptr::from_mut(place).cast(), word as i64) };
}

#[cfg(not(target_arch = "x86_64"))]
fn store(place: &mut u64, word: u64) {
    *place = word;
}

/// Copies the low part of `words` to `limbs`.
pub(crate) fn copy_out(words: &[u64], limbs: &mut [Limb]) {
    if LIMBS_PER_WORD == 1 {
        let pairs = limbs.iter_mut().zip(words);
        return pairs.for_each(|(limb, word)| *limb = Limb(*word as _));
    }
    for (parts, word) in limbs.chunks_mut(LIMBS_PER_WORD).zip(words) {
        for (i, limb) in (0..).zip(parts) {
            *limb = Limb((word >> (i * Limb::BITS)) as _);
        }
    }
}

#[cfg(test)]
mod tests;
