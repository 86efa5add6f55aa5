//! Tests of the parent module.

use super::*;
use crate::backend::cuda::powers::Prepared;
use crate::backend::cuda::runtime::launch::Kernel;
use crate::backend::cuda::runtime::launch::{Argument, Work};
use batch_modexp_core::window::Window;

fn entry(bits: u32) -> &'static Entry {
    ENTRIES.iter().find(|entry| entry.bits == bits).unwrap()
}

/// The windows that were fastest on an H200.
#[test]
fn exponents_have_the_windows_that_were_measured() {
    assert!(Int.best_window(17).bits() <= 2);
    for (exponent_bits, window) in [
        (256, 4),
        (1024, 4),
        (2048, 4),
        (3072, 5),
        (4096, 5),
        (8192, 5),
    ] {
        assert_eq!(Int.best_window(exponent_bits).bits(), window);
    }
}

/// Chips for games have the shared memory of sm_86. Every width has a kernel for them.
#[test]
fn chips_for_games_have_every_width() {
    let game = DeviceInfo::imaginary(100, 99 << 10)
        .with_compute_capability((8, 6))
        .with_few_doubles();
    for bits in ENTRIES.iter().map(|entry| entry.bits) {
        let mut serving = ENTRIES.iter().filter(|entry| entry.bits == bits);
        assert!(serving.any(|entry| entry.runs_on(&game)), "{bits}");
    }
}

/// Double-precision units do not matter. Blocks that fill a multiprocessor do not share it.
#[test]
fn forecasts_follow_blocks_and_clock() {
    let device = DeviceInfo::imaginary(100, 227 << 10);
    let few_doubles = device.clone().with_few_doubles();
    let ms = |device: &DeviceInfo, bits, blocks: usize, exponent_bits| {
        let entry = entry(bits);
        let count = blocks * 100 * entry.instances_per_block;
        entry.milliseconds(device, count, exponent_bits)
    };
    assert_eq!(ms(&device, 2048, 4, 2048), ms(&few_doubles, 2048, 4, 2048));
    assert_eq!(ms(&device, 2048, 4, 2048), 2.0 * ms(&device, 2048, 4, 1024));
    let times = entry(2048).times;
    let small = DeviceInfo::imaginary(100, 99 << 10);
    let (shared, alone) = (
        4.0 * times.shared_ns as f64 * 1e-6,
        4.0 * times.alone_ns as f64 * 1e-6,
    );
    // The clock of the imaginary device is 1 GHz.
    assert!((ms(&device, 2048, 4, 2048) / 1.98 - shared).abs() < 1e-6);
    assert!((ms(&small, 2048, 4, 2048) / 1.98 - alone).abs() < 1e-6);
}

/// The parameters of `modexp_BITS_tT` as `kernels/README.md` lists them.
#[test]
fn arguments_of_exponentiations() {
    let entry = entry(768);
    let prepared = Prepared {
        kernel: Kernel::imaginary(entry),
        exponent_bits: 70,
        r2_bits: 704,
        window: Window::new(4).unwrap(),
    };
    let work = prepared.work(1001, 7);
    let [launch] = work.launches() else {
        panic!("one launch");
    };
    let [power, base, exponent, moduli, _, scratch, rest @ ..] = launch.arguments() else {
        panic!("ten parameters");
    };
    assert_eq!(*power, Argument::Words(Work::default().output(1001 * 12)));
    assert_eq!(*base, Argument::Words(work.numbers[0]));
    assert_eq!(*exponent, Argument::Words(work.numbers[1]));
    assert_eq!(*moduli, Argument::Words(work.records));
    let Argument::Words(scratch) = scratch else {
        panic!("scratch is memory");
    };
    // A table entry of a thread has 24 limbs of 32 bits.
    let words = prepared.kernel.blocks(1001) * entry.threads as usize * 12 * 16;
    assert_eq!(scratch.len(), words);
    assert_eq!(*rest, [1001, 70, 704, 4].map(Argument::U32));
}
