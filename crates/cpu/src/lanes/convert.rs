//! Conversion between the limbs of crypto-bigint and those of the lanes.
//!
//! Between both are buffers of integers: a row for each position, with an integer for each lane.
//! *Words* have 64 bits. *Plain limbs* have the value of a limb of the lanes, below `2^RADIX_BITS`.

use core::array;
use core::hint::black_box;

use batch_modexp_core::limbs::bits_at;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::Limb;
use zeroize::Zeroize;

use super::{Lanes, MAX_LANES};

/// Cuts a number `of` the modulus of each lane into limbs, by way of `words`. If all lanes have the
/// same modulus, as with one key, it is cut once for all.
pub(super) fn import_of_each<'a, L: Lanes>(
    group: &[ModulusRef<'a>],
    of: impl Fn(&ModulusRef<'a>) -> &'a [Limb],
    words: &mut [u64],
    limbs: &mut [L::Limb],
) {
    let [first, others @ ..] = &group[..group.len().min(L::COUNT)] else {
        return;
    };
    if others.iter().any(|other| !first.is_same(other)) {
        return import::<L>(|lane| of(of_lane(group, lane)), 0, words, limbs);
    }
    let number = of(first);
    for (limb, low) in limbs.iter_mut().zip((0..).step_by(L::RADIX_BITS as usize)) {
        let value = bits_at(number, low, L::RADIX_BITS);
        for lane in 0..L::COUNT {
            L::set_lane(limb, lane, value);
        }
    }
}

/// The element of a lane; unused lanes repeat the last one.
pub(super) fn of_lane<T>(group: &[T], lane: usize) -> &T {
    &group[lane.min(group.len() - 1)]
}

/// Copies to each lane a number that is cut into limbs.
pub(super) fn gather<'n, L: Lanes>(number: impl Fn(usize) -> &'n [u64], out: &mut [L::Limb]) {
    let limbs = out.len();
    let numbers: [_; MAX_LANES] = array::from_fn(|lane| match lane < L::COUNT {
        true => &number(lane)[..limbs],
        false => &[],
    });
    // Limb by limb, so that consecutive stores go to one cache line.
    for (i, limb) in out.iter_mut().enumerate() {
        for (lane, number) in numbers[..L::COUNT].iter().enumerate() {
            L::set_lane(limb, lane, number[i]);
        }
    }
}

/// The number of each lane in a flat buffer, `size` limbs each. Unused lanes repeat the last one.
pub(super) fn flat<'n>(numbers: &'n [Limb], size: usize) -> impl Fn(usize) -> &'n [Limb] {
    let last = numbers.len() / size - 1;
    move |lane| &numbers[lane.min(last) * size..][..size]
}

/// Sets every lane of a number to `2^bit`, which fits.
pub(super) fn set_power_of_two<L: Lanes>(limbs: &mut [L::Limb], bit: u32) {
    limbs.fill(L::ZERO);
    let limb = &mut limbs[(bit / L::RADIX_BITS) as usize];
    for lane in 0..L::COUNT {
        L::set_lane(limb, lane, 1 << (bit % L::RADIX_BITS));
    }
}

/// Cuts a number for each lane into limbs, times `2^shift`, by way of `words`.
pub(super) fn import<'a, L: Lanes>(
    number: impl Fn(usize) -> &'a [Limb],
    shift: u32,
    words: &mut [u64],
    limbs: &mut [L::Limb],
) {
    transpose::<L>(number, words);
    cut::<L>(words, shift, limbs);
}

/// Splits the numbers of all lanes into words. Fills all rows of `words`, with zeros beyond the end
/// of a number.
fn transpose<'a, L: Lanes>(number: impl Fn(usize) -> &'a [Limb], words: &mut [u64]) {
    for lane in 0..L::COUNT {
        let number = number(lane);
        let mut rows = words.chunks_exact_mut(L::COUNT);
        match Limb::BITS {
            32 => {
                for (pair, row) in number.chunks(2).zip(&mut rows) {
                    row[lane] = bits_at(pair, 0, 32) | bits_at(pair, 32, 32) << 32;
                }
            }
            _ => {
                for (limb, row) in number.iter().zip(&mut rows) {
                    #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
                    let word = limb.0 as u64;
                    row[lane] = word;
                }
            }
        }
        for row in rows {
            row[lane] = 0;
        }
    }
}

