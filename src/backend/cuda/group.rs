//! The instances of a batch that are equally wide, and how they become words in buffers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};
use core::ops::Range;
use core::ptr;
use std::collections::HashMap;

use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Limb, Odd, U512, Unsigned};
use rayon::ThreadPool;
use rayon::prelude::*;
use zeroize::Zeroize;

use super::entry::Entry;
use crate::ModExp;
use crate::secret::Secret;

/// Instances of one width, with the public numbers that they share.
pub(super) struct Group<'a, U: Unsigned> {
    batch: &'a [ModExp<'a, U>],
    /// Positions in the batch, ascending.
    pub(super) members: Vec<usize>,
    /// The width of the moduli in bits.
    pub(super) bits: u32,
    pub(super) exponent_bits: u32,
}

/// Which modulus each instance of a chunk has.
pub(super) struct Moduli {
    /// A member of the group for each different modulus.
    distinct: Vec<usize>,
    /// For each instance of the chunk, the number of its modulus among these.
    index: Vec<u32>,
}

impl Moduli {
    pub(super) fn len(&self) -> usize {
        self.distinct.len()
    }
}

/// Where the inputs of a chunk lie in its buffer, in words.
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) base: Range<usize>,
    pub(super) exponent: Range<usize>,
    pub(super) params: Range<usize>,
    /// Two 32-bit numbers in each word.
    pub(super) param_index: Range<usize>,
}

impl Layout {
    pub(super) fn new(entry: &Entry, count: usize, moduli: usize) -> Self {
        let numbers = count * entry.words();
        let params = 2 * numbers..2 * numbers + moduli * 2 * entry.words();
        Self {
            base: 0..numbers,
            exponent: numbers..2 * numbers,
            param_index: params.end..params.end + count.div_ceil(2),
            params,
        }
    }

    /// The length of the buffer.
    pub(super) fn words(&self) -> usize {
        self.param_index.end
    }
}

/// Numbers that a thread copies at a time; waking another takes longer than copying fewer.
const COPIED_AT_A_TIME: usize = 1024;

/// Calls `f` with the number and the place of each element, on the threads of `pool` if there are many.
pub(super) fn each<T: Send>(
    pool: &ThreadPool,
    places: &mut [T],
    f: impl Fn(usize, &mut T) + Sync + Send,
) {
    if places.len() <= COPIED_AT_A_TIME {
        places
            .iter_mut()
            .enumerate()
            .for_each(|(i, place)| f(i, place));
    } else {
        let places = places.par_iter_mut().with_min_len(COPIED_AT_A_TIME);
        pool.install(|| places.enumerate().for_each(|(i, place)| f(i, place)));
    }
}

/// The same with chunks of `size` words.
pub(super) fn each_chunk(
    pool: &ThreadPool,
    words: &mut [u64],
    size: usize,
    f: impl Fn(usize, &mut [u64]) + Sync + Send,
) {
    if words.len() <= COPIED_AT_A_TIME * size {
        words
            .chunks_exact_mut(size)
            .enumerate()
            .for_each(|(i, place)| f(i, place));
    } else {
        let places = words
            .par_chunks_exact_mut(size)
            .with_min_len(COPIED_AT_A_TIME);
        pool.install(|| places.enumerate().for_each(|(i, place)| f(i, place)));
    }
}

