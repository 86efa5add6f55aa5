//! The Montgomery constants of a modulus.

use super::{Arithmetic, Lanes, Modulus, Task};

/// Computes what multiplications need of a modulus, from its limbs, `neg_inv` and crypto-bigint's `r2`.
pub(super) struct Prepare<'a, L: Lanes> {
    /// The width of the modulus in bits.
    pub(super) width: u32,
    pub(super) modulus: &'a [L::Limb],
    pub(super) neg_inv: &'a L::Limb,
    /// Space for [`Modulus::constants`].
    pub(super) constants: &'a mut [L::Limb],
    /// First `2^(2 * width) mod modulus`, in the end `R^2 mod modulus`, below `BOUND * modulus`.
    pub(super) r2: &'a mut [L::Limb],
    /// Space for a second factor.
    pub(super) factor: &'a mut [L::Limb],
    pub(super) scratch: &'a mut [L::Limb],
}

impl<L: Lanes> Task<L::Limb> for Prepare<'_, L> {
    #[inline(always)]
    fn run<A: Arithmetic<Limb = L::Limb>>(self, arithmetic: A) {
        arithmetic.prepare(self.constants, self.modulus, self.neg_inv, self.scratch);
        let modulus = Modulus {
            limbs: self.modulus,
            neg_inv: self.neg_inv,
            constants: self.constants,
        };
        raise_r2::<L, A>(
            arithmetic,
            self.width,
            self.r2,
            self.factor,
            modulus,
            self.scratch,
        );
    }
}

/// Turns `r2`, which is `2^(2 * width) mod modulus`, into `R^2 mod modulus`, where `R = 2^r_bits` and
/// `2^width < R < 2^(2 * width)`.
///
/// Seen as `R * 2^f`, it starts at `f = 2 * width - r_bits`, and a Montgomery square doubles `f`. As
/// soon as `f` has reached `r_bits`, a Montgomery product with a power of two takes away the excess.
#[inline(always)]
fn raise_r2<L: Lanes, A: Arithmetic<Limb = L::Limb>>(
    arithmetic: A,
    width: u32,
    r2: &mut [L::Limb],
    factor: &mut [L::Limb],
    modulus: Modulus<'_, L::Limb>,
    scratch: &mut [L::Limb],
) {
    let r_bits = r2.len() as u32 * L::RADIX_BITS;
    let mut f = 2 * width - r_bits;
    while f < r_bits {
        factor.copy_from_slice(r2);
        arithmetic.mul(r2, factor, modulus, scratch);
        f *= 2;
    }
    if f > r_bits {
        let power = 2 * r_bits - f;
        factor.fill(L::ZERO);
        let limb = &mut factor[(power / L::RADIX_BITS) as usize];
        for lane in 0..L::COUNT {
            L::set_lane(limb, lane, 1 << (power % L::RADIX_BITS));
        }
        arithmetic.mul(r2, factor, modulus, scratch);
    }
}
