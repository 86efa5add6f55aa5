//! Parts, arguments and indices, and kernels without a device.

use super::*;
use crate::backend::cuda::family::all;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

impl Part {
    /// Whether this is a kernel's own workspace.
    pub(in crate::backend::cuda) fn is_scratch(self) -> bool {
        self.buffer == Buffer::Scratch
    }
}

impl Kernel {
    /// A kernel of no device, to look at its launches.
    pub(crate) fn imaginary(entry: &'static Entry) -> Self {
        Self {
            entry,
            resident_blocks: 132,
            function: ptr::null_mut(),
            module: Weak::new(),
        }
    }
}

impl<'a> Work<'a> {
    pub(crate) fn launches(&self) -> &[Launch<'a>] {
        &self.launches
    }
}

impl Launch<'_> {
    pub(crate) fn arguments(&self) -> &[Argument] {
        &self.arguments
    }
}

#[test]
fn parts_follow_each_other_aligned() {
    let mut work = Work::default();
    assert_eq!(work.input(9).range(), 0..9);
    assert_eq!(work.output(3).range(), 0..3);
    assert_eq!(work.input(1).range(), 16..17);
    assert_eq!(work.sizes, Sizes([17, 3, 0, 0]));
}

#[test]
#[should_panic(expected = "a part beyond its buffer")]
fn a_part_of_other_work_is_refused() {
    let part = Work::default().output(100);
    let mut work = Work::default();
    work.output(99);
    work.check_parts(&[Argument::U32(7), Argument::Words(part)]);
}

#[test]
#[should_panic(expected = "indices beyond their part")]
fn more_indices_than_words_for_them_are_refused() {
    let mut work = Work::default();
    let argument = Argument::Indices {
        part: work.input(2),
        count: 5,
        records: work.input(7),
        size: 7,
    };
    work.check_parts(&[argument]);
}

#[test]
#[should_panic(expected = "records are inputs")]
fn records_elsewhere_are_refused() {
    let mut work = Work::default();
    let argument = Argument::Indices {
        part: work.input(2),
        count: 3,
        records: work.output(7),
        size: 7,
    };
    work.check_parts(&[argument]);
}

/// There is space for four records of three words. Only some of these words were sent.
#[test]
fn indices_are_those_of_records_that_were_sent() {
    let mut work = Work::default();
    let argument = Argument::Indices {
        part: work.input(1),
        count: 2,
        records: work.input(12),
        size: 3,
    };
    let is_taken = |largest: u64, sent: usize| {
        let mut input = alloc::vec![0; 8 + sent];
        input[0] = largest << 32;
        let check = || argument.check_indices(&input);
        catch_unwind(AssertUnwindSafe(check)).is_ok()
    };
    assert!(is_taken(0, 3) && is_taken(1, 6) && is_taken(3, 12) && is_taken(3, 99));
    assert!(!is_taken(0, 2) && !is_taken(1, 5) && !is_taken(2, 6) && !is_taken(4, 99));
}

#[test]
fn indices_up_to_the_bound_are_taken() {
    let words = [6 | 5 << 32, 3 | 99 << 32];
    let is_taken = |count, below| catch_unwind(|| assert_below(&words, count, below)).is_ok();
    assert!(is_taken(3, 7) && is_taken(4, 100) && is_taken(0, 0) && is_taken(1, 7));
    assert!(!is_taken(3, 6) && !is_taken(4, 99) && !is_taken(1, 6) && !is_taken(1, 0));
}

#[test]
fn blocks_share_the_work_evenly() {
    let entry = all().find(|entry| entry.instances_per_block == 64);
    let kernel = Kernel::imaginary(entry.unwrap());
    assert_eq!(kernel.blocks(1), 1);
    assert_eq!(kernel.blocks(64 * 132), 132);
    // Two rounds of 67 blocks, rather than one round of 132 and another of a single block.
    assert_eq!(kernel.blocks(64 * 133), 67);
    assert_eq!(kernel.blocks(0), 0);
}
