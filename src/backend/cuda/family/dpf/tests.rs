//! Tests of the parent module.

use super::*;
use crate::backend::cuda::powers::Prepared;
use crate::backend::cuda::runtime::launch::Kernel;
use crate::backend::cuda::runtime::launch::{Argument, Work};
use batch_modexp_core::window::Window;
fn entry(operation: Operation, bits: u32) -> &'static Entry {
    let found = |entry: &&Entry| entry.operation == operation && entry.bits == bits;
    ENTRIES.iter().find(found).unwrap()
}

#[test]
fn short_exponents_do_not_pay_for_a_table() {
    assert!(Dpf.best_window(17).bits() <= 2);
}

/// The windows that were fastest on an H200.
#[test]
fn long_exponents_have_the_windows_that_were_measured() {
    for (exponent_bits, window) in [(1024, 4), (2048, 4), (4096, 5)] {
        assert_eq!(Dpf.best_window(exponent_bits).bits(), window);
    }
}

fn prepared() -> Prepared {
    Prepared {
        kernel: Kernel::imaginary(entry(Operation::ModExp, 768)),
        exponent_bits: 70,
        r2_bits: 704,
        window: Window::new(4).unwrap(),
    }
}

/// The parameters of `modexp_BITS_tT` as `kernels/README.md` lists them.
#[test]
fn arguments_of_exponentiations() {
    let entry = entry(Operation::ModExp, 768);
    let prepared = prepared();
    let work = prepared.work(1001, 7);
    let numbers = 1001 * 768 / 64;
    let inputs = [work.numbers[0], work.numbers[1], work.indices, work.records];
    let lens = [numbers, numbers, 501, 7 * 2 * 768 / 64];
    let mut end = 0usize;
    for (part, len) in inputs.into_iter().zip(lens) {
        let start = end.next_multiple_of(8);
        assert_eq!(part.range(), start..start + len);
        end = start + len;
    }
    let results = Work::default().output(numbers);
    let [launch] = work.launches() else {
        panic!("one launch");
    };
    let [power, base, exponent, moduli, index, scratch, rest @ ..] = launch.arguments() else {
        panic!("ten parameters");
    };
    assert_eq!(*power, Argument::Words(results));
    assert_eq!(*base, Argument::Words(work.numbers[0]));
    assert_eq!(*exponent, Argument::Words(work.numbers[1]));
    assert_eq!(*moduli, Argument::Words(work.records));
    let expected = Argument::Indices {
        part: work.indices,
        count: 1001,
        records: work.records,
        size: 2 * 768 / 64,
    };
    assert_eq!(*index, expected);
    let Argument::Words(scratch) = scratch else {
        panic!("scratch is memory");
    };
    let doubles =
        prepared.kernel.blocks(1001) * entry.threads as usize * entry.scratch_doubles * 16;
    assert_eq!(scratch.len(), doubles);
    assert_eq!(*rest, [1001, 70, 704, 4].map(Argument::U32));
}

fn refused<R>(call: impl FnOnce() -> R) -> bool {
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(call)).is_err()
}

/// Arguments with which a kernel must not be launched.
#[test]
fn arguments_out_of_range_are_refused() {
    let refuses_count = |count, change: fn(&mut Prepared)| {
        let mut prepared = prepared();
        change(&mut prepared);
        refused(|| prepared.work(count, 7).indices)
    };
    assert!(!refuses_count(1001, |_| ()));
    assert!(refuses_count(0, |_| ()));
    let refuses = |change| refuses_count(1001, change);
    assert!(refuses(|prepared| prepared.exponent_bits = 769));
    // With these a kernel would never end.
    assert!(refuses(|prepared| prepared.r2_bits = 320));
    assert!(refuses(|prepared| prepared.r2_bits = 1024));
}
