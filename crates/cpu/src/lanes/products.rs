//! Products with public powers, for flat numbers: see [`engine`](batch_modexp_core::engine).

use core::ops::Range;
use core::{array, mem};

use batch_modexp_core::engine::{Exponent, Moduli, Product};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::convert::MAX_COUNT;
use super::workspace::{Parts, Workspace, flat, set_one};
use super::{Lanes, Modulus};

/// `out[i] = factors[i] * bases[i]^exponent mod moduli[i]`, for equally wide moduli.
pub(crate) fn mul_public_power<L: Lanes>(lanes: L, product: Product<'_>) {
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| match product {
        Product {
            exponent,
            factors: Some(factors),
            times_base: None,
            moduli,
            bases,
            out,
        } if exponent.is_one() => products(lanes, moduli, bases, factors, out),
        product => public_powers(lanes, product),
    });
}

/// Groups of moduli, at most one for each lane, and their ranges in a flat buffer.
fn blocks<L: Lanes>(moduli: Moduli<'_>) -> impl Iterator<Item = (Moduli<'_>, Range<usize>)> {
    let size = moduli.first().map_or(0, |first| first.limbs.len());
    let starts = (0..).step_by(L::COUNT);
    moduli
        .chunks(L::COUNT)
        .zip(starts)
        .map(move |(block, start)| (block, start * size..(start + block.len()) * size))
}

fn products<L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    bases: &[Limb],
    factors: &[Limb],
    out: &mut [Limb],
) {
    let Some(first) = moduli.first() else { return };
    let size = first.limbs.len();
    let width = size as u32 * Limb::BITS;
    let mut workspace = Workspace::with_limbs(lanes, L::limb_count(width));
    let mut prepared: Moduli<'_> = &[];
    for (block, range) in blocks::<L>(moduli) {
        if !same(block, prepared) {
            workspace.prepare_products(&each_lane(block));
            prepared = block;
        }
        let excess = workspace.excess(width);
        workspace.load(flat(&bases[range.clone()], size), width, excess);
        workspace.load_factor(flat(&factors[range.clone()], size), width, excess);
        multiply(&mut workspace);
        workspace.store_product(width, out[range].chunks_exact_mut(size));
    }
}

fn public_powers<L: Lanes>(lanes: L, product: Product<'_>) {
    let Product {
        moduli,
        exponent,
        bases,
        factors,
        out,
        mut times_base,
    } = product;
    let Some(first) = moduli.first() else { return };
    let size = first.limbs.len();
    let width = size as u32 * Limb::BITS;
    let mut workspace = Workspace::with_limbs(lanes, L::limb_count(width));
    let mut prepared: Moduli<'_> = &[];
    for (block, range) in blocks::<L>(moduli) {
        if !same(block, prepared) {
            workspace.prepare_moduli(&each_lane(block));
            prepared = block;
        }
        workspace.load(flat(&bases[range.clone()], size), width, 0);
        match factors {
            Some(factors) => {
                workspace.load_factor(flat(&factors[range.clone()], size), width, 0);
            }
            None => set_one::<L>(workspace.parts().factor),
        }
        public_power(&mut workspace, exponent, factors.is_some());
        workspace.store(width, out[range.clone()].chunks_exact_mut(size));
        if let Some(out) = &mut times_base {
            multiply_by_base(&mut workspace);
            workspace.store(width, out[range].chunks_exact_mut(size));
        }
    }
}

/// Replaces bases by their products with the factors, both times `2^excess`. The products are below
/// `(2 * BOUND - 1) * modulus`.
///
/// With `S = 2^width` and `R = S * 2^excess`,
/// `(a * 2^excess * S^2 / R) * b * 2^excess / R = a * b`. Imported numbers are below R, and
/// `S^2 mod modulus` is below the modulus, so the first product is below `BOUND * modulus`. The
/// second one is then below `BOUND * modulus + (BOUND - 1) * modulus`: see [`Lanes::mul`].
fn multiply<L: Lanes>(workspace: &mut Workspace<L>) {
    let lanes = workspace.lanes;
    let Parts {
        modulus,
        r2: s2,
        value,
        spare,
        factor,
        scratch,
        ..
    } = workspace.parts();
    lanes.mul(spare, value, s2, modulus, scratch);
    lanes.mul(value, spare, factor, modulus, scratch);
}

/// Replaces bases by the products of their powers and the factors, all in ordinary form. The
/// factors are one unless `has_factors`.
fn public_power<L: Lanes>(workspace: &mut Workspace<L>, exponent: Exponent<'_>, has_factors: bool) {
    let lanes = workspace.lanes;
    let Parts {
        modulus,
        r2,
        value,
        spare,
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
    let numbers = [value, spare];
    let (mut value, mut spare, lacks_base) =
        raise(lanes, numbers, base, exponent, modulus, scratch);
    // The product of a Montgomery form and an ordinary number is an ordinary number.
    let is_ordinary = lacks_base && !has_factors;
    if lacks_base {
        let by = if is_ordinary { &*ordinary } else { &*base };
        lanes.mul(spare, value, by, modulus, scratch);
        mem::swap(&mut value, &mut spare);
    }
    if !is_ordinary {
        lanes.mul(spare, value, factor, modulus, scratch);
        mem::swap(&mut value, &mut spare);
    }
    // Both buffers get the result, since they may have been swapped.
    spare.copy_from_slice(value);
}

/// Raises `value`, which equals `base`, to a public power; both are in Montgomery form.
///
/// Leaves out the last product with the base, which an odd exponent above 1 ends with. Returns the
/// buffer with the result, the other one, and whether that product is missing.
pub(super) fn raise<'a, L: Lanes>(
    lanes: L,
    [mut value, mut spare]: [&'a mut [L::Limb]; 2],
    base: &[L::Limb],
    exponent: Exponent<'_>,
    modulus: Modulus<'_, L::Limb>,
    scratch: &mut [L::Limb],
) -> (&'a mut [L::Limb], &'a mut [L::Limb], bool) {
    let (mut squarings, mut lacks_base) = (0, false);
    for (is_set, is_last) in exponent.lower_bits() {
        squarings += 1;
        if is_set || is_last {
            (value, spare) = lanes.square_times(value, spare, squarings, modulus, scratch);
            squarings = 0;
        }
        lacks_base = is_set && is_last;
        if is_set && !is_last {
            lanes.mul(spare, value, base, modulus, scratch);
            mem::swap(&mut value, &mut spare);
        }
    }
    (value, spare, lacks_base)
}

/// Multiplies the products, as [`public_power`] leaves them, by the bases.
fn multiply_by_base<L: Lanes>(workspace: &mut Workspace<L>) {
    let lanes = workspace.lanes;
    let Parts {
        modulus,
        value,
        spare,
        table,
        scratch,
        ..
    } = workspace.parts();
    // The base is in Montgomery form and the product is not.
    lanes.mul(spare, value, &table[..value.len()], modulus, scratch);
    value.copy_from_slice(spare);
}

/// The modulus of each lane; unused lanes repeat the last one.
pub(super) fn each_lane<'a>(block: Moduli<'a>) -> [ModulusRef<'a>; MAX_COUNT] {
    array::from_fn(|lane| block[lane.min(block.len() - 1)])
}

/// Whether the moduli are the same references, lane by lane.
pub(super) fn same(block: Moduli<'_>, prepared: Moduli<'_>) -> bool {
    let pairs = || block.iter().zip(prepared);
    block.len() <= prepared.len() && pairs().all(|(a, b)| a.is_same(b))
}
