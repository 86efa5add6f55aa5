//! Powers with one public exponent, a base in each lane.

use core::mem;

use batch_modexp_core::engine::Moduli;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::Lanes;
use super::workspace::{Operands, Workspace};

/// Raises number `base(i)` to `exponent` modulo `moduli[i]`, for equally wide moduli.
pub(crate) fn public_powers<'a, L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    exponent: &PublicExponent,
    base: impl Fn(usize) -> &'a [Limb],
    mut out: impl Iterator<Item = &'a mut [Limb]>,
) {
    let Some(first) = moduli.first() else {
        return;
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let limbs = L::limb_count(first.bits());
        let mut workspace = Workspace::for_public_powers(lanes, limbs, exponent);
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            workspace.prepare_powers(group);
            let base = |lane: usize| base(start + lane.min(group.len() - 1));
            workspace.load(base, first.bits(), 0);
            workspace.operands().public_pow(exponent);
            workspace.store(first.bits(), &mut out);
        }
    });
}

impl<L: Lanes> Operands<'_, L> {
    /// Replaces `value` by its power, both in ordinary form. Leaves the result in `spare` too.
    ///
    /// The last product leaves Montgomery form: its factor is an ordinary number, the base or one.
    /// The workspace must be [for this exponent](Workspace::for_public_powers).
    pub(super) fn public_pow(&mut self, exponent: &PublicExponent) {
        let (lanes, modulus, limbs) = (self.lanes, self.modulus, self.value.len());
        let (base, odd_powers) = mem::take(&mut self.table).split_at_mut(limbs);
        base.copy_from_slice(self.value);
        lanes.mul(
            &mut odd_powers[..limbs],
            base,
            self.r2,
            modulus,
            self.scratch,
        );
        if exponent.odd_powers() > 1 {
            let square = &mut *self.factor;
            lanes.square(square, &odd_powers[..limbs], modulus, self.scratch);
            for odd in 1..exponent.odd_powers() {
                let (powers, next) = odd_powers.split_at_mut(odd * limbs);
                let last = &powers[(odd - 1) * limbs..];
                lanes.mul(&mut next[..limbs], last, square, modulus, self.scratch);
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
        match exponent.last() {
            Some(squarings) => {
                self.square(squarings);
                self.multiply(base);
                self.end();
            }
            None => self.leave(),
        }
    }
}
