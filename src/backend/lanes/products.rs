//! Products with public powers, and inverses, of numbers in flat buffers: see `backend::numbers`.

use alloc::vec;
use core::mem;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb};

use super::Lanes;
use super::pow::set_one;
use super::workspace::{Parts, Workspace, load_all};
use crate::backend::numbers::{Exponent, Moduli, scalar};
use crate::secret::Secret;
use crate::width::scrubbed;

/// `out[i] = factors[i] * bases[i]^exponent mod moduli[i]`, the moduli equally wide.
pub(crate) fn mul_public_power<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    exponent: Exponent<'_>,
    bases: &[Limb],
    factors: Option<&[Limb]>,
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let size = limbs(first);
    scrubbed::<16, _>(|| {
        let mut workspace = Workspace::for_numbers(lanes, size);
        let mut prepared: Moduli<'_> = &[];
        for (block, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let range = start * size..(start + block.len()) * size;
            if !same(block, prepared) {
                workspace.prepare_moduli(lane_of(block));
                prepared = block;
            }
            workspace.load_numbers(&bases[range.clone()], size);
            let factors = factors.map(|factors| &factors[range.clone()]);
            public_power(&mut workspace, exponent, factors, size);
            workspace.store_value(size, &mut out[range]);
        }
    });
}

/// Inverses of numbers with one modulus, or `None` if one has none: a chain of prefixes in each lane, as in
/// `numbers::scalar`, and the last ones of all lanes inverted there.
pub(crate) fn invert<L: Lanes>(
    lanes: L,
    modulus: &MontyParams<BoxedUint>,
    values: &[Limb],
    out: &mut [Limb],
) -> Option<()> {
    let size = limbs(modulus);
    let count = values.len() / size;
    if count < 2 * L::COUNT {
        return scalar::invert(modulus, values, out);
    }
    scrubbed::<16, _>(|| {
        let mut workspace = Workspace::for_numbers(lanes, size);
        workspace.prepare_moduli(|_| modulus);
        let block = L::COUNT * size;

        // The factors, and before each of them the product of those before it.
        let limbs = workspace.limbs();
        let blocks = count.div_ceil(L::COUNT);
        let mut factors = Secret::new(vec![L::ZERO; limbs * blocks]);
        let mut prefixes = Secret::new(vec![L::ZERO; limbs * (blocks + 1)]);
        workspace.set_to_r(&mut prefixes[..limbs]);
        for (i, values) in values.chunks(block).enumerate() {
            let factor = &mut factors[i * limbs..][..limbs];
            load_all::<L>(factor, values, size, 0..size);
            let (prefix, next) = prefixes[i * limbs..].split_at_mut(limbs);
            workspace.mul(&mut next[..limbs], prefix, factor);
        }
        let (prefixes, product) = prefixes.split_at_mut(blocks * limbs);

        let mut last = Secret::new(vec![Limb::ZERO; block]);
        workspace.store_numbers(product, size, &mut last);
        let mut suffixes = Secret::new(vec![Limb::ZERO; block]);
        scalar::invert(modulus, &last, &mut suffixes)?;
        let [mut suffix, mut spare] = [(); 2].map(|()| Secret::new(vec![L::ZERO; limbs]));
        load_all::<L>(&mut suffix, &suffixes, size, 0..size);

        let blocks = out.chunks_mut(block).zip(factors.chunks_exact(limbs));
        for ((out, factor), prefix) in blocks.zip(prefixes.chunks_exact(limbs)).rev() {
            workspace.mul(&mut spare, &suffix, prefix);
            workspace.store_numbers(&spare, size, out);
            workspace.mul(&mut spare, &suffix, factor);
            mem::swap(&mut *suffix, &mut *spare);
        }
        Some(())
    })
}

/// From bases, as loaded, to the products, both in ordinary form.
fn public_power<L: Lanes>(
    workspace: &mut Workspace<L>,
    exponent: Exponent<'_>,
    factors: Option<&[Limb]>,
    size: usize,
) {
    match factors {
        Some(factors) => workspace.load_factors(factors, size),
        None => workspace.set_factor_to_one(),
    }
    let lanes = workspace.lanes;
    let Parts {
        modulus,
        r2,
        mut value,
        mut spare,
        factor,
        table,
        scratch,
        ..
    } = workspace.parts();
    let (base, rest) = table.split_at_mut(value.len());
    let ordinary = &mut rest[..value.len()];
    ordinary.copy_from_slice(value);
    lanes.mul(base, ordinary, r2, modulus, scratch);
    value.copy_from_slice(base);
    let mut is_ordinary = false;
    for (is_set, is_last) in exponent.lower_bits() {
        lanes.square(spare, value, modulus, scratch);
        mem::swap(&mut value, &mut spare);
        if is_set {
            // The product of a Montgomery form and an ordinary number is an ordinary number.
            is_ordinary = is_last && factors.is_none();
            let by = if is_ordinary { &*ordinary } else { &*base };
            lanes.mul(spare, value, by, modulus, scratch);
            mem::swap(&mut value, &mut spare);
        }
    }
    if !is_ordinary {
        lanes.mul(spare, value, factor, modulus, scratch);
        mem::swap(&mut value, &mut spare);
    }
    // Both buffers get the result, since they may have changed places.
    spare.copy_from_slice(value);
}

pub(super) fn limbs(modulus: &MontyParams<BoxedUint>) -> usize {
    modulus.modulus().as_ref().as_limbs().len()
}

/// The modulus of each lane; lanes to spare repeat the last one.
pub(super) fn lane_of<'a>(block: Moduli<'a>) -> impl Fn(usize) -> &'a MontyParams<BoxedUint> {
    move |lane| block[lane.min(block.len() - 1)]
}

/// Whether lane by lane the moduli are the same references.
pub(super) fn same(block: Moduli<'_>, prepared: Moduli<'_>) -> bool {
    let pairs = || block.iter().zip(prepared);
    block.len() <= prepared.len() && pairs().all(|(a, b)| core::ptr::eq(*a, *b))
}

impl<L: Lanes> Workspace<L> {
    /// One in every lane of the second factor.
    fn set_factor_to_one(&mut self) {
        set_one::<L>(self.parts().factor);
    }

    /// `out = R mod modulus`, the Montgomery form of one.
    fn set_to_r(&mut self, out: &mut [L::Limb]) {
        let lanes = self.lanes;
        let Parts {
            modulus,
            r2,
            factor,
            scratch,
            ..
        } = self.parts();
        set_one::<L>(factor);
        lanes.mul(out, r2, factor, modulus, scratch);
    }

    /// `out = a * b / R`.
    fn mul(&mut self, out: &mut [L::Limb], a: &[L::Limb], b: &[L::Limb]) {
        let lanes = self.lanes;
        let Parts {
            modulus, scratch, ..
        } = self.parts();
        lanes.mul(out, a, b, modulus, scratch);
    }
}
