//! Running times measured on this machine, and the choices that follow from them.

use batch_modexp::Error;
use batch_modexp::backend::cuda::{
    Calibration, CalibrationFault, EntryPoint, entry_points, fastest_entry_point,
};
use batch_modexp::backend::{Auto, Cuda, Kind, Parallel, Serial};

use super::{Batch, assert_same, gpu};

/// The widths modulo the factors of usual keys, and one for which only the family `int` has a
/// kernel.
const WIDTHS: [u32; 3] = [256, 1024, 2048];

/// The family and the name of the kernels for batches of several sizes.
fn choices(cuda: &Cuda) -> Vec<Option<(&str, &str)>> {
    let devices: Vec<_> = cuda.devices().collect();
    let choice = |bits: u32| {
        let counts = (0..20).map(|power| 1 << power);
        counts.flat_map({
            let devices = &devices;
            move |count| {
                let name = |point: &'static EntryPoint| (point.family(), point.name());
                let choice = move |device| fastest_entry_point(device, bits, bits, count).map(name);
                devices.iter().copied().map(choice)
            }
        })
    };
    WIDTHS.into_iter().flat_map(choice).collect()
}

/// The kernel with the best measured time is chosen, results are right, and the saved text leads to
/// the same choices.
#[test]
fn measured_times_are_chosen_by() {
    let Some((_memory, mut cuda)) = gpu() else {
        return;
    };
    let predicted: Vec<_> = cuda.devices().cloned().collect();
    let calibration = cuda.calibrate(&WIDTHS).unwrap();
    let text = calibration.to_string();
    for (before, device) in predicted.iter().zip(cuda.devices()) {
        for bits in WIDTHS {
            for point in entry_points(bits) {
                let Some(predicted) = point.forecast(before, 100_000) else {
                    continue;
                };
                assert_ne!(
                    point.forecast(device, 100_000),
                    Some(predicted),
                    "{}",
                    point.name()
                );
                assert!(text.contains(&format!("kernel {} {} t", point.family(), point.bits())));
            }
            for count in [1, 1000, 100_000] {
                let chosen = fastest_entry_point(device, bits, bits, count).unwrap();
                // Kernels of this width only: those of other widths would widen the 256-bit
                // numbers.
                let of_width = entry_points(bits).filter(|point| point.bits() == bits);
                let times = of_width.filter_map(|point| point.forecast(device, count));
                assert_eq!(chosen.forecast(device, count), times.min());
            }
        }
    }
    let host = Parallel::new(Serial).unwrap();
    for bits in WIDTHS {
        for len in [1, 3000] {
            let batch = Batch::random(bits, len, 5);
            assert_same(&batch.run(&cuda, 40), &batch.run(&host, 40));
        }
    }
    let parsed: Calibration = text.parse().unwrap();
    assert_eq!(parsed, calibration);
    let again = Cuda::new().unwrap().with_calibration(&parsed).unwrap();
    assert_eq!(choices(&again), choices(&cuda));
}

/// The processor is measured too, and the saved text leads to the same break-even point.
#[test]
fn both_sides_are_measured() {
    let Some((_memory, cuda)) = gpu() else { return };
    let mut auto = Auto::with_cuda(cuda);
    let calibration = auto.calibrate(&WIDTHS).unwrap();
    let text = calibration.to_string();
    assert!(
        text.contains("\nprocessor ") && text.contains("\nwidth 1024 "),
        "{text}"
    );
    let parsed: Calibration = text.parse().unwrap();
    let again = Auto::with_cuda(Cuda::new().unwrap()).with_calibration(&parsed);
    let again = again.unwrap();
    for bits in WIDTHS {
        assert_eq!(again.break_even(bits, bits), auto.break_even(bits, bits));
    }
    let host = Parallel::new(Serial).unwrap();
    for len in [1, 300, 3000] {
        let batch = Batch::random(1024, len, 5);
        assert_same(&batch.run(&auto, 100), &batch.run(&host, 100));
        assert_same(&batch.run(&again, 100), &batch.run(&host, 100));
    }
    // GPUs that are requested by name have no alternative.
    let mut named = Auto::with(Kind::Cuda, None)
        .unwrap()
        .with_calibration(&parsed)
        .unwrap();
    assert!(
        !named
            .calibrate(&[512])
            .unwrap()
            .to_string()
            .contains("\nprocessor ")
    );
}

/// Widths without kernels are skipped; an empty list is no error.
#[test]
fn widths_without_kernels() {
    let Some((_memory, mut cuda)) = gpu() else {
        return;
    };
    for widths in [&[][..], &[0, Cuda::MAX_BITS + 64, u32::MAX]] {
        let text = cuda.calibrate(widths).unwrap().to_string();
        assert!(!text.contains("\nkernel "), "{text}");
    }
}

/// Without a GPU there is nothing to calibrate.
#[test]
fn processors_alone_have_no_choice() {
    for kind in [Kind::Serial, Kind::Cpu] {
        let calibrated = Auto::with(kind, None).unwrap().calibrate(&WIDTHS);
        assert_eq!(calibrated, Err(Error::Calibration(CalibrationFault::NoGpu)));
    }
}
