//! Runs: batches without the caller's number type. Behind [`Run`] all numbers are limbs of
//! crypto-bigint.
//!
//! Rust compiles code that is generic over a caller's type again in every crate that calls it. The
//! kernels, which take minutes to compile, are not generic over it, and are compiled once, with
//! this crate.

use core::array;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::engine::SecretPowers;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::width::width;
use batch_modexp_core::{ModExp, ModMul};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, Unsigned};
use zeroize::Zeroize;

use super::convert::MAX_COUNT;
use super::products::same;

/// Consecutive instances with equally wide moduli, and the places of their results.
///
/// A *group* (`block` in the code) is a range of them with at most one for each lane. Unused lanes
/// repeat its last instance.
pub(crate) trait Run<'a> {
    /// The number of instances, at least 1.
    fn count(&self) -> usize;

    /// The width of the moduli in bits.
    fn bits(&self) -> u32;

    /// The moduli of a group.
    fn moduli(&self, block: Range<usize>) -> [ModulusRef<'a>; MAX_COUNT];

    /// Whether the moduli of `block` and of `prepared` are the same references, lane by lane. A
    /// shorter group may follow a longer one: the moduli in unused lanes do not matter.
    fn same_moduli(&self, block: Range<usize>, prepared: Range<usize>) -> bool;

    /// The base and the exponent, or both factors, of the instances of a group.
    fn numbers(&self, block: Range<usize>) -> [[&'a [Limb]; 2]; MAX_COUNT];

    /// The places of the results of a group, each as wide as the moduli; empty for unused lanes.
    fn results(&mut self, block: Range<usize>) -> [&mut [Limb]; MAX_COUNT];
}

/// The groups of a range of instances. The last one may leave lanes unused.
pub(super) fn blocks(range: Range<usize>, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(lanes)
        .map(move |start| start..(start + lanes).min(end))
}

/// Passes the instances of a batch to `compute`, one run of consecutive, equally wide instances at
/// a time.
pub(super) fn each_run<U: Unsigned, I: Instance<U>>(
    batch: &[I],
    mut out: &mut [U],
    compute: impl Fn(&mut dyn Run<'_>),
) {
    let bits = |instance: &I| width(instance.params().modulus().as_ref());
    for batch in batch.chunk_by(|a, b| bits(a) == bits(b)) {
        let (head, tail) = out.split_at_mut(batch.len());
        compute(&mut Typed { batch, out: head });
        out = tail;
    }
}

/// An instance of numbers of type `U`.
pub(super) trait Instance<U: Unsigned> {
    fn params(&self) -> &MontyParams<U>;

    /// See [`Run::numbers`].
    fn numbers(&self) -> [&[Limb]; 2];
}

impl<U: Unsigned> Instance<U> for ModExp<'_, U> {
    fn params(&self) -> &MontyParams<U> {
        self.params
    }

    fn numbers(&self) -> [&[Limb]; 2] {
        [self.base.as_limbs(), self.exponent.as_limbs()]
    }
}

impl<U: Unsigned> Instance<U> for ModMul<'_, U> {
    fn params(&self) -> &MontyParams<U> {
        self.params
    }

    fn numbers(&self) -> [&[Limb]; 2] {
        [self.a.as_limbs(), self.b.as_limbs()]
    }
}

/// A [`Run`] of instances of type `I`, with numbers of type `U`.
struct Typed<'a, I, U> {
    batch: &'a [I],
    out: &'a mut [U],
}

impl<'a, U: Unsigned, I: Instance<U>> Typed<'a, I, U> {
    /// The value of `f` for the instance of each lane.
    fn each_lane<T>(&self, block: Range<usize>, f: impl Fn(&'a I) -> T) -> [T; MAX_COUNT] {
        let block = &self.batch[block];
        array::from_fn(|lane| f(&block[lane.min(block.len() - 1)]))
    }
}

impl<'a, U: Unsigned, I: Instance<U>> Run<'a> for Typed<'a, I, U> {
    fn count(&self) -> usize {
        self.batch.len()
    }

    fn bits(&self) -> u32 {
        width(self.batch[0].params().modulus().as_ref())
    }

    fn moduli(&self, block: Range<usize>) -> [ModulusRef<'a>; MAX_COUNT] {
        self.each_lane(block, |instance| ModulusRef::of(instance.params()))
    }

    fn same_moduli(&self, block: Range<usize>, prepared: Range<usize>) -> bool {
        let (block, prepared) = (&self.batch[block], &self.batch[prepared]);
        let mut pairs = block.iter().zip(prepared);
        block.len() <= prepared.len() && pairs.all(|(a, b)| ptr::eq(a.params(), b.params()))
    }

