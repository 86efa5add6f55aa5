//! Numbers up to twice as long as the moduli of the lanes, in halves.

use crypto_bigint::Limb;

use super::buffer::Buffer;
use super::convert::MAX_COUNT;
use super::workspace::{Parts, Workspace, load_all};
use super::{Lanes, Modulus};

/// The low and the high half of the number in each lane, the low one as wide as the moduli.
pub(super) struct Halves<L: Lanes> {
    low_and_high: Buffer<L::Limb>,
}

impl<L: Lanes> Halves<L> {
    pub(super) fn new(workspace: &Workspace<L>) -> Self {
        Self {
            low_and_high: Buffer::zeros(2 * workspace.limbs()),
        }
    }

    /// Imports numbers of `size` limbs of crypto-bigint, `half` of which are the low ones.
    pub(super) fn load(&mut self, numbers: &[Limb], size: usize, half: usize) {
        let half = half.min(size);
        let limbs = self.low_and_high.len() / 2;
        let (low, high) = self.low_and_high.split_at_mut(limbs);
        load_all::<L>(low, numbers, size, 0..half);
        load_all::<L>(high, numbers, size, half..size);
    }

    /// `out`, congruent to the numbers and below `BOUND * modulus + 2^width`, which must be below R.
    pub(super) fn fold(
        &self,
        lanes: L,
        out: &mut [L::Limb],
        high_r: &[L::Limb],
        modulus: Modulus<'_, L::Limb>,
        scratch: &mut [L::Limb],
    ) {
        let (low, high) = self.low_and_high.split_at(out.len());
        lanes.mul(out, high, high_r, modulus, scratch);
        add::<L>(out, low);
    }
}

/// `high_r = 2^width * R` modulo the moduli of the workspace, of `width` bits: the factor that takes high halves to where
/// they belong.
pub(super) fn set_high_r<L: Lanes>(
    workspace: &mut Workspace<L>,
    width: u32,
    high_r: &mut [L::Limb],
) {
    let lanes = workspace.lanes;
    let Parts {
        modulus,
        r2,
        factor,
        scratch,
        ..
    } = workspace.parts();
    factor.fill(L::ZERO);
    let limb = &mut factor[(width / L::RADIX_BITS) as usize];
    for lane in 0..L::COUNT {
        L::set_lane(limb, lane, 1 << (width % L::RADIX_BITS));
    }
    lanes.mul(high_r, r2, factor, modulus, scratch);
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
