//! Powers with one public exponent, a base in each lane: see
//! [`PublicPowers`](batch_modexp_core::powers::PublicPowers).

use core::{array, mem};

use batch_modexp_core::powers::PublicPowers;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::width::scrubbed;

use super::Lanes;
use super::layout::Buffer;
use super::run::blocks;
use super::workspace::{Parts, Workspace, set_one};

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
        let mut workspace = Workspace::with_limbs(lanes, L::limb_count(first.bits()));
        let mut odd_powers = Buffer::zeros(exponent.odd_powers() * workspace.limbs());
        let mut prepared = 0..0;
        for block in blocks(0..moduli.len(), L::COUNT) {
            let instance = |lane: usize| (block.start + lane).min(block.end - 1);
            let mut pairs = moduli[block.clone()].iter().zip(&moduli[prepared.clone()]);
            if block.len() > prepared.len() || !pairs.all(|(a, b)| a.is_same(b)) {
                workspace.prepare_moduli(&array::from_fn(|lane| moduli[instance(lane)]));
                prepared = block.clone();
            }
            workspace.load(|lane| bases[instance(lane)], first.bits(), 0);
            workspace.public_power(exponent, &mut odd_powers);
            workspace.store(first.bits(), out[block].iter_mut().map(|out| &mut **out));
        }
    });
}

impl<L: Lanes> Workspace<L> {
    /// Replaces bases by powers, both in ordinary form.
    fn public_power(&mut self, exponent: &PublicExponent, odd_powers: &mut [L::Limb]) {
        let lanes = self.lanes;
        let Parts {
            modulus,
            r2,
            mut value,
            mut spare,
            factor,
            entry: square,
            scratch,
            ..
        } = self.parts();
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
