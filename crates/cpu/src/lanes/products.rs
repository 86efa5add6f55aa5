//! Products, and powers with public exponents, for flat numbers: see
//! [`engine`](batch_modexp_core::engine).

use core::ops::Range;
use core::{array, mem};

use batch_modexp_core::engine::{Exponent, Moduli};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

use super::convert::MAX_COUNT;
use super::workspace::{Operands, Workspace, flat, set_one};
use super::{Lanes, Modulus};

/// Groups of moduli, at most one for each lane, and their ranges in a flat buffer.
pub(super) fn groups<L: Lanes>(
    moduli: Moduli<'_>,
) -> impl Iterator<Item = (Moduli<'_>, Range<usize>)> {
    let size = moduli.first().map_or(0, |first| first.limbs.len());
    let starts = (0..).step_by(L::COUNT);
    moduli
        .chunks(L::COUNT)
        .zip(starts)
        .map(move |(group, start)| (group, start * size..(start + group.len()) * size))
}

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
        let mut prepared: Moduli<'_> = &[];
        for (group, range) in groups::<L>(moduli) {
            if !same(group, prepared) {
                workspace.prepare_products(&each_lane(group));
                prepared = group;
            }
            workspace.load(flat(&a[range.clone()], size), width, excess);
            workspace.load_factor(flat(&b[range.clone()], size), width, excess);
            multiply(&mut workspace);
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
        let mut prepared: Moduli<'_> = &[];
        for (group, range) in groups::<L>(moduli) {
            if !same(group, prepared) {
                workspace.prepare_moduli(&each_lane(group));
                prepared = group;
            }
            workspace.load(flat(&bases[range.clone()], size), width, 0);
            public_power(&mut workspace, exponent);
            workspace.store(width, out[range].chunks_exact_mut(size));
        }
    });
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
    let (
        modulus,
        Operands {
            r2: s2,
            value,
            spare,
            factor,
            scratch,
            ..
        },
    ) = workspace.parts();
    lanes.mul(spare, value, s2, modulus, scratch);
    lanes.mul(value, spare, factor, modulus, scratch);
}

/// Replaces bases by their powers, both in ordinary form.
fn public_power<L: Lanes>(workspace: &mut Workspace<L>, exponent: Exponent<'_>) {
    let lanes = workspace.lanes;
    let (
        modulus,
        Operands {
            r2,
            value,
            spare,
            factor,
            table,
            scratch,
            ..
        },
    ) = workspace.parts();
    let (base, rest) = table.split_at_mut(value.len());
    let ordinary = &mut rest[..value.len()];
    ordinary.copy_from_slice(value);
    lanes.mul(base, ordinary, r2, modulus, scratch);
    value.copy_from_slice(base);
    let numbers = [value, spare];
    let (power, spare, lacks_base) = raise(lanes, numbers, base, exponent, modulus, scratch);
    // The product of a Montgomery form and an ordinary number is an ordinary number.
    set_one::<L>(factor);
    let last = if lacks_base { ordinary } else { factor };
    lanes.mul(spare, power, last, modulus, scratch);
    // Either buffer may be the value of the workspace.
    power.copy_from_slice(spare);
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

/// The modulus of each lane; unused lanes repeat the last one.
pub(super) fn each_lane<'a>(group: Moduli<'a>) -> [ModulusRef<'a>; MAX_COUNT] {
    array::from_fn(|lane| group[lane.min(group.len() - 1)])
}

/// Whether the moduli are the same references, lane by lane.
pub(super) fn same(group: Moduli<'_>, prepared: Moduli<'_>) -> bool {
    let pairs = || group.iter().zip(prepared);
    group.len() <= prepared.len() && pairs().all(|(a, b)| a.is_same(b))
}
