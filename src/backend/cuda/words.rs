//! Copies limbs to words in buffers and back, on many threads for large batches.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::convert::Infallible;
use core::marker::PhantomData;

use batch_modexp_cpu::Workers;
use crypto_bigint::Limb;

/// Numbers that a thread copies at a time. Waking a thread takes longer than copying fewer. With
/// more, some threads would have nothing left while others copy their last numbers.
pub(crate) const COPIED_AT_A_TIME: usize = 256;

/// Elements that a thread inspects at a time, without their numbers.
pub(crate) const INSPECTED_AT_A_TIME: usize = 512;

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

    /// The first result of `f` in the order of the elements. `f` gets a part of them and the index
    /// of its first element.
    pub(crate) fn first<T: Sync, R: Send>(
        self,
        elements: &[T],
        f: impl Fn(usize, &[T]) -> Option<R> + Sync,
    ) -> Option<R> {
        let firsts = (0..).step_by(INSPECTED_AT_A_TIME);
        let parts = firsts.zip(elements.chunks(INSPECTED_AT_A_TIME));
        let results = self.map_items(parts.collect(), |(first, elements)| f(first, elements));
        results.into_iter().flatten().next()
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

/// Writes indices to `words`, two to a word. A last index without a partner is paired with zero.
pub(crate) fn write_indices(indices: impl Iterator<Item = u32>, words: &mut [u64]) {
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
mod tests {
    use super::*;
    use alloc::vec;
    use crypto_bigint::U64;

    #[test]
    fn words_and_limbs() {
        let value = U64::from(0x0123_4567_89ab_cdefu64);
        let mut words = [u64::MAX; 2];
        copy_in(value.as_limbs(), &mut words);
        assert_eq!(words, [0x0123_4567_89ab_cdef, 0]);
        let mut back = U64::ZERO;
        copy_out(&words, back.as_mut_limbs());
        assert_eq!(back, value);
    }

    #[test]
    fn indices_share_words() {
        let mut words = [u64::MAX; 2];
        write_indices([7, 8, 9].into_iter(), &mut words);
        assert_eq!(words, [7 | 8 << 32, 9]);
    }

    #[test]
    fn every_place_gets_its_number() {
        let workers = Workers::start(3.try_into().unwrap()).unwrap();
        for threads in [HostPool(None), HostPool(Some(&workers))] {
            for len in [0, 3, 5 * COPIED_AT_A_TIME] {
                let (mut places, mut words) = (vec![0; len], (0..2 * len as u64).collect());
                let words: &mut Vec<u64> = &mut words;
                threads.each_with_number(&mut places, words, 2, |place, number| {
                    assert_eq!(number[0] + 1, number[1]);
                    *place = number[0];
                });
                assert!(places.into_iter().eq((0..len as u64).map(|i| 2 * i)));
                assert!(words.iter().all(|&word| word == 0));
            }
        }
    }

    #[test]
    fn the_first_of_several_is_found() {
        let workers = Workers::start(3.try_into().unwrap()).unwrap();
        let mut elements = vec![0; 9 * INSPECTED_AT_A_TIME + 5];
        let place = |first: usize, part: &[i32]| Some(first + part.iter().position(|x| *x != 0)?);
        for threads in [HostPool(None), HostPool(Some(&workers))] {
            assert_eq!(threads.first(&elements, place), None);
            for marked in [
                elements.len() - 1,
                7 * INSPECTED_AT_A_TIME,
                INSPECTED_AT_A_TIME - 1,
            ] {
                elements[marked] = 1;
                assert_eq!(threads.first(&elements, place), Some(marked));
            }
            elements.fill(0);
            assert_eq!(threads.first(&elements[..0], place), None);
        }
    }

    /// Results are in the order of the items, whichever thread computes them, and a panic reaches
    /// the caller.
    #[test]
    fn items_keep_their_order() {
        let workers = Workers::start(3.try_into().unwrap()).unwrap();
        for threads in [HostPool(None), HostPool(Some(&workers))] {
            for len in [0, 1, 100] {
                let squares = threads.map_items((0..len).collect(), |i: i32| i * i);
                assert!(squares.into_iter().eq((0..len).map(|i| i * i)));
            }
            let panicking = || threads.each_item(vec![1, 2, 3], |i| assert!(i != 2));
            let panic = std::panic::catch_unwind(core::panic::AssertUnwindSafe(panicking));
            assert!(panic.is_err());
        }
    }

    #[test]
    fn numbers_are_as_by_ordinary_stores() {
        let limbs = [1, 2, 3, 4, 5].map(|i| Limb(Limb::MAX.0 - i));
        for len in [0, 1, 5, 8] {
            let [mut expected, mut words] = [7; 2].map(|word| vec![word; len]);
            copy_in(&limbs, &mut expected);
            NonTemporal::with(|stores| stores.copy_in(&limbs, &mut words));
            assert_eq!(words, expected);
        }
    }
}
