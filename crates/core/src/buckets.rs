//! Products of many powers. Few terms share their squarings. Many go to buckets: Pippenger's method
//! with independent products, which engines compute in lanes and on threads.
//!
//! Exponents are cut into digits. Each position of a digit has a *set* of buckets, one for each
//! value of the digit. A bucket collects the product of the bases that have this digit. No two
//! products of a round depend on each other:
//!
//! 1. The numbers of a bucket are multiplied in pairs, then the products in pairs, and so on. A
//!    round takes the pairs of all buckets of some sets.
//! 2. The product of `bucket[d]^d` over a set takes two products for each digit, from the highest
//!    down: `running *= bucket[d]`, then `total *= running`. A round takes one digit of all sets.
//! 3. The totals are combined from the highest set down, with squarings between them.
//!
//! The highest sets come first, as many as fit into about as much memory as the bases.
//!
//! Bases and modulus are secret here; exponents are public.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;
use core::{iter, mem};

use crypto_bigint::{Limb, Word};

use crate::monty::{ModulusRef, parts};
use crate::powers::{IndexedProducts, MultiPowers, PowerEngine};
use crate::secret::{Secret, scrubbed};

/// The most terms that share squarings; with more, squarings take less than a tenth of the time.
const MOST_TERMS: usize = 40;

/// The bits of an exponent for which a product of powers takes one product, apart from squarings.
const BITS_A_PRODUCT: u32 = 3;

/// The fewest sets in memory at a time.
const FEWEST_SETS: usize = 8;

/// The widest digit, in bits.
const LARGEST_WINDOW: u32 = 16;

/// A round takes as long as its products and this many more; measured with `Ifma`.
const ROUND: u64 = 12;

/// The most numbers of the first round of several sets.
const NUMBERS: usize = 4096;

/// Sets `out` to the product of `base ^ exponent` over `[base, exponent]`, below the modulus and as
/// wide. Bases are no wider.
pub(crate) fn product(
    engine: &dyn PowerEngine,
    modulus: ModulusRef<'_>,
    mut terms: Vec<[&[Limb]; 2]>,
    out: &mut [Limb],
) {
    terms.retain(|[_, exponent]| length(exponent) > 0);
    let mut power = Secret::new(vec![Limb::ZERO; out.len()]);
    scrubbed(|| modulus.to_montgomery(&[Limb::ONE], &mut power));
    if terms.len() < engine.fewest_for_buckets(modulus.width()) {
        share_squarings(engine, modulus, terms, &mut power);
    } else {
        fill_buckets(engine, modulus, &terms, &mut power);
    }
    scrubbed(|| modulus.mul(&[Limb::ONE], &power, out));
}

/// Multiplies `power`, in Montgomery form, by a product of many powers, by buckets.
fn fill_buckets(
    engine: &dyn PowerEngine,
    modulus: ModulusRef<'_>,
    terms: &[[&[Limb]; 2]],
    power: &mut [Limb],
) {
    let (bases, exponents): (Vec<_>, Vec<_>) = terms.iter().map(|[x, y]| (*x, *y)).unzip();
    let lengths = || exponents.iter().map(|exponent| length(exponent));
    let bits = lengths().max().expect("a term");
    let window = window_bits(lengths().map(u64::from).sum(), bits);
    let sets = bits.div_ceil(window) as usize;
    let in_memory = sets.min(((2 * bases.len()) >> window).max(FEWEST_SETS));
    let at_a_time = (NUMBERS / bases.len()).clamp(1, in_memory);

    let limbs = engine.table_form(modulus.width()).limbs;
    let numbers = |count: usize| Secret::new(vec![0; count * limbs]);
    let [mut one, mut forms] = [1, bases.len()].map(numbers);
    engine.to_montgomery(modulus, &[&[Limb::ONE]], &mut one);
    engine.to_montgomery(modulus, &bases, &mut forms);
    let mut collection = Collection {
        engine,
        modulus,
        exponents: &exponents,
        window,
        limbs,
        bases: forms,
        products: numbers(bases.len() * at_a_time),
        buckets: repeated(&one, in_memory << window),
    };
    let mut end = sets;
    while end > 0 {
        let begin = end.saturating_sub(in_memory);
        for number in collection.buckets.chunks_exact_mut(limbs) {
            number.copy_from_slice(&one);
        }
        for first in (begin..end).step_by(at_a_time) {
            collection.fill(first..end.min(first + at_a_time), begin);
        }
        let totals = collection.totals(end - begin, &one);
        combine(modulus, &totals, window, power);
        end = begin;
    }
}

