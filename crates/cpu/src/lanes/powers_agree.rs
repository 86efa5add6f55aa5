//! Comparison of powers with expected values modulo both factors of their moduli: see
//! [`engine`](batch_modexp_core::engine).
//!
//! Each lane may replace its factor by its own multiple: numbers that are congruent modulo the
//! multiple are so modulo the factor. Only the last step is modulo the factor itself. Its input is
//! a multiple of the factor wherever the power is right.

use alloc::vec::Vec;
use core::mem;

use batch_modexp_core::engine::{Comparison, MASK_BITS, Moduli};
use batch_modexp_core::monty::inverse;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::{Choice, CtEq, Limb};
use zeroize::Zeroize;

use super::convert::{MAX_COUNT, of_lane};
use super::reduce::{LowHigh, add, negate};
use super::workspace::{Buffer, Workspace};
use super::{Lanes, Modulus};

/// Bits of an operand above those of the factor. With `B = 2^(width + MASK_BITS)`, which is above
/// the multiple, they give `R >= 4 * BOUND^2 * B`. A number folded below R is below
/// `(BOUND + 1) * B`. Its product with a number below `BOUND` multiples therefore meets the bound
/// on products of factors.
const HEADROOM: u32 = MASK_BITS + 2;

/// A power below `BOUND` multiples is subtracted from `2^LIFT` multiples. With the folded expected
/// value the sum is below `(BOUND + 5) * B`, which is below R.
const LIFT: u32 = 2;

/// Tells for each lane whether the power is right.
pub(crate) fn powers_agree<L: Lanes>(lanes: L, comparison: &Comparison<'_>) -> Vec<Choice> {
    const { assert!(2 <= L::BOUND && L::BOUND <= 4) };
    let count = comparison.factors[0].len();
    let mut verdicts = Vec::with_capacity(count);
    let Some(first) = comparison.factors[0].first() else {
        return verdicts;
    };
    let (size, half) = (comparison.bases.len() / count, first.limbs.len());
    assert!(
        size <= 2 * half,
        "the factors are too short for the numbers"
    );
    scrubbed(|| {
        let exponent = comparison.exponent.prepare();
        let mut sides = [(); 2].map(|()| Side::new(lanes, half, &exponent));
        let mut numbers = [(); 2].map(|()| LowHigh::new(&sides[0].workspace));
        for start in (0..count).step_by(L::COUNT) {
            let group = start..(start + L::COUNT).min(count);
            let flat = group.start * size..group.end * size;
            let workspace = &mut sides[0].workspace;
            numbers[0].load(workspace, &comparison.bases[flat.clone()], size, half);
            numbers[1].load(workspace, &comparison.expected[flat], size, half);
            let mut verdict = [Choice::TRUE; MAX_COUNT];
            for (i, side) in sides.iter_mut().enumerate() {
                let masks = comparison
                    .masks
                    .map(|masks| &masks[i * count..][group.clone()]);
                side.prepare(&comparison.factors[i][group.clone()], masks);
                side.compare(&exponent, &numbers, &mut verdict);
            }
            verdicts.extend_from_slice(&verdict[..group.len()]);
        }
    });
    verdicts
}

/// One of the two factors of each lane.
struct Side<'a, L: Lanes> {
    workspace: Workspace<'a, L>,
    /// The bits of the factors' limbs.
    width: u32,
    /// `S^2` modulo the factors: see [`LowHigh`].
    s2: Buffer<L::Limb>,
    /// The multiples and their constants.
    multiple: Buffer<L::Limb>,
    neg_inv: Secret<[L::Limb; 1]>,
    constants: Buffer<L::Limb>,
}

impl<'a, L: Lanes> Side<'a, L> {
    /// A side for factors of `half` limbs of crypto-bigint.
    fn new(lanes: L, half: usize, exponent: &PublicExponent) -> Self {
        let width = half as u32 * Limb::BITS;
        let limbs = L::limb_count(width + HEADROOM);
        Self {
            workspace: Workspace::for_public_powers(lanes, limbs, exponent),
            width,
            s2: Buffer::zeros(limbs),
            multiple: Buffer::zeros(limbs),
            neg_inv: Secret::new([L::ZERO]),
            constants: Buffer::zeros(L::constants_len(limbs)),
        }
    }

    /// Imports the factor of every lane, and multiplies it by the number that its mask gives.
    fn prepare(&mut self, group: Moduli<'a>, masks: Option<&[u16]>) {
        let are_new = self.workspace.prepare_products(group);
        if are_new {
            self.s2.copy_from_slice(self.workspace.operands().r2);
            self.workspace.r2_from_s2(self.width);
        }
        match masks {
            Some(masks) => self.multiply_by(|lane| *of_lane(masks, lane)),
            None if are_new => self.multiply_by(|_| 1),
            None => {}
        }
    }

    /// `multiple = mask * factor` in every lane, for an odd mask.
    fn multiply_by(&mut self, mask: impl Fn(usize) -> u16) {
        let lanes = self.workspace.lanes;
        let x = self.workspace.operands();
        let limb_mask = (1 << L::RADIX_BITS) - 1;
        for lane in 0..L::COUNT {
            let mask = u64::from(mask(lane) | 1) & ((1 << MASK_BITS) - 1);
            let mut carry = 0;
            for (multiple, limb) in self.multiple.iter_mut().zip(x.modulus.limbs) {
                // The sum is below 2^64: a limb of at most 52 bits, a mask of at most 12.
                let product = L::lane(limb, lane) * mask + carry;
                L::set_lane(multiple, lane, product & limb_mask);
                carry = product >> L::RADIX_BITS;
            }
            let neg_inv = L::lane(x.modulus.neg_inv, lane).wrapping_mul(inverse(mask));
            L::set_lane(&mut self.neg_inv[0], lane, neg_inv & limb_mask);
        }
        let constants = &mut self.constants;
        lanes.prepare(constants, &self.multiple, &self.neg_inv[0], x.scratch);
    }

    /// Clears the verdict of each lane in which `bases ^ exponent` differs from `expected` modulo
    /// the factor.
    fn compare(
        &mut self,
        exponent: &PublicExponent,
        [bases, expected]: &[LowHigh<L>; 2],
        verdict: &mut [Choice; MAX_COUNT],
    ) {
        let (lanes, mut x) = (self.workspace.lanes, self.workspace.operands());
        let factors = mem::replace(
            &mut x.modulus,
            Modulus {
                limbs: &self.multiple,
                neg_inv: &self.neg_inv[0],
                constants: &self.constants,
            },
        );
        bases.fold(lanes, x.value, &self.s2, x.modulus, x.scratch);
        x.public_pow(exponent);
        // The difference of the expected and the computed power, plus multiples.
        negate::<L>(x.spare, x.modulus.limbs, LIFT);
        expected.fold(lanes, x.value, &self.s2, x.modulus, x.scratch);
        add::<L>(x.value, x.spare);
        x.modulus = factors;
        x.leave();

        let mut bits = [0; MAX_COUNT];
        for limbs in self.workspace.reduced_value().chunks_exact(L::COUNT) {
            for lane in 0..L::COUNT {
                bits[lane] |= limbs[lane];
            }
        }
        for (verdict, bits) in verdict.iter_mut().zip(&bits) {
            *verdict &= bits.ct_eq(&0);
        }
        bits.zeroize();
    }
}
