//! Launches of `modexp_BITS_tT` and `fixed_entries_BITS_tT`, whose parameters and records are the
//! same in all families (`kernels/README.md`).
#![allow(unsafe_code)]

use alloc::vec;

use batch_modexp_core::window::Window;

use super::{Entry, Grid, Operation, Work};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;

/// A chunk of exponentiations. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModExpChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// The number of moduli.
    pub(crate) moduli: usize,
    /// The length of the exponents in bits, at most the width of the kernel.
    pub(crate) exponent_bits: u32,
    /// The width of the Montgomery parameters in bits, as from [`Entry::r2_bits`].
    pub(crate) r2_bits: u32,
    pub(crate) window: Window,
}

/// Lays out a chunk of exponentiations or of table entries, and makes its launch.
pub(crate) fn launch(grid: Grid, chunk: &ModExpChunk) -> Work {
    let entry = grid.entry;
    let ModExpChunk {
        count,
        moduli,
        exponent_bits,
        r2_bits,
        window,
    } = *chunk;
    assert!(
        matches!(entry.operation, Operation::ModExp | Operation::FixedEntries),
        "a kernel for another operation"
    );
    check_count(count);
    check_r2_bits(entry, r2_bits);
    assert!(exponent_bits <= entry.bits, "the exponents are too long");
    let blocks = grid.blocks(count);

    let mut layout = Layout::default();
    let numbers = [(); 2].map(|()| layout.input(count * entry.words()));
    let indices = layout.input(count.div_ceil(2));
    let records = layout.input(moduli * 2 * entry.words());
    let power = layout.output(count * entry.result_words());
    let scratch = layout.scratch(scratch_words(entry, blocks, window));
    let [base, exponent] = numbers.map(Argument::Words);
    let arguments = vec![
        Argument::Words(power),
        base,
        exponent,
        Argument::Words(records),
        Argument::Indices {
            part: indices,
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
    // SAFETY: these are the parameters of `modexp_BITS_tT` and `fixed_entries_BITS_tT`, checked
    // above; every part has the length that its buffer must have.
    let launch = unsafe { Launch::new(&entry.image, blocks, arguments) };
    Work {
        layout,
        numbers,
        indices,
        records,
        launches: vec![launch],
    }
}

/// Words of a table of `2^window` powers for the threads of all blocks, or of the family's least
/// number of entries if that is larger.
pub(super) fn scratch_words(entry: &Entry, blocks: usize, window: Window) -> usize {
    let entries = window.table_len().max(entry.family.fewest_entries());
    blocks * entry.image.threads as usize * entry.scratch_doubles * entries
}

pub(super) fn check_operation(entry: &Entry, operation: Operation) {
    assert!(
        entry.operation == operation,
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
