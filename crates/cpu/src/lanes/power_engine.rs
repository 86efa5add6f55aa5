//! The operations of a [`PowerEngine`], among them products of pairs of numbers outside of lanes, one
//! pair in each lane: see [`IndexedProducts`].
//!
//! A number outside of lanes has one word for each limb, and is below `BOUND * modulus`. Between
//! products it is neither reduced nor cut anew.

use core::{mem, slice};

use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{
    FixedPowers, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use batch_modexp_core::secret::scrubbed;
use crypto_bigint::Limb;

use super::convert::{gather, of_lane, to_plain};
use super::fixed_base::{self, PowerLanes};
use super::ladder::public_powers;
use super::workspace::{Buffer, Workspace};
use super::{LaneEngine, Lanes, multi_exp};

/// All of it in groups of lanes, also the last instances.
impl<L: PowerLanes + Sync, R: Lanes + Sync> PowerEngine for LaneEngine<L, R> {
    fn table_form(&self, bits: u32) -> TableForm {
        TableForm {
            radix_bits: L::RADIX_BITS,
            limbs: L::limb_count(bits),
            largest_window: L::LARGEST_ROW_WINDOW,
        }
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        fixed_base::fill(self.lanes, table, base, first);
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        fixed_base::powers(self.lanes, powers);
    }

    fn lanes(&self) -> usize {
        L::COUNT
    }

    fn fewest_for_buckets(&self, bits: u32) -> usize {
        (self.profile.fewest_for_buckets)(bits)
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        multi_exp::powers(self.lanes, powers);
    }

    fn powers_vartime(&self, powers: PublicPowers<'_, '_>) {
        let base = |i: usize| powers.bases[i];
        let out = powers.out.iter_mut().map(|out| &mut **out);
        public_powers(self.lanes, powers.moduli, powers.exponent, base, out);
    }

    fn to_montgomery(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        to_montgomery(self.lanes, modulus, numbers, out);
    }

    fn indexed_products(&self, products: IndexedProducts<'_>) {
        multiply(self.lanes, products);
    }

    fn retrieve(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
        retrieve(self.lanes, modulus, numbers, out);
    }
}

/// See [`PowerEngine::to_montgomery`](batch_modexp_core::powers::PowerEngine::to_montgomery).
fn to_montgomery<L: Lanes>(
    lanes: L,
    modulus: ModulusRef<'_>,
    numbers: &[&[Limb]],
    out: &mut [u64],
) {
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let bits = modulus.width();
        let limbs = L::limb_count(bits);
        let mut workspace = Workspace::new(lanes, limbs);
        workspace.prepare_for_powers(slice::from_ref(&modulus));
        let mut plain = Buffer::zeros(limbs * L::COUNT);
        let groups = numbers.chunks(L::COUNT);
        for (group, out) in groups.zip(out.chunks_mut(L::COUNT * limbs)) {
            workspace.load(|lane| *of_lane(group, lane));
            let mut x = workspace.operands();
            x.convert_to_montgomery();
            scatter::<L>(x.value, &mut plain, out);
        }
    });
}

/// See [`PowerEngine::indexed_products`](batch_modexp_core::powers::PowerEngine::indexed_products).
fn multiply<L: Lanes>(lanes: L, mut products: IndexedProducts<'_>) {
    scrubbed(|| {
        let limbs = L::limb_count(products.modulus.width());
        let out = mem::take(&mut products.out);
        let mut workspace = Workspace::new(lanes, limbs);
        workspace.import_moduli(&[products.modulus]);
        let mut plain = Buffer::zeros(limbs * L::COUNT);
        let x = workspace.operands();
        let groups = products.pairs.chunks(L::COUNT);
        for (group, out) in groups.zip(out.chunks_mut(L::COUNT * limbs)) {
            gather::<L>(
                |lane| products.number(of_lane(group, lane)[0], limbs),
                x.value,
            );
            gather::<L>(
                |lane| products.number(of_lane(group, lane)[1], limbs),
                x.factor,
            );
            lanes.mul(x.spare, x.value, x.factor, x.modulus, x.scratch);
            scatter::<L>(x.spare, &mut plain, out);
        }
    });
}

/// See [`PowerEngine::retrieve`](batch_modexp_core::powers::PowerEngine::retrieve).
fn retrieve<L: Lanes>(lanes: L, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
    scrubbed(|| {
        let limbs = L::limb_count(modulus.width());
        let mut workspace = Workspace::new(lanes, limbs);
        workspace.import_moduli(&[modulus]);
        let groups = numbers.chunks(L::COUNT * limbs);
        for (group, out) in groups.zip(out.chunks_mut(L::COUNT * modulus.limbs.len())) {
            let last = group.len() / limbs - 1;
            let mut x = workspace.operands();
            gather::<L>(|lane| &group[lane.min(last) * limbs..][..limbs], x.value);
            x.retrieve();
            workspace.store(out.chunks_exact_mut(modulus.limbs.len()));
        }
    });
}

/// Copies the numbers of the first lanes to `out`, by way of `plain`.
fn scatter<L: Lanes>(number: &[L::Limb], plain: &mut [u64], out: &mut [u64]) {
    to_plain::<L>(number, plain);
    for (lane, out) in out.chunks_exact_mut(number.len()).enumerate() {
        for (plain, out) in plain.chunks_exact(L::COUNT).zip(out) {
            *out = plain[lane];
        }
    }
}
