//! Tests of the parent module.

use alloc::vec;

use super::*;
use crate::backend::cuda::powers::Prepared;
use crate::backend::cuda::runtime::launch::Argument;
use crate::backend::cuda::runtime::launch::Kernel;

fn entry(bits: u32) -> &'static Entry {
    ENTRIES.iter().find(|entry| entry.bits == bits).unwrap()
}

/// The windows that were fastest on an H200.
#[test]
fn windows_are_those_that_were_measured() {
    for bits in [1024, 1536, 2048, 3072, 4096] {
        assert_eq!(FAMILY.best_window(bits).bits(), 5);
    }
    assert!(FAMILY.best_window(17).bits() <= 3);
}

/// An exponent of 17 bits takes far more than 17/1024 of the time: 0.357 ms of 3.86 at 1024 bits,
/// 0.695 of 14.4 at 2048.
#[test]
fn short_exponents_cost_their_setup() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    for (bits, measured) in [(1024, 0.0925), (2048, 0.0483)] {
        let ms = |exponent_bits| entry(bits).milliseconds(&device, 100_000, exponent_bits);
        let share = ms(17) / ms(bits);
        assert!((0.9..1.1).contains(&(share / measured)), "{bits}: {share}");
    }
}

/// Code for sm_90a runs only on compute capability 9.0, and old drivers cannot read it.
#[test]
fn chips_and_drivers() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let runs = |device: &DeviceInfo| ENTRIES.iter().all(|entry| entry.runs_on(device));
    let runs_one = |device: &DeviceInfo| ENTRIES.iter().any(|entry| entry.runs_on(device));
    assert!(runs(&device));
    for chip in [(8, 0), (8, 9), (10, 0), (12, 0)] {
        let other = device.clone().with_compute_capability(chip);
        assert!(!runs_one(&other));
    }
    assert!(!runs_one(&device.clone().with_cuda_version(11_080)));
    let old = device.clone().with_cuda_version(12_040);
    let widths = ENTRIES.iter().filter(|entry| entry.runs_on(&old));
    assert_eq!(widths.map(|entry| entry.bits).max(), Some(2048));
    assert!(!runs_one(&DeviceInfo::imaginary(132, 99 << 10)));
}

#[test]
fn results_of_all_ones_are_none() {
    let mut power = vec![u64::MAX; 16];
    assert!(FAMILY.is_refused(&power));
    power[7] = u64::MAX - 1;
    assert!(!FAMILY.is_refused(&power));
}

/// The parameters are those of all families. Scratch memory and the width of the Montgomery
/// parameters differ.
#[test]
fn arguments_of_exponentiations() {
    let entry = entry(1024);
    let prepared = Prepared {
        kernel: Kernel::imaginary(entry),
        exponent_bits: 70,
        r2_bits: 1024,
        window: Window::new(2).unwrap(),
    };
    let work = prepared.work(1001, 7);
    let [_, _, _, _, _, scratch, rest @ ..] = work.launches()[0].arguments() else {
        panic!("ten parameters");
    };
    let Argument::Words(scratch) = scratch else {
        panic!("scratch is memory");
    };
    let doubles = 1001usize.div_ceil(192) * 384 * 15 * 32;
    assert_eq!(scratch.len(), doubles);
    assert_eq!(*rest, [1001, 70, 1024, 2].map(Argument::U32));
    let narrow = Prepared {
        r2_bits: 960,
        ..prepared.clone()
    };
    let call = || narrow.work(1001, 7).indices;
    assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(call)).is_err());
}

/// Every chip since sm_80 has the memory for the blocks. Older ones lack the instructions.
#[test]
fn mma_runs_on_all_chips_since_sm_80() {
    let runs = |device: &DeviceInfo| {
        let mut entries = mma::ENTRIES.iter();
        entries.all(|entry| entry.runs_on(device))
    };
    // The shared memory of a block on sm_86, sm_89 and sm_120.
    let small = DeviceInfo::imaginary(100, 99 << 10);
    for chip in [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)] {
        assert!(runs(&small.clone().with_compute_capability(chip)));
    }
    assert!(!runs(&small.clone().with_compute_capability((7, 5))));
    assert!(!runs(&DeviceInfo::imaginary(100, 64 << 10)));
}

/// Chips for games compute fewer products for each clock.
#[test]
fn forecasts_follow_the_rate_of_products() {
    let device = DeviceInfo::imaginary(100, 99 << 10);
    let game = device.clone().with_compute_capability((8, 9));
    let ms = |device: &DeviceInfo| mma::ENTRIES[0].milliseconds(device, 100_000, 1024);
    assert!((ms(&game) / ms(&device) - 2.0).abs() < 1e-9);
}
