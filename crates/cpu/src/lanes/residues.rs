//! Products, remainders and comparisons of flat numbers: see [`engine`](batch_modexp_core::engine).
//!
//! Let `S = 2^width` be crypto-bigint's Montgomery radix, and `R = S * 2^excess` that of the lanes.

use alloc::vec::Vec;
use core::mem;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::engine::{Comparison, MASK_BITS, Moduli};
use batch_modexp_core::monty::inverse;
use batch_modexp_core::secret::{Secret, scrubbed};
use crypto_bigint::{Choice, CtEq, Limb};
use zeroize::Zeroize;

use super::convert::{flat, import, of_lane, set_power_of_two};
use super::ladder::groups;
use super::workspace::{Buffer, Workspace};
use super::{LaneModulus, Lanes, MAX_LANES};

/// `out[i] = a[i] * b[i] mod moduli[i]`, for equally wide moduli.
///
/// Both numbers are imported times `2^excess`, since
/// `(a * 2^excess * S^2 / R) * b * 2^excess / R = a * b`. They are then below R, and `S^2` below the
/// modulus, so the first product is below `BOUND * modulus`. The second one is below
/// `(2 * BOUND - 1) * modulus`: see [`Lanes::mul`]. `R^2` would take two more multiplications.
pub(super) fn products<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    [a, b]: [&[Limb]; 2],
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let (size, width) = (first.limbs.len(), first.width());
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(width));
        let excess = workspace.excess(width);
        for (group, range) in groups::<L>(moduli) {
            workspace.prepare(group);
            let (x, words) = workspace.operands_and_words();
            import::<L>(flat(&a[range.clone()], size), excess, words, x.value);
            import::<L>(flat(&b[range.clone()], size), excess, words, x.factor);
            lanes.mul(x.spare, x.value, x.s2, x.modulus, x.scratch);
            lanes.mul(x.value, x.spare, x.factor, x.modulus, x.scratch);
            workspace.store_below(2 * L::BOUND - 1, out[range].chunks_exact_mut(size));
        }
    });
}

/// Bits of an operand above those of the modulus: one gives `R > 2 * BOUND^2 * 2^width`. A folded
/// number is below `(BOUND + 1) * 2^width`. Its product with another number, below
/// `BOUND * modulus`, is thus below `R * modulus`.
const REMAINDER_HEADROOM: u32 = 1;

/// `out[i] = numbers[i] mod moduli[i]`, for equally wide moduli.
pub(super) fn remainders<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    numbers: &[Limb],
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let (size, half) = (numbers.len() / moduli.len(), first.limbs.len());
    let width = first.width();
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(width + REMAINDER_HEADROOM));
        let mut halves = LowHigh::new(&workspace);
        // R modulo the moduli: a product with it only reduces.
        let mut r = Buffer::zeros(workspace.limbs());
        let numbers = numbers.chunks(L::COUNT * size);
        for ((group, range), numbers) in groups::<L>(moduli).zip(numbers) {
            if workspace.prepare(group) {
                let excess = workspace.excess(width);
                let x = workspace.operands();
                // `S^2 * 2^(2 * excess) / R` is R.
                set_power_of_two::<L>(x.factor, 2 * excess);
                lanes.mul(&mut r, x.s2, x.factor, x.modulus, x.scratch);
            }
            halves.load(&mut workspace, numbers, size, half);
            let x = workspace.operands();
            halves.fold(lanes, x.spare, x.s2, x.modulus, x.scratch);
            lanes.mul(x.value, x.spare, &r, x.modulus, x.scratch);
            workspace.store(out[range].chunks_exact_mut(half));
        }
    });
}

/// The low and the high half of the number in each lane; the low half is as wide as the moduli.
///
/// With `S = 2^width` and `R = S * 2^excess`, the high half is stored times `2^excess`. A
/// multiplication by S^2 then gives `high * S`, its value in the number.
struct LowHigh<L: Lanes> {
    low_and_high: Buffer<L::Limb>,
}

impl<L: Lanes> LowHigh<L> {
    fn new(workspace: &Workspace<'_, L>) -> Self {
        Self {
            low_and_high: Buffer::zeros(2 * workspace.limbs()),
        }
    }

    /// Imports numbers of `size` limbs of crypto-bigint, `half` of which form the low half, by way
    /// of `workspace`.
    fn load(
        &mut self,
        workspace: &mut Workspace<'_, L>,
        numbers: &[Limb],
        size: usize,
        half: usize,
    ) {
        let width = half as u32 * Limb::BITS;
        let (excess, half) = (workspace.excess(width), half.min(size));
        let limbs = self.low_and_high.len() / 2;
        let (low, high) = self.low_and_high.split_at_mut(limbs);
        let number = flat(numbers, size);
        let (_, words) = workspace.operands_and_words();
        import::<L>(|lane| &number(lane)[..half], 0, words, low);
        import::<L>(|lane| &number(lane)[half..], excess, words, high);
    }

    /// `out`, congruent to the numbers and below `BOUND * modulus + 2^width`, which must be below
    /// R. `s2` is S^2 modulo the moduli.
    fn fold(
        &self,
        lanes: L,
        out: &mut [L::Limb],
        s2: &[L::Limb],
        modulus: LaneModulus<'_, L::Limb>,
        scratch: &mut [L::Limb],
    ) {
        let (low, high) = self.low_and_high.split_at(out.len());
        lanes.mul(out, high, s2, modulus, scratch);
        add::<L>(out, low);
    }
}

