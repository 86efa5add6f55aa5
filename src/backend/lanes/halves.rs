//! Numbers up to twice as long as the moduli of the lanes, in halves.

use crypto_bigint::Limb;

use super::buffer::Buffer;
use super::convert::MAX_COUNT;
use super::workspace::Workspace;
use super::{Lanes, Modulus};

/// The low and the high half of the number in each lane, the low one as wide as the moduli. With `S = 2^width` and
/// `R = S * 2^excess`, the high one is kept times `2^excess`: a multiplication by S^2 makes `high * S` of it, which is where it belongs.
pub(super) struct Halves<L: Lanes> {
    low_and_high: Buffer<L::Limb>,
}

impl<L: Lanes> Halves<L> {
    pub(super) fn new(workspace: &Workspace<L>) -> Self {
        Self {
            low_and_high: Buffer::zeros(2 * workspace.limbs()),
        }
    }

    /// Imports numbers of `size` limbs of crypto-bigint, `half` of which are the low ones, by way of `workspace`.
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

    /// `out`, congruent to the numbers, given S^2 modulo the moduli, and below `BOUND * modulus + 2^width`, which must be below R.
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
fn add<L: Lanes>(a: &mut [L::Limb], b: &[L::Limb]) {
    let mut carry = [0; MAX_COUNT];
    for (a, b) in a.iter_mut().zip(b) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let sum = L::lane(a, lane) + L::lane(b, lane) + *carry;
            L::set_lane(a, lane, sum & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}
