//! Multiplication, squaring and the table look-up for numbers in memory.

use super::across::{Across, Pair, PairKernel};
use super::kernel::{Moduli, Number, multiply};
use crate::ifma::kernel::unrolled;
use crate::lanes::Modulus;

/// A number in memory, limb by limb, as quarters.
type Quarters<const J: usize> = [[Pair; J]; 4];

/// A number in memory, vector by vector.
#[repr(C, align(64))]
struct Vectors<const J: usize>([[Pair; 4]; J]);

/// See [`Lanes::mul`](crate::lanes::Lanes::mul).
pub(super) struct Mul<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) a: &'a [Pair],
    pub(super) b: &'a [Pair],
    pub(super) modulus: Modulus<'a, Pair>,
}

impl PairKernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let modulus = load_moduli::<T, J>(t, self.modulus);
        let a = load(t, self.a);
        let b: &Quarters<J> = quarters(self.b.as_chunks().0);
        let b = b.as_flattened();
        let product = multiply(t, &a, |i| t.spread(&b[i]), &modulus);
        store(t, self.out, &product);
    }
}

/// `out = a^(2^count)` in Montgomery form; `a` itself if `count` is 0.
pub(super) struct Squares<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) a: &'a [Pair],
    pub(super) count: u32,
    pub(super) modulus: Modulus<'a, Pair>,
}

impl PairKernel for Squares<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let modulus = load_moduli::<T, J>(t, self.modulus);
        let mut value = load(t, self.a);
        let mut vectors = Vectors([[Pair::ZERO; 4]; J]);
        for _ in 0..self.count {
            unrolled!(J, I, {
                t.store_pairs(&mut vectors.0[I], value[I]);
            });
            let vectors = &vectors;
            let spread = |i: usize| t.spread(&vectors.0[i % J][i / J]);
            value = multiply(t, &value, spread, &modulus);
        }
        store(t, self.out, &value);
    }
}

/// See [`Lanes::select`](crate::lanes::Lanes::select).
pub(super) struct Select<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) table: &'a [Pair],
    pub(super) digits: &'a Pair,
}

impl PairKernel for Select<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let digits = t.spread(self.digits);
        let mut sums = [t.zero(); J];
        for (entry, number) in (0..).zip(self.table.chunks_exact(4 * J)) {
            let number: &[[Pair; 4]; J] = vectors(number.as_chunks().0);
            unrolled!(J, I, {
                sums[I] = t.pick_pairs(sums[I], &number[I], digits, entry);
            });
        }
        let out = self.out.as_chunks_mut().0;
        let out: &mut [[Pair; 4]; J] = out.try_into().expect("as long as an entry");
        unrolled!(J, I, {
            t.store_pairs(&mut out[I], sums[I]);
        });
    }
}

#[inline(always)]
fn vectors<const J: usize>(chunks: &[[Pair; 4]]) -> &[[Pair; 4]; J] {
    chunks
        .try_into()
        .expect("a number has as many vectors as a quarter has limbs")
}

#[inline(always)]
fn quarters<const J: usize>(chunks: &[[Pair; J]]) -> &Quarters<J> {
    chunks.try_into().expect("a number has four quarters")
}

#[inline(always)]
fn load<T: Across, const J: usize>(t: T, limbs: &[Pair]) -> Number<T, J> {
    let [a, b, c, d] = quarters(limbs.as_chunks::<J>().0);
    let mut number = [t.zero(); J];
    unrolled!(J, I, {
        number[I] = t.gather([&a[I], &b[I], &c[I], &d[I]]);
    });
    number
}

#[inline(always)]
fn store<T: Across, const J: usize>(t: T, limbs: &mut [Pair], number: &Number<T, J>) {
    let chunks = limbs.as_chunks_mut::<J>().0;
    let chunks: &mut Quarters<J> = chunks.try_into().expect("a number has four quarters");
    let [a, b, c, d] = chunks;
    unrolled!(J, I, {
        t.scatter([&mut a[I], &mut b[I], &mut c[I], &mut d[I]], number[I]);
    });
}

#[inline(always)]
fn load_moduli<T: Across, const J: usize>(t: T, modulus: Modulus<'_, Pair>) -> Moduli<T, J> {
    Moduli {
        limbs: load(t, modulus.limbs),
        neg_inv: [0, 1].map(|i| t.spread(&modulus.constants[i])),
    }
}