/// Splits the numbers of all lanes, as [`transpose`] gives them, into limbs, multiplied by
/// `2^shift`. The product must fit.
fn cut<L: Lanes>(words: &[u64], shift: u32, limbs: &mut [L::Limb]) {
    const ZEROS: [u64; MAX_LANES] = [0; MAX_LANES];
    let mask = (1 << L::RADIX_BITS) - 1;
    let row = |index: i32| {
        let start = usize::try_from(index).ok().map(|index| index * L::COUNT);
        let row = start.and_then(|start| words.get(start..start + L::COUNT));
        row.unwrap_or(&ZEROS[..L::COUNT])
    };
    // The shift is below 2^31: a modulus has at most 2^14 bits.
    let mut low = -(shift as i32);
    for limb in limbs {
        let (index, shift) = (low.div_euclid(64), low.rem_euclid(64));
        let (first, second) = (row(index), row(index + 1));
        for lane in 0..L::COUNT {
            // The shift is by one more than `63 - shift`, which would be by 64 where `shift` is 0.
            let value = first[lane] >> shift | second[lane] << 1 << (63 - shift);
            L::set_lane(limb, lane, value & mask);
        }
        low += L::RADIX_BITS as i32;
    }
}

/// Converts plain limbs to words, the reverse of [`cut`], until `words` is full.
pub(super) fn join<L: Lanes>(plain: &[u64], words: &mut [u64]) {
    for (words, low) in words.chunks_exact_mut(L::COUNT).zip((0..).step_by(64)) {
        let (place, shift) = (low / L::RADIX_BITS, low % L::RADIX_BITS);
        let mut rows = plain.chunks_exact(L::COUNT).skip(place as usize);
        let Some(plain) = rows.next() else {
            words.fill(0);
            continue;
        };
        for lane in 0..L::COUNT {
            words[lane] = plain[lane] >> shift;
        }
        for (plain, count) in rows.zip((L::RADIX_BITS - shift..64).step_by(L::RADIX_BITS as usize))
        {
            for lane in 0..L::COUNT {
                words[lane] |= plain[lane] << count;
            }
        }
    }
}

/// Writes the number of one lane, given as words, to `limbs`.
pub(super) fn store<L: Lanes>(words: &[u64], lane: usize, limbs: &mut [Limb]) {
    let words = words.chunks_exact(L::COUNT).map(|row| row[lane]);
    match Limb::BITS {
        32 => {
            for (pair, word) in limbs.chunks_mut(2).zip(words) {
                for (limb, half) in pair.iter_mut().zip([word, word >> 32]) {
                    *limb = Limb(half as _);
                }
            }
        }
        _ => {
            for (limb, word) in limbs.iter_mut().zip(words) {
                *limb = Limb(word as _);
            }
        }
    }
}

/// Converts the limbs of all lanes to plain limbs. Limbs may exceed `2^RADIX_BITS`: those of pairs
/// are sums of columns.
pub(super) fn to_plain<L: Lanes>(limbs: &[L::Limb], plain: &mut [u64]) {
    let mask = (1 << L::RADIX_BITS) - 1;
    let mut carry = [0; MAX_LANES];
    for (limb, plain) in limbs.iter().zip(plain.chunks_exact_mut(L::COUNT)) {
        for lane in 0..L::COUNT {
            let sum = L::lane(limb, lane) + carry[lane];
            plain[lane] = sum & mask;
            carry[lane] = sum >> L::RADIX_BITS;
        }
    }
    carry.zeroize();
}

/// Subtracts `modulus` from the number in each lane, unless the result would be negative.
/// Branch-free. `spare` has the same length and holds the differences afterwards.
pub(super) fn reduce_once<L: Lanes>(plain: &mut [u64], modulus: &[u64], spare: &mut [u64]) {
    let mask = (1 << L::RADIX_BITS) - 1;
    let mut borrow = [0; MAX_LANES];
    let places = plain
        .chunks_exact(L::COUNT)
        .zip(modulus.chunks_exact(L::COUNT));
    for ((plain, modulus), spare) in places.zip(spare.chunks_exact_mut(L::COUNT)) {
        for lane in 0..L::COUNT {
            let difference = plain[lane].wrapping_sub(modulus[lane]);
            let difference = difference.wrapping_sub(borrow[lane]);
            spare[lane] = difference & mask;
            borrow[lane] = difference >> 63;
        }
    }
    // All ones if the difference is negative. The barrier hides from the compiler that there are
    // two cases, for which it would make a branch.
    let mut keep = black_box(borrow.map(|borrow: u64| borrow.wrapping_neg()));
    let places = plain.chunks_exact_mut(L::COUNT);
    for (plain, spare) in places.zip(spare.chunks_exact(L::COUNT)) {
        for lane in 0..L::COUNT {
            plain[lane] = plain[lane] & keep[lane] | spare[lane] & !keep[lane];
        }
    }
    keep.zeroize();
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
