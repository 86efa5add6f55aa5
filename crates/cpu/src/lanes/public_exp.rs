//! Powers with one public exponent, a base in each lane: see
//! [`PublicPowers`](batch_modexp_core::powers::PublicPowers).

use core::mem;

use batch_modexp_core::engine::Moduli;
use batch_modexp_core::powers::PublicPowers;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::width::scrubbed;

use super::Lanes;
use super::products::{each_lane, same};
use super::workspace::{Buffer, Operands, Workspace, set_one};

/// Computes the powers of a request.
pub(crate) fn powers<L: Lanes>(lanes: L, powers: PublicPowers<'_, '_>) {
    let PublicPowers {
        moduli,
        bases,
        exponent,
        out,
    } = powers;
    let Some(first) = moduli.first() else {
        return;
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, L::limb_count(first.bits()));
        let mut odd_powers = Buffer::zeros(exponent.odd_powers() * workspace.limbs());
        let mut prepared: Moduli<'_> = &[];
        let groups = bases.chunks(L::COUNT).zip(out.chunks_mut(L::COUNT));
        for (group, (bases, out)) in moduli.chunks(L::COUNT).zip(groups) {
            if !same(group, prepared) {
                workspace.prepare_moduli(&each_lane(group));
                prepared = group;
            }
            workspace.load(|lane| bases[lane.min(bases.len() - 1)], first.bits(), 0);
            workspace.public_power(exponent, &mut odd_powers);
            workspace.store(first.bits(), out.iter_mut().map(|out| &mut **out));
        }
    });
}

impl<L: Lanes> Workspace<L> {
    /// Replaces bases by powers, both in ordinary form.
    fn public_power(&mut self, exponent: &PublicExponent, odd_powers: &mut [L::Limb]) {
        let lanes = self.lanes;
        let (
            modulus,
            Operands {
                r2,
                mut value,
                mut spare,
                factor,
                entry: square,
                scratch,
                ..
            },
        ) = self.parts();
        let limbs = value.len();
        lanes.mul(spare, value, r2, modulus, scratch);
        mem::swap(&mut value, &mut spare);
        if exponent.odd_powers() > 1 {
            lanes.square(square, value, modulus, scratch);
        }
        for (i, odd_power) in odd_powers.chunks_exact_mut(limbs).enumerate() {
            odd_power.copy_from_slice(value);
            if i + 1 < exponent.odd_powers() {
                lanes.mul(spare, value, square, modulus, scratch);
                mem::swap(&mut value, &mut spare);
            }
        }
        let odd_power = |odd: usize| &odd_powers[odd * limbs..][..limbs];
        set_one::<L>(factor);
        match exponent.first() {
            Some(odd) => value.copy_from_slice(odd_power(odd)),
            None => lanes.mul(value, r2, factor, modulus, scratch),
        }
        for step in exponent.steps() {
            (value, spare) = lanes.square_times(value, spare, step.squarings, modulus, scratch);
            if let Some(odd) = step.odd {
                lanes.mul(spare, value, odd_power(odd), modulus, scratch);
                mem::swap(&mut value, &mut spare);
            }
        }
        // Leaves Montgomery form.
        lanes.mul(spare, value, factor, modulus, scratch);
        // Both buffers get the result, since they may have been swapped.
        value.copy_from_slice(spare);
    }
}