/// `a += b` in every lane.
fn add<L: Lanes>(a: &mut [L::Limb], b: &[L::Limb]) {
    let mut carry = [0; MAX_LANES];
    for (a, b) in a.iter_mut().zip(b) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let sum = L::lane(a, lane) + L::lane(b, lane) + *carry;
            L::set_lane(a, lane, sum & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}

/// `a = (modulus << lift) - a` in every lane, for a of at most `modulus << lift`.
fn negate<L: Lanes>(a: &mut [L::Limb], modulus: &[L::Limb], lift: u32) {
    // Signed.
    let mut carry = [0i64; MAX_LANES];
    for (a, modulus) in a.iter_mut().zip(modulus) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let lifted = (L::lane(modulus, lane) << lift) as i64;
            let sum = lifted - L::lane(a, lane) as i64 + *carry;
            L::set_lane(a, lane, sum as u64 & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}

/// Bits of an operand above those of the prime. With `B = 2^(width + MASK_BITS)`, which is above
/// the multiple, they give `R >= 4 * BOUND^2 * B`. A number folded below R is below
/// `(BOUND + 1) * B`. Its product with a number below `BOUND` multiples therefore meets the bound
/// on products of factors.
const COMPARISON_HEADROOM: u32 = MASK_BITS + 2;

/// A power below `BOUND` multiples is subtracted from `2^LIFT` multiples. With the folded expected
/// value the sum is below `(BOUND + 5) * B`, which is below R.
const LIFT: u32 = 2;

/// Tells for each lane whether the power is right, modulo both primes.
///
/// Each lane may replace its prime by its own multiple: numbers that are congruent modulo the
/// multiple are so modulo the prime. Only the last step is modulo the prime itself. Its input is a
/// multiple of the prime wherever the power is right.
pub(super) fn powers_agree<L: Lanes>(lanes: L, comparison: &Comparison<'_>) -> Vec<Choice> {
    const { assert!(2 <= L::BOUND && L::BOUND <= 4) };
    let count = comparison.primes.len() / 2;
    let mut verdicts = Vec::with_capacity(count);
    let Some(first) = comparison.primes.first() else {
        return verdicts;
    };
    let (size, half) = (comparison.bases.len() / count, first.limbs.len());
    assert!(size <= 2 * half, "the primes are too short for the numbers");
    scrubbed(|| {
        let exponent = comparison.exponent;
        let mut sides = [(); 2].map(|()| Side::new(lanes, half, exponent));
        let mut numbers = [(); 2].map(|()| LowHigh::new(&sides[0].workspace));
        for start in (0..count).step_by(L::COUNT) {
            let group = start..(start + L::COUNT).min(count);
            for (i, side) in sides.iter_mut().enumerate() {
                let masks = comparison
                    .masks
                    .map(|masks| &masks[i * count..][group.clone()]);
                side.prepare(&comparison.primes[i * count..][group.clone()], masks);
            }
            let flat = group.start * size..group.end * size;
            let workspace = &mut sides[0].workspace;
            numbers[0].load(workspace, &comparison.bases[flat.clone()], size, half);
            numbers[1].load(workspace, &comparison.expected[flat], size, half);
            let mut verdict = [Choice::TRUE; MAX_LANES];
            for side in &mut sides {
                side.compare(exponent, &numbers, &mut verdict);
            }
            verdicts.extend_from_slice(&verdict[..group.len()]);
        }
    });
    verdicts
}

/// One of the two primes of each lane.
struct Side<'a, L: Lanes> {
    workspace: Workspace<'a, L>,
    /// The multiples and their constants.
    multiple: Buffer<L::Limb>,
    neg_inv: Secret<[L::Limb; 1]>,
    constants: Buffer<L::Limb>,
}

impl<'a, L: Lanes> Side<'a, L> {
    /// A side for primes of `half` limbs of crypto-bigint.
    fn new(lanes: L, half: usize, exponent: &PublicExponent) -> Self {
        let width = half as u32 * Limb::BITS;
        let limbs = L::limb_count(width + COMPARISON_HEADROOM);
        Self {
            workspace: Workspace::for_public_powers(lanes, limbs, exponent),
            multiple: Buffer::zeros(limbs),
            neg_inv: Secret::new([L::ZERO]),
            constants: Buffer::zeros(L::constants_len(limbs)),
        }
    }

    /// Imports the prime of every lane, and multiplies it by the number that its mask gives.
    fn prepare(&mut self, group: Moduli<'a>, masks: Option<&[u16]>) {
        let are_new = self.workspace.prepare_for_powers(group);
        match masks {
            Some(masks) => self.multiply_by(|lane| *of_lane(masks, lane)),
            None if are_new => self.multiply_by(|_| 1),
            None => {}
        }
    }

    /// `multiple = mask * prime` in every lane, for an odd mask.
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
    /// the prime.
    fn compare(
        &mut self,
        exponent: &PublicExponent,
        [bases, expected]: &[LowHigh<L>; 2],
        verdict: &mut [Choice; MAX_LANES],
    ) {
        let (lanes, mut x) = (self.workspace.lanes, self.workspace.operands());
        let primes = mem::replace(
            &mut x.modulus,
            LaneModulus {
                limbs: &self.multiple,
                neg_inv: &self.neg_inv[0],
                constants: &self.constants,
            },
        );
        bases.fold(lanes, x.value, x.s2, x.modulus, x.scratch);
        x.public_pow(exponent);
        // The difference of the expected and the computed power, plus multiples.
        negate::<L>(x.spare, x.modulus.limbs, LIFT);
        expected.fold(lanes, x.value, x.s2, x.modulus, x.scratch);
        add::<L>(x.value, x.spare);
        x.modulus = primes;
        x.retrieve();

        let mut bits = [0; MAX_LANES];
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