/// Multiplies `power`, in Montgomery form, by products of a few powers each, which share their
/// squarings. No exponent is 0.
fn share_squarings(
    engine: &dyn PowerEngine,
    modulus: ModulusRef<'_>,
    mut terms: Vec<[&[Limb]; 2]>,
    power: &mut [Limb],
) {
    if terms.is_empty() {
        return;
    }
    // Exponents of about one length are computed together.
    terms.sort_by_cached_key(|[_, exponent]| Reverse(length(exponent)));
    let lengths = terms.iter().map(|[_, exponent]| length(exponent));
    let products = lengths.map(|bits| bits.div_ceil(BITS_A_PRODUCT) as usize);
    let threads = engine.threads_for(modulus.width(), products.sum());
    let at_a_time = engine.lanes() * threads;
    let rounds = terms.len().div_ceil(at_a_time * MOST_TERMS);
    for terms in terms.chunks(terms.len().div_ceil(rounds)) {
        let size = terms.len().div_ceil(at_a_time);
        let parts = terms.len().div_ceil(size);
        // A part takes every `parts`th term, the longest exponents first.
        let longest = terms.iter().step_by(parts);
        let bits: Vec<_> = longest.map(|[_, exponent]| length(exponent)).collect();
        // The last terms may be powers of 1 to the 0.
        let term = |i: usize| terms.get(i).copied().unwrap_or([&[Limb::ONE], &[]]);
        let padded = |i: usize| {
            let limbs = bits[i / parts].div_ceil(Limb::BITS) as usize;
            let exponent = term(i)[1].iter().copied();
            exponent
                .chain(iter::repeat(Limb::ZERO))
                .take(limbs)
                .collect()
        };
        let padded: Vec<Vec<Limb>> = (0..parts * bits.len()).map(padded).collect();
        let term = |i: usize| [term(i)[0], &padded[i]];
        let of_part = |part: usize| (part..parts * bits.len()).step_by(parts).map(term);
        let mut products = Secret::new(vec![Limb::ZERO; parts * power.len()]);
        engine.multi_powers(MultiPowers {
            moduli: &vec![modulus; parts],
            terms: &(0..parts).flat_map(of_part).collect::<Vec<_>>(),
            exponent_bits: &bits,
            out: &mut products.chunks_exact_mut(power.len()).collect::<Vec<_>>(),
        });
        combine(modulus, &products, 0, power);
    }
}

/// The length of a digit that takes least time for exponents of up to `bits` bits, and of
/// `total_bits` together.
fn window_bits(total_bits: u64, bits: u32) -> u32 {
    let time = |window: &u32| {
        let sets = u64::from(bits.div_ceil(*window));
        total_bits / u64::from(*window) + ((2 * sets + ROUND) << *window)
    };
    let windows = 1..=LARGEST_WINDOW.min(bits);
    windows.min_by_key(time).expect("a window")
}

/// A number of a bucket.
#[derive(Clone, Copy)]
struct Member {
    /// The digit, and above it the set, counted from the first of a range.
    bucket: u32,
    /// The index of a base, or that of a product after all bases.
    number: u32,
}

