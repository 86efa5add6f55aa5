//! Remainders of numbers up to twice as long as the moduli: see
//! [`engine`](batch_modexp_core::engine).

use batch_modexp_core::engine::Moduli;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::convert::{MAX_COUNT, flat, set_power_of_two};
use super::pow::groups;
use super::workspace::{Buffer, Workspace};
use super::{Lanes, Modulus};

/// Bits of an operand above those of the modulus: one gives `R > 2 * BOUND^2 * 2^width`. A folded
/// number is below `(BOUND + 1) * 2^width`. Its product with another number, below
/// `BOUND * modulus`, is thus below `R * modulus`.
const HEADROOM: u32 = 1;

/// `out[i] = numbers[i] mod moduli[i]`, for equally wide moduli.
pub(crate) fn reduce<L: Lanes>(lanes: L, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
    let Some(first) = moduli.first() else { return };
    let (size, half) = (numbers.len() / moduli.len(), first.limbs.len());
    let width = first.bits();
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(width + HEADROOM));
        let mut halves = LowHigh::new(&workspace);
        // R modulo the moduli: a product with it only reduces.
        let mut r = Buffer::zeros(workspace.limbs());
        let numbers = numbers.chunks(L::COUNT * size);
        for ((group, range), numbers) in groups::<L>(moduli).zip(numbers) {
            if workspace.prepare_products(group) {
                let excess = workspace.excess(width);
                let x = workspace.operands();
                // `S^2 * 2^(2 * excess) / R` is R.
                set_power_of_two::<L>(x.factor, 2 * excess);
                lanes.mul(&mut r, x.r2, x.factor, x.modulus, x.scratch);
            }
            halves.load(&mut workspace, numbers, size, half);
            let x = workspace.operands();
            halves.fold(lanes, x.spare, x.r2, x.modulus, x.scratch);
            lanes.mul(x.value, x.spare, &r, x.modulus, x.scratch);
            workspace.store(width, out[range].chunks_exact_mut(half));
        }
    });
}

/// The low and the high half of the number in each lane; the low half is as wide as the moduli.
///
/// With `S = 2^width` and `R = S * 2^excess`, the high half is stored times `2^excess`. A
/// multiplication by S^2 then gives `high * S`, its value in the number.
pub(super) struct LowHigh<L: Lanes> {
    low_and_high: Buffer<L::Limb>,
}

impl<L: Lanes> LowHigh<L> {
    pub(super) fn new(workspace: &Workspace<'_, L>) -> Self {
        Self {
            low_and_high: Buffer::zeros(2 * workspace.limbs()),
        }
    }

    /// Imports numbers of `size` limbs of crypto-bigint, `half` of which form the low half, by way
    /// of `workspace`.
    pub(super) fn load(
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
        workspace.import(|lane| &number(lane)[..half], width, 0, low);
        workspace.import(|lane| &number(lane)[half..], width, excess, high);
    }

    /// `out`, congruent to the numbers and below `BOUND * modulus + 2^width`, which must be below
    /// R. `s2` is S^2 modulo the moduli.
    pub(super) fn fold(
        &self,
        lanes: L,
        out: &mut [L::Limb],
        s2: &[L::Limb],
        modulus: Modulus<'_, L::Limb>,
        scratch: &mut [L::Limb],
    ) {
        let (low, high) = self.low_and_high.split_at(out.len());
        lanes.mul(out, high, s2, modulus, scratch);
        add::<L>(out, low);
    }
}

/// `a += b` in every lane.
pub(super) fn add<L: Lanes>(a: &mut [L::Limb], b: &[L::Limb]) {
    let mut carry = [0; MAX_COUNT];
    for (a, b) in a.iter_mut().zip(b) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let sum = L::lane(a, lane) + L::lane(b, lane) + *carry;
            L::set_lane(a, lane, sum & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}

/// `a = (modulus << lift) - a` in every lane, for a of at most `modulus << lift`.
pub(super) fn negate<L: Lanes>(a: &mut [L::Limb], modulus: &[L::Limb], lift: u32) {
    // Signed.
    let mut carry = [0i64; MAX_COUNT];
    for (a, modulus) in a.iter_mut().zip(modulus) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let lifted = (L::lane(modulus, lane) << lift) as i64;
            let sum = lifted - L::lane(a, lane) as i64 + *carry;
            L::set_lane(a, lane, sum as u64 & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}
