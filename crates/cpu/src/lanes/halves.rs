//! Numbers up to twice as long as the moduli of the lanes, in halves.

use crypto_bigint::Limb;

use super::buffer::Buffer;
use super::sums::add;
use super::workspace::Workspace;
use super::{Lanes, Modulus};

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
        let excess = workspace.excess(half as u32 * Limb::BITS);
        let half = half.min(size);
        let limbs = self.low_and_high.len() / 2;
        let (low, high) = self.low_and_high.split_at_mut(limbs);
        workspace.import(numbers, size, 0..half, 0, low);
        workspace.import(numbers, size, half..size, excess, high);
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

    /// Like `fold`, plus `a * b / R`: below `a * b / R + (2 * BOUND - 1) * modulus + 2^width`.
    /// `spare` is space for another number.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn fold_beside(
        &self,
        lanes: L,
        out: &mut [L::Limb],
        [a, b]: [&[L::Limb]; 2],
        s2: &[L::Limb],
        modulus: Modulus<'_, L::Limb>,
        spare: &mut [L::Limb],
        scratch: &mut [L::Limb],
    ) {
        let (low, high) = self.low_and_high.split_at(out.len());
        lanes.add_products(out, [[a, high], [b, s2]], modulus, spare, scratch);
        add::<L>(out, low);
    }
}