/// The buckets of some sets, and the means to fill them.
struct Collection<'a> {
    engine: &'a dyn PowerEngine,
    modulus: ModulusRef<'a>,
    exponents: &'a [&'a [Limb]],
    window: u32,
    /// The limbs of a number in the form of the engine.
    limbs: usize,
    bases: Secret<Vec<u64>>,
    /// Memory for the products of a range of sets.
    products: Secret<Vec<u64>>,
    /// Those of the sets in memory. The digit is the low part of the index, the set the high part.
    /// An empty bucket is 1.
    buckets: Secret<Vec<u64>>,
}

impl Collection<'_> {
    /// Fills the buckets of a range of sets. The first set in memory is `begin`.
    fn fill(&mut self, sets: Range<usize>, begin: usize) {
        let first_bucket = (sets.start - begin) << self.window;
        let mut members = self.members(sets);
        let mut done = 0;
        loop {
            let (pairs, rest) = paired(&members, self.exponents.len() + done);
            let (known, places) = self.products.split_at_mut(done * self.limbs);
            let request = IndexedProducts {
                modulus: self.modulus,
                numbers: [&self.bases, known],
                pairs: &pairs,
                out: &mut places[..pairs.len() * self.limbs],
            };
            if pairs.is_empty() {
                for member in &members {
                    let bucket = (first_bucket + member.bucket as usize) * self.limbs;
                    let bucket = &mut self.buckets[bucket..][..self.limbs];
                    bucket.copy_from_slice(request.number(member.number, self.limbs));
                }
                return;
            }
            self.engine.indexed_products(request);
            done += pairs.len();
            members = rest;
        }
    }

    /// The bases with digits that are not 0, ordered by bucket.
    fn members(&self, sets: Range<usize>) -> Vec<Member> {
        let mut members = Vec::new();
        for set in sets.clone() {
            let low = set as u32 * self.window;
            let first = (set - sets.start) << self.window;
            for (number, exponent) in self.exponents.iter().enumerate() {
                let digit = digit_at(exponent, low, self.window);
                if digit != 0 {
                    members.push(Member {
                        bucket: (first + digit) as u32,
                        number: number as u32,
                    });
                }
            }
        }
        members.sort_unstable_by_key(|member| member.bucket);
        members
    }

    /// The product of `bucket[d]^d` of each of the first `sets` sets in memory, in ordinary form.
    fn totals(&self, sets: usize, one: &[u64]) -> Secret<Vec<Limb>> {
        // The running products of all sets, then the totals.
        let mut values = repeated(one, 2 * sets);
        let mut products = repeated(one, 2 * sets);
        let buckets = self.buckets.len() / self.limbs;
        let value = |index: usize| (buckets + index) as u32;
        for digit in (0..1 << self.window).rev() {
            let running = (0..sets).map(|set| [value(set), ((set << self.window) + digit) as u32]);
            // Those of the round before, so that all products of a round are independent.
            let totals = (0..sets).map(|set| [value(sets + set), value(set)]);
            let pairs: Vec<_> = running.chain(totals).collect();
            self.engine.indexed_products(IndexedProducts {
                modulus: self.modulus,
                numbers: [&self.buckets, &values],
                pairs: &pairs,
                out: &mut products,
            });
            mem::swap(&mut values, &mut products);
        }
        let mut totals = Secret::new(vec![Limb::ZERO; sets * self.modulus.limbs.len()]);
        self.engine
            .retrieve(self.modulus, &values[sets * self.limbs..], &mut totals);
        totals
    }
}

/// `count` times the same number.
fn repeated(number: &[u64], count: usize) -> Secret<Vec<u64>> {
    Secret::new(number.repeat(count))
}

