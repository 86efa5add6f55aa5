//! Remainders of numbers up to twice as long as the moduli: see `backend::numbers`.

use crypto_bigint::Limb;

use super::Lanes;
use super::buffer::Buffer;
use super::halves::{Halves, set_high_r};
use super::pow::set_one;
use super::products::{each_lane, limbs, same};
use super::workspace::{Parts, Workspace};
use crate::backend::numbers::{Moduli, Reduction};
use crate::width::scrubbed;

/// A bit of an operand above those of the modulus makes `R > 2 * BOUND^2 * 2^width`. A number that is folded is below
/// `(BOUND + 1) * 2^width`, so its product with another number, below `BOUND * modulus`, is below `R * modulus`.
const HEADROOM: u32 = 1;

/// `out[i] = numbers[i] mod moduli[i]`, the moduli equally wide.
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
    /// The moduli that the workspace has.
    prepared: Moduli<'a>,
    /// The limbs of crypto-bigint that the moduli have.
    half: usize,
    /// See [`set_high_r`].
    high_r: Buffer<L::Limb>,
    /// R modulo the moduli: a product with it only reduces.
    r: Buffer<L::Limb>,
    numbers: Halves<L>,
}

impl<'a, L: Lanes> Remainders<'a, L> {
    fn new(lanes: L, half: usize) -> Self {
        let limbs = L::limb_count(half as u32 * Limb::BITS + HEADROOM);
        let workspace = Workspace::with_limbs(lanes, limbs);
        let [high_r, r] = [(); 2].map(|()| Buffer::zeros(limbs));
        Self {
            prepared: &[],
            half,
            high_r,
            r,
            numbers: Halves::new(&workspace),
            workspace,
        }
    }

    /// Imports the modulus of every lane.
    fn prepare(&mut self, block: Moduli<'a>) {
        if same(block, self.prepared) {
            return;
        }
        self.workspace.prepare_moduli(&each_lane(block));
        self.prepared = block;
        let width = self.half as u32 * Limb::BITS;
        set_high_r(&mut self.workspace, width, &mut self.high_r);
        let lanes = self.workspace.lanes;
        let Parts {
            modulus,
            r2,
            factor,
            scratch,
            ..
        } = self.workspace.parts();
        set_one::<L>(factor);
        lanes.mul(&mut self.r, r2, factor, modulus, scratch);
    }

    /// From numbers of `size` limbs of crypto-bigint, one for each lane, to their remainders as values of the workspace.
    fn reduce(&mut self, numbers: &[Limb], size: usize) {
        self.numbers.load(numbers, size, self.half);
        let lanes = self.workspace.lanes;
        let Parts {
            modulus,
            value,
            spare,
            scratch,
            ..
        } = self.workspace.parts();
        let numbers = &self.numbers;
        numbers.fold(lanes, spare, &self.high_r, modulus, scratch);
        lanes.mul(value, spare, &self.r, modulus, scratch);
    }
}
