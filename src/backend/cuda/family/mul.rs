//! Launches of `modmul_BITS_t1`, whose parameters and records are in `kernels/README.md`.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::checks::Form;

use super::modexp::{check_count, check_kernel};
use crate::backend::cuda::family::entry::{Entry, Operation};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::{Layout, Part};
use crate::backend::cuda::runtime::module::Grid;
use crate::backend::cuda::runtime::probe::DeviceInfo;

/// Products of 32-bit limbs that a multiprocessor does in a clock: `docs/int.md`, "One product".
const LIMB_PRODUCTS_PER_CLOCK: f64 = 28.0;

/// A chunk of products; all of it is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModMulChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// The most moduli that there may be.
    pub(crate) moduli: usize,
    pub(crate) form: Form,
}

/// Where the operands of a chunk lie, and what is launched. Numbers are little-endian 64-bit words, the numbers
/// of all instances one after the other, equally wide. The parts of the inputs are in this order.
pub(crate) struct ModMulWork {
    pub(crate) layout: Layout,
    pub(crate) a: Part,
    pub(crate) b: Part,
    /// For each instance the index of the record of its modulus, 32 bits.
    pub(crate) modulus_index: Part,
    /// Room for a record for each modulus, itself and then `r2`, of which the first are used.
    pub(crate) moduli: Part,
    pub(crate) product: Part,
    pub(crate) launches: Vec<Launch>,
}

/// Lays a chunk out in memory, and makes its launch.
pub(crate) fn launch(entry: &Entry, grid: Grid, chunk: &ModMulChunk) -> ModMulWork {
    let ModMulChunk {
        count,
        moduli,
        form,
    } = *chunk;
    check_kernel(entry, Operation::ModMul, grid);
    check_count(count);
    let numbers = count * entry.words();

    let mut layout = Layout::default();
    let a = layout.input(numbers);
    let b = layout.input(numbers);
    let modulus_index = layout.input(count.div_ceil(2));
    let records = layout.input(moduli * 2 * entry.words());
    let product = layout.output(numbers);
    let arguments = vec![
        Argument::Words(product),
        Argument::Words(a),
        Argument::Words(b),
        Argument::Words(records),
        Argument::Indices {
            part: modulus_index,
            count,
            records,
            size: 2 * entry.words(),
        },
        Argument::U32(count as u32),
        Argument::U32((form == Form::Ordinary).into()),
        // Times that `b` is a factor.
        Argument::U32(1),
    ];
    // SAFETY: these are the parameters of `modmul_BITS_t1`, checked above; every part has the length that
    // its buffer must have.
    let launch = unsafe { Launch::new(grid.image(), grid.blocks(count), arguments) };
    ModMulWork {
        layout,
        a,
        b,
        moduli: records,
        modulus_index,
        product,
        launches: vec![launch],
    }
}

/// The time in milliseconds that a device should take for `count` products by arithmetic alone. The copies take longer, which the
/// device's pace shows once it is known.
pub(crate) fn milliseconds(entry: &Entry, device: &DeviceInfo, count: usize) -> f64 {
    let limbs = f64::from(entry.bits / 32);
    let multiprocessors = f64::from(device.multiprocessors().max(1));
    let per_clock = LIMB_PRODUCTS_PER_CLOCK * multiprocessors;
    count as f64 * 2.0 * limbs * limbs / per_clock / f64::from(device.clock_khz().max(1))
}

#[cfg(test)]
mod tests;