/// Pairs numbers that are in one bucket. Returns the pairs, and the members with products, numbered
/// from `first`, in place of pairs.
fn paired(members: &[Member], first: usize) -> (Vec<[u32; 2]>, Vec<Member>) {
    let (mut pairs, mut rest) = (Vec::new(), Vec::new());
    for bucket in members.chunk_by(|a, b| a.bucket == b.bucket) {
        for pair in bucket.chunks(2) {
            let mut member = pair[0];
            if let [a, b] = pair {
                member.number = (first + pairs.len()) as u32;
                pairs.push([a.number, b.number]);
            }
            rest.push(member);
        }
    }
    (pairs, rest)
}

/// The length of a public number in bits.
fn length(limbs: &[Limb]) -> u32 {
    let top = limbs.iter().rposition(|limb| limb.0 != 0);
    top.map_or(0, |top| {
        (top as u32 + 1) * Limb::BITS - limbs[top].0.leading_zeros()
    })
}

/// The digit of `bits` bits from bit `low` on; bits above the number are 0.
fn digit_at(limbs: &[Limb], low: u32, bits: u32) -> usize {
    let (index, shift) = ((low / Limb::BITS) as usize, low % Limb::BITS);
    let limb = |index: usize| limbs.get(index).map_or(0, |limb| limb.0);
    let mut value = limb(index) >> shift;
    if shift + bits > Limb::BITS {
        value |= limb(index + 1) << (Limb::BITS - shift);
    }
    let mask: Word = (1 << bits) - 1;
    (value & mask) as usize
}

/// From the last total to the first, raises `power`, in Montgomery form, to `2^window` and
/// multiplies it by the total.
fn combine(modulus: ModulusRef<'_>, totals: &[Limb], window: u32, power: &mut [Limb]) {
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * power.len()]);
    let [mut value, mut spare, factor] = parts(&mut numbers);
    scrubbed(|| {
        value.copy_from_slice(power);
        for total in totals.chunks_exact(power.len()).rev() {
            modulus.square_times(window, &mut value, &mut spare);
            modulus.to_montgomery(total, factor);
            modulus.multiply(&mut value, factor, &mut spare);
        }
        power.copy_from_slice(value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto_bigint::U128;

    #[test]
    fn digits_make_the_exponent() {
        let number = U128::from_be_hex("fedcba98765432100123456789abcdef");
        for window in 1..=LARGEST_WINDOW {
            let sum = (0..U128::BITS.div_ceil(window))
                .rev()
                .fold(U128::ZERO, |sum, set| {
                    let digit = digit_at(number.as_limbs(), set * window, window);
                    sum.shl_vartime(window) | U128::from(digit as u64)
                });
            assert_eq!(sum, number, "{window}");
        }
        assert_eq!(digit_at(number.as_limbs(), 120, 16), 0xfe);
        assert_eq!(digit_at(number.as_limbs(), 1000, 16), 0);
        let lengths = [U128::ZERO, U128::ONE, number, number >> 65];
        assert_eq!(lengths.map(|x| length(x.as_limbs())), [0, 1, 128, 63]);
    }

    #[test]
    fn more_terms_have_wider_digits() {
        let windows = [128, 1024, 16_384, 1 << 20].map(|count: u64| window_bits(128 * count, 128));
        assert!(windows.is_sorted(), "{windows:?}");
        assert!(windows[0] >= 3 && windows[3] >= 12, "{windows:?}");
        assert_eq!(window_bits(1 << 24, 1), 1);
        // A single long exponent among short ones does not need many buckets.
        assert!(window_bits((1 << 20) + 191 * 16, 1 << 20) <= 2);
    }

    #[test]
    fn pairs_are_of_one_bucket() {
        let member = |(bucket, number)| Member { bucket, number };
        let members = [(1, 4), (1, 5), (1, 6), (2, 0), (7, 1), (7, 2)].map(member);
        let (pairs, rest) = paired(&members, 10);
        assert_eq!(pairs, [[4, 5], [1, 2]]);
        let rest: Vec<_> = rest.iter().map(|x| (x.bucket, x.number)).collect();
        assert_eq!(rest, [(1, 10), (1, 6), (2, 0), (7, 11)]);
    }
}
