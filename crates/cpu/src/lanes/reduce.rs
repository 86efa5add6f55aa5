//! Remainders of numbers up to twice as long as the moduli: see
//! [`engine`](batch_modexp_core::engine).

use batch_modexp_core::engine::Moduli;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::convert::MAX_COUNT;
use super::products::{each_lane, same};
use super::workspace::{Buffer, Operands, Workspace, flat, set_power_of_two};
use super::{Lanes, Modulus};

/// Bits of an operand above those of the modulus: one gives `R > 2 * BOUND^2 * 2^width`. A folded
/// number is below `(BOUND + 1) * 2^width`. Its product with another number, below
/// `BOUND * modulus`, is thus below `R * modulus`.
const HEADROOM: u32 = 1;

/// `out[i] = numbers[i] mod moduli[i]`, for equally wide moduli.
pub(crate) fn reduce<L: Lanes>(lanes: L, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
    let Some(first) = moduli.first() else { return };
    let (size, half) = (numbers.len() / moduli.len(), first.limbs.len());
    scrubbed(|| {
        let mut remainders = Remainders::new(lanes, half);
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let end = start + group.len();
            remainders.prepare(group);
            remainders.reduce(&numbers[start * size..end * size], size);
            let out = out[start * half..end * half].chunks_exact_mut(half);
            remainders.workspace.store(half as u32 * Limb::BITS, out);
        }
    });
}

struct Remainders<'a, L: Lanes> {
    workspace: Workspace<L>,
    /// The moduli that the workspace is prepared for.
    prepared: Moduli<'a>,
    /// The number of limbs of crypto-bigint in a modulus.
    half: usize,
    /// R modulo the moduli: a product with it only reduces.
    r: Buffer<L::Limb>,
    numbers: Halves<L>,
}

impl<'a, L: Lanes> Remainders<'a, L> {
    fn new(lanes: L, half: usize) -> Self {
        let limbs = L::limb_count(half as u32 * Limb::BITS + HEADROOM);
        let workspace = Workspace::new(lanes, limbs);
        Self {
            prepared: &[],
            half,
            r: Buffer::zeros(limbs),
            numbers: Halves::new(&workspace),
            workspace,
        }
    }

    /// Imports the modulus of every lane.
    fn prepare(&mut self, group: Moduli<'a>) {
        if same(group, self.prepared) {
            return;
        }
        self.workspace.prepare_products(&each_lane(group));
        self.prepared = group;
        let excess = self.workspace.excess(self.half as u32 * Limb::BITS);
        let lanes = self.workspace.lanes;
        let (
            modulus,
            Operands {
                r2: s2,
                factor,
                scratch,
                ..
            },
        ) = self.workspace.parts();
        // S^2 * 2^(2 * excess) / R is R.
        set_power_of_two::<L>(factor, 2 * excess);
        lanes.mul(&mut self.r, s2, factor, modulus, scratch);
    }

    /// Reduces numbers of `size` limbs of crypto-bigint, one for each lane. The remainders are the
    /// values of the workspace.
    fn reduce(&mut self, numbers: &[Limb], size: usize) {
        let workspace = &mut self.workspace;
        self.numbers.load(workspace, numbers, size, self.half);
        let lanes = workspace.lanes;
        let (
            modulus,
            Operands {
                r2: s2,
                value,
                spare,
                scratch,
                ..
            },
        ) = workspace.parts();
        self.numbers.fold(lanes, spare, s2, modulus, scratch);
        lanes.mul(value, spare, &self.r, modulus, scratch);
    }
}

/// The low and the high half of the number in each lane; the low half is as wide as the moduli.
///
/// With `S = 2^width` and `R = S * 2^excess`, the high half is stored times `2^excess`. A
/// multiplication by S^2 then gives `high * S`, its value in the number.
pub(super) struct Halves<L: Lanes> {
    low_and_high: Buffer<L::Limb>,
}

impl<L: Lanes> Halves<L> {
    pub(super) fn new(workspace: &Workspace<L>) -> Self {
        Self {
            low_and_high: Buffer::zeros(2 * workspace.limbs()),
        }
    }

    /// Imports numbers of `size` limbs of crypto-bigint, `half` of which form the low half, by way
    /// of `workspace`.
    pub(super) fn load(
        &mut self,
        workspace: &mut Workspace<L>,
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