    fn numbers(&self, block: Range<usize>) -> [[&'a [Limb]; 2]; MAX_COUNT] {
        self.each_lane(block, Instance::numbers)
    }

    fn results(&mut self, block: Range<usize>) -> [&mut [Limb]; MAX_COUNT] {
        let mut places = self.batch[block.clone()].iter().zip(&mut self.out[block]);
        array::from_fn(|_| match places.next() {
            Some((instance, out)) => resized(out, instance.params().modulus().as_ref()),
            None => &mut [],
        })
    }
}

/// Makes `out` as wide as `modulus` and returns its limbs. Wipes a value that it replaces.
fn resized<'a, U: Unsigned>(out: &'a mut U, modulus: &U) -> &'a mut [Limb] {
    if width(out) != width(modulus) {
        out.as_mut_limbs().zeroize();
        *out = U::zero_like(modulus);
    }
    out.as_mut_limbs()
}

/// A run of numbers in flat buffers.
impl<'a> Run<'a> for SecretPowers<'a> {
    fn count(&self) -> usize {
        self.moduli.len()
    }

    fn bits(&self) -> u32 {
        self.moduli[0].bits()
    }

    fn moduli(&self, block: Range<usize>) -> [ModulusRef<'a>; MAX_COUNT] {
        array::from_fn(|lane| self.moduli[(block.start + lane).min(block.end - 1)])
    }

    fn same_moduli(&self, block: Range<usize>, prepared: Range<usize>) -> bool {
        same(&self.moduli[block], &self.moduli[prepared])
    }

    fn numbers(&self, block: Range<usize>) -> [[&'a [Limb]; 2]; MAX_COUNT] {
        let (limbs, bases, exponents) = (self.limbs(), self.bases, self.exponents);
        array::from_fn(|lane| {
            let instance = (block.start + lane).min(block.end - 1);
            let base = &bases[instance * limbs..][..limbs];
            [base, exponents[instance]]
        })
    }

    fn results(&mut self, block: Range<usize>) -> [&mut [Limb]; MAX_COUNT] {
        let limbs = self.limbs();
        let mut places = self.out[block.start * limbs..block.end * limbs].chunks_exact_mut(limbs);
        array::from_fn(|_| places.next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use alloc::vec;
    use alloc::vec::Vec;
    use crypto_bigint::modular::BoxedMontyParams;
    use crypto_bigint::{BoxedUint, Odd};

    use super::*;

    fn params(limbs: u32) -> BoxedMontyParams {
        BoxedMontyParams::new(Odd::new(BoxedUint::max(limbs * Limb::BITS)).unwrap())
    }

    #[test]
    fn runs_are_equally_wide_and_have_places_of_their_width() {
        let (narrow, wide) = (params(1), params(3));
        let (base, exponent) = (BoxedUint::from(2u8), BoxedUint::from(5u8));
        let batch = [&narrow, &wide, &wide, &narrow]
            .map(|params| ModExp::new(&base, &exponent, params.as_ref()));
        let mut out = vec![BoxedUint::max(2 * Limb::BITS); 4];
        let runs = RefCell::new(Vec::new());
        each_run(&batch, &mut out, |run| {
            let all = 0..run.count();
            // Unused lanes repeat the last one.
            let moduli = run.moduli(all.clone()).map(|params| params.limbs.len());
            assert_eq!(moduli, [(run.bits() / Limb::BITS) as usize; MAX_COUNT]);
            let numbers = [base.as_limbs(), exponent.as_limbs()];
            assert_eq!(run.numbers(all.clone()), [numbers; MAX_COUNT]);
            let places = run.results(all).map(|place| place.len());
            runs.borrow_mut().push((run.count(), run.bits(), places));
        });
        let bits = Limb::BITS;
        assert_eq!(
            runs.into_inner(),
            [
                (1, bits, [1, 0, 0, 0, 0, 0, 0, 0]),
                (2, 3 * bits, [3, 3, 0, 0, 0, 0, 0, 0]),
                (1, bits, [1, 0, 0, 0, 0, 0, 0, 0]),
            ]
        );
        assert_eq!(
            out.iter().map(width).collect::<Vec<_>>(),
            [1, 3, 3, 1].map(|n| n * bits)
        );
    }

    #[test]
    fn the_last_block_may_be_shorter() {
        assert_eq!(blocks(3..13, 4).collect::<Vec<_>>(), [3..7, 7..11, 11..13]);
        assert_eq!(blocks(3..3, 4).next(), None);
    }

    /// Moduli are distinguished by their reference, which is public, not by their value.
    #[test]
    fn equal_moduli_of_two_references_are_not_the_same() {
        let moduli = [params(1), params(1)];
        let number = BoxedUint::from(2u8);
        let batch = [0, 1, 0, 1, 1, 0].map(|i| ModMul::new(&number, &number, moduli[i].as_ref()));
        let mut out = vec![BoxedUint::zero(); batch.len()];
        each_run(&batch, &mut out, |run| {
            assert!(run.same_moduli(2..4, 0..2));
            assert!(!run.same_moduli(4..6, 0..2));
            // A shorter group after a longer one, and the reverse.
            assert!(run.same_moduli(2..3, 0..2));
            assert!(!run.same_moduli(2..4, 0..1));
        });
    }
}
