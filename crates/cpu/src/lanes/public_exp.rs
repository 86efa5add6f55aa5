//! Powers with one public exponent, a base in each lane: see
//! [`PublicPowers`](batch_modexp_core::powers::PublicPowers).

use core::mem;

use batch_modexp_core::powers::PublicPowers;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::width::scrubbed;

use super::Lanes;
use super::convert::of_lane;
use super::workspace::{Buffer, Operands, Workspace};

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
        let groups = bases.chunks(L::COUNT).zip(out.chunks_mut(L::COUNT));
        for (group, (bases, out)) in moduli.chunks(L::COUNT).zip(groups) {
            workspace.prepare_powers(group);
            workspace.load(|lane| *of_lane(bases, lane), first.bits(), 0);
            let mut x = workspace.operands();
            x.raise_by_windows(exponent, &mut odd_powers);
            workspace.store(first.bits(), out.iter_mut().map(|out| &mut **out));
        }
    });
}

impl<L: Lanes> Operands<'_, L> {
    /// Replaces `value` by its power, both in ordinary form. `odd_powers` is space for a table.
    fn raise_by_windows(&mut self, exponent: &PublicExponent, odd_powers: &mut [L::Limb]) {
        let (lanes, limbs) = (self.lanes, self.value.len());
        self.enter();
        if exponent.odd_powers() > 1 {
            lanes.square(self.entry, self.value, self.modulus, self.scratch);
        }
        for (i, odd_power) in odd_powers.chunks_exact_mut(limbs).enumerate() {
            odd_power.copy_from_slice(self.value);
            if i + 1 < exponent.odd_powers() {
                lanes.mul(
                    self.spare,
                    self.value,
                    self.entry,
                    self.modulus,
                    self.scratch,
                );
                mem::swap(&mut self.value, &mut self.spare);
            }
        }
        let odd_power = |odd: usize| &odd_powers[odd * limbs..][..limbs];
        match exponent.first() {
            Some(odd) => self.value.copy_from_slice(odd_power(odd)),
            None => self.set_one(),
        }
        for step in exponent.steps() {
            self.square(step.squarings);
            if let Some(odd) = step.odd {
                self.multiply(odd_power(odd));
            }
        }
        self.leave();
    }
}
