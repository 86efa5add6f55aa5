//! Products, and powers with public exponents, for flat numbers: see
//! [`engine`](batch_modexp_core::engine).

use core::mem;

use batch_modexp_core::engine::{Exponent, Moduli};
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::Lanes;
use super::pow::groups;
use super::workspace::{Operands, Workspace, flat, set_power_of_two};

/// `out[i] = a[i] * b[i] mod moduli[i]`, for equally wide moduli.
pub(crate) fn products<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    [a, b]: [&[Limb]; 2],
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let size = first.limbs.len();
    let width = size as u32 * Limb::BITS;
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(width));
        let excess = workspace.excess(width);
        for (group, range) in groups::<L>(moduli) {
            workspace.prepare_products(group);
            workspace.load(flat(&a[range.clone()], size), width, excess);
            workspace.load_factor(flat(&b[range.clone()], size), width, excess);
            workspace.operands().product();
            workspace.store_product(width, out[range].chunks_exact_mut(size));
        }
    });
}

/// `out[i] = bases[i]^exponent mod moduli[i]`, for equally wide moduli.
pub(crate) fn public_powers<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    exponent: Exponent<'_>,
    bases: &[Limb],
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let size = first.limbs.len();
    let width = size as u32 * Limb::BITS;
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(width));
        for (group, range) in groups::<L>(moduli) {
            workspace.prepare_powers(group);
            workspace.load(flat(&bases[range.clone()], size), width, 0);
            workspace.operands().raise(exponent);
            workspace.store(width, out[range].chunks_exact_mut(size));
        }
    });
}

impl<L: Lanes> Operands<'_, L> {
    /// Replaces `value` by its product with `factor`, in ordinary form.
    ///
    /// With `R^2` in `r2`, the first product converts `value` to Montgomery form. With `S^2`, where
    /// `S = 2^width` and `R = S * 2^excess`, both numbers are given times `2^excess`, since
    /// `(a * 2^excess * S^2 / R) * b * 2^excess / R = a * b`. Imported numbers are below R, and
    /// `S^2 mod modulus` is below the modulus, so the first product is below `BOUND * modulus`. The
    /// second one is then below `(2 * BOUND - 1) * modulus`: see [`Lanes::mul`].
    pub(super) fn product(&mut self) {
        let (lanes, modulus) = (self.lanes, self.modulus);
        lanes.mul(self.spare, self.value, self.r2, modulus, self.scratch);
        lanes.mul(self.value, self.spare, self.factor, modulus, self.scratch);
    }

    /// Raises `value` to a public power, both in ordinary form. Leaves the result in `spare` too.
    ///
    /// The product of a Montgomery form and an ordinary number is an ordinary number. An odd
    /// exponent above 1 therefore ends with a product with the ordinary base, and others with one.
    pub(super) fn raise(&mut self, exponent: Exponent<'_>) {
        let (lanes, modulus, limbs) = (self.lanes, self.modulus, self.value.len());
        let (base, rest) = self.table.split_at_mut(limbs);
        let ordinary = &mut rest[..limbs];
        ordinary.copy_from_slice(self.value);
        lanes.mul(base, ordinary, self.r2, modulus, self.scratch);
        self.value.copy_from_slice(base);
        set_power_of_two::<L>(self.factor, 0);
        let (mut squarings, mut last) = (0, &*self.factor);
        for (is_set, is_last) in exponent.lower_bits() {
            squarings += 1;
            if is_set || is_last {
                let (value, spare) = (&mut self.value, &mut self.spare);
                lanes.square_times(value, spare, squarings, modulus, self.scratch);
                squarings = 0;
            }
            if is_set && is_last {
                last = ordinary;
            } else if is_set {
                lanes.mul(self.spare, self.value, base, modulus, self.scratch);
                mem::swap(&mut self.value, &mut self.spare);
            }
        }
        lanes.mul(self.spare, self.value, last, modulus, self.scratch);
        mem::swap(&mut self.value, &mut self.spare);
        self.end();
    }
}
