//! Products in batches of a caller's numbers on lanes.
//!
//! Let `S = 2^width` be crypto-bigint's Montgomery radix, and `R = 2^r_bits` the larger one of the
//! lanes. The product in Montgomery form is `a * b / S = a * (b * R / S) / R`: one multiplication
//! by a factor that is shifted up by `r_bits - width` bits on import. The shifted factor fits, and
//! `a * b < S * modulus` implies `a * (b * R / S) < R * modulus`, which the lanes require. Only the
//! modulus needs preparation.
//!
//! # Code for all types of numbers
//!
//! Rust compiles code that is generic over a caller's type again in every crate that calls it. The
//! kernels, which take minutes to compile, get flat numbers or a [`Run`] in place of such a type.
//! They are reached through a trait object, and compiled once, with this crate.

use core::array;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::batch::{Form, check_products};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::scrubbed;
use batch_modexp_core::width::{MAX_BITS, clear, place, width};
use batch_modexp_core::{Error, ModMul};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, Unsigned};

use super::convert::{import, of_lane};
use super::workspace::Workspace;
use super::{Lanes, MAX_LANES};

/// Consecutive products with equally wide moduli, and the places of their results.
///
/// A *group* is a range of them with at most one for each lane. Unused lanes
/// repeat its last product.
pub(crate) trait Run<'a> {
    /// The number of products, at least 1.
    fn count(&self) -> usize;

    /// The moduli of a group.
    fn moduli(&self, group: Range<usize>) -> [ModulusRef<'a>; MAX_LANES];

    /// Whether the moduli of `group` and of `prepared` are the same references, lane by lane. A
    /// shorter group may follow a longer one: the moduli in unused lanes do not matter.
    fn same_moduli(&self, group: Range<usize>, prepared: Range<usize>) -> bool;

    /// Both factors of the products of a group.
    fn factors(&self, group: Range<usize>) -> [[&'a [Limb]; 2]; MAX_LANES];

    /// The places of the results of a group, each as wide as the moduli; empty for unused lanes.
    fn results(&mut self, group: Range<usize>) -> [&mut [Limb]; MAX_LANES];
}

/// [`BatchModMul`](batch_modexp_core::BatchModMul) by `multiply`, which receives run after run.
pub(crate) fn batch_mod_mul<U: Unsigned>(
    batch: &[ModMul<'_, U>],
    mut out: &mut [U],
    multiply: impl Fn(&mut Products<'_, U>) -> Result<(), Error>,
) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    for batch in batch.chunk_by(|a, b| bits(a) == bits(b)) {
        let (head, tail) = out.split_at_mut(batch.len());
        multiply(&mut Products { batch, out: head })?;
        out = tail;
    }
    Ok(())
}

/// The width of the modulus of a product in bits.
fn bits<U: Unsigned>(product: &ModMul<'_, U>) -> u32 {
    width(product.params.modulus().as_ref())
}

/// A [`Run`] of products of numbers of type `U`.
pub(crate) struct Products<'a, U: Unsigned> {
    pub(crate) batch: &'a [ModMul<'a, U>],
    pub(crate) out: &'a mut [U],
}

impl<'a, U: Unsigned> Products<'a, U> {
    /// The value of `f` for the product of each lane.
    fn each_lane<T>(
        &self,
        group: Range<usize>,
        f: impl Fn(&'a ModMul<'a, U>) -> T,
    ) -> [T; MAX_LANES] {
        let group = &self.batch[group];
        array::from_fn(|lane| f(of_lane(group, lane)))
    }
}

impl<'a, U: Unsigned> Run<'a> for Products<'a, U> {
    fn count(&self) -> usize {
        self.batch.len()
    }

    fn moduli(&self, group: Range<usize>) -> [ModulusRef<'a>; MAX_LANES] {
        self.each_lane(group, |product| ModulusRef::of(product.params))
    }

    fn same_moduli(&self, group: Range<usize>, prepared: Range<usize>) -> bool {
        let (group, prepared) = (&self.batch[group], &self.batch[prepared]);
        let mut pairs = group.iter().zip(prepared);
        group.len() <= prepared.len() && pairs.all(|(a, b)| ptr::eq(a.params, b.params))
    }

    fn factors(&self, group: Range<usize>) -> [[&'a [Limb]; 2]; MAX_LANES] {
        self.each_lane(group, |product| {
            [product.a.as_limbs(), product.b.as_limbs()]
        })
    }

    fn results(&mut self, group: Range<usize>) -> [&mut [Limb]; MAX_LANES] {
        let mut places = self.batch[group.clone()].iter().zip(&mut self.out[group]);
        array::from_fn(|_| match places.next() {
            Some((product, out)) => place(out, product.params.modulus().as_ref()),
            None => &mut [],
        })
    }
}

/// Computes the products of a run on `lanes`.
pub(crate) fn multiply<L: Lanes>(lanes: L, form: Form, run: &mut dyn Run<'_>) {
    let width = run.moduli(0..1)[0].width();
    let limbs = L::limb_count(width);
    let shift = match form {
        Form::Ordinary => 0,
        Form::Montgomery => limbs as u32 * L::RADIX_BITS - width,
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, limbs);
        let mut prepared = 0..0;
        let count = run.count();
        for start in (0..count).step_by(L::COUNT) {
            let group = start..(start + L::COUNT).min(count);
            if !run.same_moduli(group.clone(), prepared.clone()) {
                let moduli = run.moduli(group.clone());
                workspace.import_moduli(&moduli);
                if form == Form::Ordinary {
                    workspace.import_s2(&moduli);
                    workspace.compute_r2(width);
                }
                prepared = group.clone();
            }
            let factors = run.factors(group.clone());
            workspace.load(|lane| factors[lane][0]);
            let (mut x, words) = workspace.operands_and_words();
            import::<L>(|lane| factors[lane][1], shift, words, x.factor);
            match form {
                Form::Ordinary => {
                    lanes.mul(x.spare, x.value, x.r2, x.modulus, x.scratch);
                    lanes.mul(x.value, x.spare, x.factor, x.modulus, x.scratch);
                }
                Form::Montgomery => {
                    x.multiply_by_factor();
                    x.end();
                }
            }
            workspace.store(run.results(group).into_iter());
        }
    });
}

