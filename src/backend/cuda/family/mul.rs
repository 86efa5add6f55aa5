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

/// Products of 32-bit limbs for each clock of a multiprocessor: `docs/int.md`, "One product".
const LIMB_PRODUCTS_PER_CLOCK: f64 = 28.0;

/// A chunk of products. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModMulChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// An upper bound for the number of moduli.
    pub(crate) moduli: usize,
    pub(crate) form: Form,
}

/// The places of a chunk's operands, and its launch.
///
/// Numbers are little-endian 64-bit words, equally wide. Those of all instances are consecutive.
/// The input parts are in the order of the fields.
pub(crate) struct ModMulWork {
    pub(crate) layout: Layout,
    pub(crate) a: Part,
    pub(crate) b: Part,
    /// For each instance the 32-bit index of the record of its modulus.
    pub(crate) modulus_index: Part,
    /// Space for a record for each modulus: the modulus, then `r2`. The first records are used.
    pub(crate) moduli: Part,
    pub(crate) product: Part,
    pub(crate) launches: Vec<Launch>,
}

/// Lays out a chunk in memory, and makes its launch.
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
        // How many times `b` is multiplied.
        Argument::U32(1),
    ];
    // SAFETY: these are the parameters of `modmul_BITS_t1`, checked above; every part has the
    // length that its buffer must have.
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

/// The estimated time in milliseconds for the arithmetic of `count` products on one device. The
/// copies take longer; the device's measured speed accounts for them.
pub(crate) fn milliseconds(entry: &Entry, device: &DeviceInfo, count: usize) -> f64 {
    let limbs = f64::from(entry.bits / 32);
    let multiprocessors = f64::from(device.multiprocessors().max(1));
    let per_clock = LIMB_PRODUCTS_PER_CLOCK * multiprocessors;
    count as f64 * 2.0 * limbs * limbs / per_clock / f64::from(device.clock_khz().max(1))
}

#[cfg(test)]
mod tests;
