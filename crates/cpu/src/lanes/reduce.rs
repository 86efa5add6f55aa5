//! Remainders of numbers up to twice as long as the moduli: see
//! [`requests`](batch_modexp_core::requests).

use batch_modexp_core::requests::{Moduli, Reduction};
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::Lanes;
use super::buffer::Buffer;
use super::halves::Halves;
use super::products::{each_lane, limbs, same};
use super::workspace::{Parts, Workspace, set_power_of_two};

/// Bits of an operand above those of the modulus: one gives `R > 2 * BOUND^2 * 2^width`. A folded
/// number is below `(BOUND + 1) * 2^width`. Its product with another number, below
/// `BOUND * modulus`, is thus below `R * modulus`.
const HEADROOM: u32 = 1;

/// `out[i] = numbers[i] mod moduli[i]`, for equally wide moduli.
pub(crate) fn reduce<L: Lanes>(lanes: L, reduction: Reduction<'_>) {
    let Reduction {
        moduli,
        numbers,
        out,
    } = reduction;
    let Some(first) = moduli.first() else { return };
    let (size, half) = (numbers.len() / moduli.len(), limbs(first));
    scrubbed::<16, _>(|| {
        let mut remainders = Remainders::new(lanes, half);
        for (block, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let end = start + block.len();
            remainders.prepare(block);
            remainders.reduce(&numbers[start * size..end * size], size);
            let out = &mut out[start * half..end * half];
            remainders.workspace.store_value(half, out);
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
        let workspace = Workspace::with_limbs(lanes, limbs);
        Self {
            prepared: &[],
            half,
            r: Buffer::zeros(limbs),
            numbers: Halves::new(&workspace),
            workspace,
        }
    }

    /// Imports the modulus of every lane.
    fn prepare(&mut self, block: Moduli<'a>) {
        if same(block, self.prepared) {
            return;
        }
        self.workspace.prepare_products(&each_lane(block));
        self.prepared = block;
        let excess = self.workspace.excess(self.half as u32 * Limb::BITS);
        let lanes = self.workspace.lanes;
        let Parts {
            modulus,
            r2: s2,
            factor,
            scratch,
            ..
        } = self.workspace.parts();
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
        let Parts {
            modulus,
            r2: s2,
            value,
            spare,
            scratch,
            ..
        } = workspace.parts();
        self.numbers.fold(lanes, spare, s2, modulus, scratch);
        lanes.mul(value, spare, &self.r, modulus, scratch);
    }
}