/// The smallest numbers of products for which lanes are faster than `Serial`. Measured on a Zen 5,
/// with widths in bits and numbers that grow by about a half from one to the next. A width in
/// between counts as the next smaller one.
#[derive(Debug)]
pub(crate) struct ProductCounts {
    /// The narrowest moduli that this row is for, in bits.
    pub(crate) bits: u32,
    /// If most instances have the modulus of the one before: for ordinary products, then for those
    /// in Montgomery form.
    pub(crate) shared: [usize; 2],
    /// If most do not.
    pub(crate) mixed: [usize; 2],
}

pub(crate) const fn fewest(bits: u32, shared: [usize; 2], mixed: [usize; 2]) -> ProductCounts {
    ProductCounts {
        bits,
        shared,
        mixed,
    }
}

/// `Serial` is always faster.
pub(crate) const NEVER: usize = usize::MAX;

/// Whether these products modulo equally wide moduli are faster in lanes.
pub(crate) fn is_faster<'a, U: Unsigned>(
    table: &[ProductCounts],
    form: Form,
    moduli: impl ExactSizeIterator<Item = &'a MontyParams<U>> + Clone,
) -> bool {
    let (count, others) = (moduli.len(), moduli.clone().skip(1));
    let first = moduli.clone().next();
    let bits = first.map_or(0, |modulus| width(modulus.modulus().as_ref()));
    let Some(fewest) = table.iter().rev().find(|fewest| fewest.bits <= bits) else {
        return false;
    };
    // A group of lanes is prepared for its moduli: at most twice for each change.
    let changes = moduli.zip(others).filter(|(a, b)| !ptr::eq(*a, *b)).count();
    let [ordinary, montgomery] = match 16 * changes > count {
        true => fewest.mixed,
        false => fewest.shared,
    };
    count
        >= match form {
            Form::Ordinary => ordinary,
            Form::Montgomery => montgomery,
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
        let (a, b) = (BoxedUint::from(2u8), BoxedUint::from(5u8));
        let batch =
            [&narrow, &wide, &wide, &narrow].map(|params| ModMul::new(&a, &b, params.as_ref()));
        let mut out = vec![BoxedUint::max(2 * Limb::BITS); 4];
        let runs = RefCell::new(Vec::new());
        batch_mod_mul(&batch, &mut out, |run| {
            let all = 0..run.count();
            // Unused lanes repeat the last one.
            let bits = run.moduli(0..1)[0].width();
            let moduli = run.moduli(all.clone()).map(|params| params.width());
            assert_eq!(moduli, [bits; MAX_LANES]);
            let factors = [a.as_limbs(), b.as_limbs()];
            assert_eq!(run.factors(all.clone()), [factors; MAX_LANES]);
            let places = run.results(all).map(|place| place.len());
            runs.borrow_mut().push((run.count(), bits, places));
            Ok(())
        })
        .unwrap();
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

    /// Moduli are distinguished by their reference, which is public, not by their value.
    #[test]
    fn equal_moduli_of_two_references_are_not_the_same() {
        let moduli = [params(1), params(1)];
        let number = BoxedUint::from(2u8);
        let batch = [0, 1, 0, 1, 1, 0].map(|i| ModMul::new(&number, &number, moduli[i].as_ref()));
        let mut out = vec![BoxedUint::zero(); batch.len()];
        batch_mod_mul(&batch, &mut out, |run| {
            assert!(run.same_moduli(2..4, 0..2));
            assert!(!run.same_moduli(4..6, 0..2));
            // A shorter group after a longer one, and the reverse.
            assert!(run.same_moduli(2..3, 0..2));
            assert!(!run.same_moduli(2..4, 0..1));
            Ok(())
        })
        .unwrap();
    }
}
