//! Launches of `modexp_BITS_tT`, whose parameters and records are the same in all families
//! (`kernels/README.md`).
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::window::Window;

use super::{Entry, Operation};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::{Layout, Part};
use crate::backend::cuda::runtime::module::Grid;

/// A chunk of exponentiations. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModExpChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// An upper bound for the number of moduli.
    pub(crate) moduli: usize,
    /// The length of the exponents in bits, at most the width of the kernel.
    pub(crate) exponent_bits: u32,
    /// The width of the Montgomery parameters in bits, as from [`Entry::r2_bits`].
    pub(crate) r2_bits: u32,
    pub(crate) window: Window,
}

/// The places of a chunk's operands, and its launches.
///
/// Numbers are little-endian 64-bit words, zero-extended to one width. Those of all instances are
/// consecutive. The input parts are in the order of the fields.
pub(crate) struct ModExpWork {
    pub(crate) layout: Layout,
    pub(crate) base: Part,
    pub(crate) exponent: Part,
    /// For each instance the 32-bit index of the record of its modulus.
    pub(crate) modulus_index: Part,
    /// Space for a record for each modulus. The first records are used.
    pub(crate) moduli: Part,
    pub(crate) power: Part,
    pub(crate) launches: Vec<Launch>,
}

/// Lays out a chunk in memory, and makes its launch.
pub(crate) fn launch(entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork {
    check_kernel(entry, Operation::ModExp, grid);
    launch_of(entry, grid, chunk, entry.words())
}

/// The same for a kernel with these parameters whose results have `result_words` words each.
pub(super) fn launch_of(
    entry: &Entry,
    grid: Grid,
    chunk: &ModExpChunk,
    result_words: usize,
) -> ModExpWork {
    let ModExpChunk {
        count,
        moduli,
        exponent_bits,
        r2_bits,
        window,
    } = *chunk;
    check_count(count);
    check_r2_bits(entry, r2_bits);
    assert!(exponent_bits <= entry.bits, "the exponents are too long");
    let (numbers, blocks) = (count * entry.words(), grid.blocks(count));

    let mut layout = Layout::default();
    let base = layout.input(numbers);
    let exponent = layout.input(numbers);
    let modulus_index = layout.input(count.div_ceil(2));
    let records = layout.input(moduli * 2 * entry.words());
    let power = layout.output(count * result_words);
    let scratch = layout.scratch(scratch_words(entry, blocks, window));
    let arguments = vec![
        Argument::Words(power),
        Argument::Words(base),
        Argument::Words(exponent),
        Argument::Words(records),
        Argument::Indices {
            part: modulus_index,
            count,
            records,
            size: 2 * entry.words(),
        },
        Argument::Words(scratch),
        Argument::U32(count as u32),
        Argument::U32(exponent_bits),
        Argument::U32(r2_bits),
        Argument::U32(window.bits()),
    ];
    // SAFETY: these are the parameters of `modexp_BITS_tT` and `fixed_entries_BITS_tT`, checked above; every part has the
    // length that its buffer must have.
    let launch = unsafe { Launch::new(grid.image(), blocks, arguments) };
    ModExpWork {
        layout,
        base,
        exponent,
        moduli: records,
        modulus_index,
        power,
        launches: vec![launch],
    }
}

/// Words of a table of `2^window` powers for the threads of all blocks, or of the family's least
/// number of entries if that is larger.
pub(super) fn scratch_words(entry: &Entry, blocks: usize, window: Window) -> usize {
    let entries = window.table_len().max(entry.family.fewest_entries());
    blocks * entry.image.threads as usize * entry.scratch_doubles * entries
}

pub(super) fn check_kernel(entry: &Entry, operation: Operation, grid: Grid) {
    assert!(
        entry.operation == operation && ptr::eq(&entry.image, grid.image()),
        "a kernel for another operation"
    );
}

pub(super) fn check_count(count: usize) {
    assert!(
        (1..=1 << 30).contains(&count),
        "too many instances, or none"
    );
}

/// Panics if the Montgomery parameters are too narrow: the kernel would not end, or would give a
/// wrong result.
pub(super) fn check_r2_bits(entry: &Entry, r2_bits: u32) {
    assert!(
        (entry.min_r2_bits..=entry.bits).contains(&r2_bits),
        "Montgomery parameters of the wrong width"
    );
}
