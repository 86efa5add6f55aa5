//! Tests of the parent module.

use super::*;

/// Every chip since sm_80 has the memory for the blocks. Older ones lack the instructions.
#[test]
fn chips() {
    let runs = |device: &DeviceInfo| {
        let mut entries = ENTRIES.iter();
        entries.all(|entry| RnsMma.runs_on(entry, device))
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
    let ms = |device: &DeviceInfo| RnsMma.milliseconds(&ENTRIES[0], device, 100_000, 1024);
    assert!((ms(&game) / ms(&device) - 2.0).abs() < 1e-9);
}
