//! Powers with one public exponent, a base in each lane.

use core::mem;

use batch_modexp_core::engine::Moduli;
use batch_modexp_core::public_exponent::PublicExponent;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::Lanes;
use super::workspace::{Buffer, Operands, Workspace};

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
        let mut workspace = Workspace::new(lanes, L::limb_count(first.bits()));
        let mut powers = powers_of_base(exponent, &workspace);
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            workspace.prepare_powers(group);
            let base = |lane: usize| base(start + lane.min(group.len() - 1));
            workspace.load(base, first.bits(), 0);
            workspace.operands().public_pow(exponent, &mut powers);
            workspace.store(first.bits(), &mut out);
        }
    });
}

/// Space for the base and its odd powers: see [`Operands::public_pow`].
pub(super) fn powers_of_base<L: Lanes>(
    exponent: &PublicExponent,
    workspace: &Workspace<'_, L>,
) -> Buffer<L::Limb> {
    Buffer::zeros((1 + exponent.odd_powers()) * workspace.limbs())
}

impl<L: Lanes> Operands<'_, L> {
    /// Replaces `value` by its power, both in ordinary form. Leaves the result in `spare` too.
    ///
    /// The last product leaves Montgomery form: its factor is an ordinary number, the base if the
    /// last step has it, else one.
    pub(super) fn public_pow(&mut self, exponent: &PublicExponent, powers: &mut [L::Limb]) {
        let (lanes, limbs) = (self.lanes, self.value.len());
        let (base, odd_powers) = powers.split_at_mut(limbs);
        base.copy_from_slice(self.value);
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
        let (steps, last) = exponent.steps();
        for step in steps {
            self.square(step.squarings);
            if let Some(odd) = step.odd {
                self.multiply(odd_power(odd));
            }
        }
        match last {
            Some(squarings) => {
                self.square(squarings);
                self.multiply(base);
                self.end();
            }
            None => self.leave(),
        }
    }
}