impl<'a, U: Unsigned + Sync + Send> Group<'a, U> {
    /// The instances of up to `max_bits` bits, one group for each width.
    pub(super) fn by_width(
        batch: &'a [ModExp<'a, U>],
        exponent_bits: u32,
        max_bits: u32,
    ) -> Vec<Self> {
        let mut widths = BTreeMap::<u32, Vec<usize>>::new();
        for (i, instance) in batch.iter().enumerate() {
            widths.entry(bits(instance)).or_default().push(i);
        }
        let narrow = widths.into_iter().filter(|(bits, _)| *bits <= max_bits);
        narrow
            .map(|(bits, members)| Self {
                batch,
                members,
                bits,
                exponent_bits,
            })
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The width of the Montgomery parameters that the device gets.
    pub(super) fn r2_bits(&self, entry: &Entry) -> u32 {
        if self.bits < entry.min_r2_bits {
            U512::BITS
        } else {
            self.bits
        }
    }

    /// The moduli of a chunk. Which instances share a reference is public.
    pub(super) fn moduli(&self, chunk: &Range<usize>) -> Moduli {
        let mut seen = HashMap::<_, u32, BuildHasherDefault<AddressHasher>>::default();
        let mut distinct = Vec::new();
        let mut index = Vec::with_capacity(chunk.len());
        for member in chunk.clone() {
            let number = *seen
                .entry(ptr::from_ref(self.instance(member).params))
                .or_insert_with(|| {
                    distinct.push(member);
                    distinct.len() as u32 - 1
                });
            index.push(number);
        }
        Moduli { distinct, index }
    }

    /// Writes the inputs of a chunk to `words`, all of them.
    pub(super) fn fill(
        &self,
        pool: &ThreadPool,
        entry: &Entry,
        chunk: &Range<usize>,
        moduli: &Moduli,
        layout: &Layout,
        words: &mut [u64],
    ) {
        let numbers = |words: &mut [u64], number: fn(&ModExp<'a, U>) -> &'a U| {
            each_chunk(pool, words, entry.words(), |i, place| {
                copy_in(number(self.instance(chunk.start + i)).as_limbs(), place);
            });
        };
        numbers(&mut words[layout.base.clone()], |x| x.base);
        numbers(&mut words[layout.exponent.clone()], |x| x.exponent);

        let records = &mut words[layout.params.clone()];
        each_chunk(pool, records, 2 * entry.words(), |i, record| {
            let member = moduli.distinct[i];
            let params = self.instance(member).params;
            let (modulus, r2) = record.split_at_mut(entry.words());
            copy_in(params.modulus().as_ref().as_limbs(), modulus);
            if self.r2_bits(entry) == self.bits {
                copy_in(params.r2().as_limbs(), r2);
            } else {
                copy_in(wide_r2(params.modulus().as_ref()).as_limbs(), r2);
            }
        });

        let pairs = words[layout.param_index.clone()].iter_mut();
        for (word, pair) in pairs.zip(moduli.index.chunks(2)) {
            let high = pair.get(1).copied().unwrap_or(0);
            *word = u64::from(pair[0]) | u64::from(high) << 32;
        }
    }

    fn instance(&self, member: usize) -> &ModExp<'a, U> {
        &self.batch[self.members[member]]
    }

    /// Copies results to their places, each as wide as its modulus.
    pub(super) fn store(
        &self,
        pool: &ThreadPool,
        entry: &Entry,
        chunk: &Range<usize>,
        words: &[u64],
        out: &mut [&mut U],
    ) {
        each(pool, out, |i, out| {
            let result = &words[i * entry.words()..][..entry.words()];
            let member = chunk.start + i;
            let modulus = self.instance(member).params.modulus().as_ref();
            if out.as_limbs().len() != modulus.as_limbs().len() {
                out.as_mut_limbs().zeroize();
                **out = U::from_limb_like(Limb::ZERO, modulus);
            }
            copy_out(result, out.as_mut_limbs());
        });
    }
}

/// Positions of the instances whose moduli have more than `max_bits` bits.
pub(super) fn wider_than<U: Unsigned>(batch: &[ModExp<'_, U>], max_bits: u32) -> Vec<usize> {
    let wide = batch.iter().enumerate().filter(|(_, x)| bits(x) > max_bits);
    wide.map(|(i, _)| i).collect()
}

fn bits<U: Unsigned>(instance: &ModExp<'_, U>) -> u32 {
    instance.params.modulus().as_ref().as_limbs().len() as u32 * Limb::BITS
}

/// `2^1024` modulo a modulus that is narrower than the narrowest class, in constant time.
fn wide_r2<U: Unsigned>(modulus: &U) -> Secret<U512> {
    let mut wide = Secret::new(U512::ZERO);
    let limbs = modulus.as_limbs();
    wide.as_mut_limbs()[..limbs.len()].copy_from_slice(limbs);
    // It is odd, being a copy of an odd number.
    let params = FixedMontyParams::new(Odd::new(*wide).expect("an odd modulus"));
    let params = Secret::new(params);
    Secret::new(*params.r2())
}

/// Spreads addresses, which are public and not chosen by anyone who could gain by it, over a table
/// (Knuth, The Art of Computer Programming, volume 3, section 6.4: multiplicative hashing).
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Limbs in one word.
const LIMBS_PER_WORD: usize = (u64::BITS / Limb::BITS) as usize;

/// Copies `limbs` to `words`, with zeros above.
// A limb has 32 bits on some targets.
#[allow(clippy::unnecessary_cast)]
pub(super) fn copy_in(limbs: &[Limb], words: &mut [u64]) {
    let mut limbs = limbs.chunks(LIMBS_PER_WORD);
    for word in words {
        let parts = limbs.next().unwrap_or_default();
        *word = (0..).zip(parts).fold(0, |word, (i, limb)| {
            word | (limb.0 as u64) << (i * Limb::BITS)
        });
    }
}

/// Copies the low part of `words` to `limbs`.
pub(super) fn copy_out(words: &[u64], limbs: &mut [Limb]) {
    for (parts, word) in limbs.chunks_mut(LIMBS_PER_WORD).zip(words) {
        for (i, limb) in (0..).zip(parts) {
            *limb = Limb((word >> (i * Limb::BITS)) as _);
        }
    }
}

#[cfg(test)]
mod tests;
