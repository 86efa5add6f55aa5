//! Tests of the choice of kernels.

use alloc::vec::Vec;

use super::*;
#[cfg(feature = "rsa")]
use crate::backend::cuda::crt::{CrtClass, CrtShape};
use crate::backend::cuda::runtime::probe::{BlockTimes, Costs};

fn planned(bits: u32, count: usize, device: &DeviceInfo) -> Option<Plan> {
    Plan::new(bits, bits, count, device, Tuning::default())
}

fn name(bits: u32, count: usize, device: &DeviceInfo, tuning: Tuning) -> Option<&'static str> {
    let plan = Plan::new(bits, bits, count, device, tuning);
    plan.map(|plan| plan.entry.function)
}

#[test]
fn small_batches_take_more_lanes_for_each_instance() {
    // A chip without tensor cores, on which doubles are faster than integers.
    let device = DeviceInfo::imaginary(100, 227 << 10).with_compute_capability((7, 0));
    let pairs = [
        (512, "modexp_512_t2", "modexp_512_t1"),
        (1024, "modexp_1024_t4", "modexp_1024_t1"),
        (2048, "modexp_2048_t8", "modexp_2048_t2"),
        (3072, "modexp_3072_t8", "modexp_3072_t4"),
    ];
    for (bits, small, large) in pairs {
        let name = |count| name(bits, count, &device, Tuning::default());
        assert_eq!(name(1), Some(small));
        assert_eq!(name(1_000_000), Some(large));
    }
}

fn family(bits: u32, exponent_bits: u32, count: usize, device: &DeviceInfo) -> &'static str {
    let tuning = Tuning::default();
    let plan = Plan::new(bits, exponent_bits, count, device, tuning).unwrap();
    plan.entry.key.family
}

/// On an H200 tensor cores compute large batches, at the widths that have such kernels.
#[test]
fn families_are_chosen_by_what_was_measured() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    for bits in [1024, 1536, 2048, 3072, 4096] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "rns", "{bits}");
        assert_eq!(family(bits, bits, 1, &device), "dpf", "{bits}");
    }
    for bits in [512, 768, 4160, 6144, 8192] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "dpf", "{bits}");
    }
    // There are no kernels in doubles below 512 bits.
    for bits in [128, 256] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "int", "{bits}");
    }
    let older = device.clone().with_compute_capability((7, 0));
    assert_eq!(family(1024, 1024, 1_000_000, &older), "dpf");
    // Most chips have very few double-precision units. Their times are predictions.
    let game = DeviceInfo::imaginary(132, 99 << 10).with_compute_capability((8, 9));
    let game = game.with_few_doubles();
    for chip in [(7, 5), (8, 6), (8, 9), (12, 0)] {
        let game = game.clone().with_compute_capability(chip);
        for bits in widths() {
            assert_eq!(family(bits, bits, 1_000_000, &game), "int", "{bits}");
        }
    }
    // Another kernel would need Montgomery parameters that the host does not have.
    assert_eq!(family(960, 960, 1_000_000, &device), "dpf");
}

/// The choices follow the measured table, for exponents of any length: 132 multiprocessors, 227
/// KiB, no tensor cores.
#[test]
fn an_h200_changes_kernels_where_it_was_measured() {
    let device = DeviceInfo::imaginary(132, 227 << 10).with_compute_capability((7, 0));
    for bits in widths() {
        for exponent_bits in [17, bits] {
            let at = |count: usize| {
                let tuning = Tuning::default();
                let plan = Plan::new(bits, exponent_bits, count, &device, tuning);
                plan.unwrap().entry
            };
            for count in (0..20).map(|power| 1usize << power) {
                let time = |entry: &Entry| {
                    let times = entry.times;
                    let blocks = count.div_ceil(132).div_ceil(entry.instances_per_block);
                    times.alone_ns.max(blocks as u64 * times.shared_ns)
                };
                let best = serving(bits)
                    .filter(|entry| entry.runs_on(&device))
                    .map(time)
                    .min()
                    .unwrap();
                assert_eq!(time(at(count)), best, "{bits} bits, {count}");
            }
        }
    }
}

#[test]
fn a_tuned_entry_point_must_serve_the_width() {
    let device = DeviceInfo::imaginary(100, 227 << 10);
    for asked in serving(4096) {
        let tuning = Tuning {
            entry_point: Some(asked),
            ..Tuning::default()
        };
        assert_eq!(name(4000, 1, &device, tuning), Some(asked.name()));
        assert_eq!(name(4000, 1_000_000, &device, tuning), Some(asked.name()));
        assert_eq!(name(512, 1, &device, tuning), Some("modexp_512_t2"));
        assert_eq!(name(4097, 1, &device, tuning), Some("modexp_6144_t16"));
        assert_eq!(name(8193, 1, &device, tuning), None);
    }
}

/// Chips for games have few double-precision units.
#[test]
fn chips_are_told_apart() {
    assert!(DeviceInfo::imaginary(100, 227 << 10).is_fast());
    let game = DeviceInfo::imaginary(100, 100 << 10).with_compute_capability((8, 9));
    assert!(!game.with_few_doubles().is_fast());
}

/// Estimates grow for kernels made for few instances, for more instances, and with fewer
/// double-precision units.
#[test]
fn forecasts_follow_the_work() {
    let device = DeviceInfo::imaginary(100, 227 << 10).with_compute_capability((7, 0));
    let ms = |bits, count, device: &DeviceInfo| {
        let plan = planned(bits, count, device);
        plan.unwrap().milliseconds
    };
    assert!(ms(1024, 1_000_000, &device) > 1.9 * ms(1024, 500_000, &device));
    assert!(ms(2048, 100_000, &device) > 6.0 * ms(1024, 100_000, &device));
    let dpf = serving(1024).find(|point| point.family() == "dpf");
    let ms = |device: &DeviceInfo| {
        let tuning = Tuning {
            entry_point: dpf,
            ..Tuning::default()
        };
        let plan = Plan::new(1024, 1024, 1000, device, tuning);
        plan.unwrap().milliseconds
    };
    let slow = device.clone().with_few_doubles();
    assert!((ms(&slow) / ms(&device) - 32.0).abs() < 1e-6);
}

#[cfg(feature = "rsa")]
#[test]
fn the_kernel_for_halves_follows_the_count() {
    let hopper = DeviceInfo::imaginary(100, 227 << 10);
    let device = hopper.clone().with_compute_capability((7, 0));
    let class = CrtClass::narrowest(CrtShape::full(2048, 1024)).unwrap();
    assert_eq!(class.join.bits, 2048);
    let halves = |count, device: &DeviceInfo| {
        let plan = class.plan(count, device)?;
        Some(plan.entry.function)
    };
    assert_eq!(halves(1, &device), Some("rsa_2048_exp_t4"));
    assert_eq!(halves(1_000_000, &device), Some("rsa_2048_exp_t1"));
    // The halves may use another family.
    assert_eq!(halves(1, &hopper), Some("rsa_2048_exp_t4"));
    assert_eq!(halves(1_000_000, &hopper), Some("rsa_2048_exp_t2"));
    // The check needs more shared memory than this chip has.
    assert_eq!(halves(1, &DeviceInfo::imaginary(100, 64 << 10)), None);
    // Tensor cores accept full widths only.
    let narrow = CrtClass::narrowest(CrtShape::full(1984, 960)).unwrap();
    assert_eq!(narrow.halves.len(), 2);
    // Unequal factors, and moduli without a class.
    let unequal = CrtClass::narrowest(CrtShape::full(2048, 1088));
    assert!(unequal.is_none_or(|class| class.join.bits > 2048));
    assert!(CrtClass::narrowest(CrtShape::full(8192, 4096)).is_none());
}

/// A device on which kernels take `times`, in nanoseconds: a block alone, and one of many.
fn measured(device: &DeviceInfo, times: impl Fn(&Entry) -> Option<(u64, u64)>) -> DeviceInfo {
    let times = exponentiating().filter_map(|entry| {
        let (alone_ns, shared_ns) = times(entry)?;
        let times = BlockTimes {
            alone_ns,
            shared_ns,
        };
        Some((entry.key, times))
    });
    device.clone().with_costs(Costs {
        call_ns: None,
        kernels: times.collect(),
    })
}

/// The families' estimates for a block of a kernel, alone and as one of many.
fn predicted(entry: &Entry, device: &DeviceInfo) -> (u64, u64) {
    let ms = |count| entry.milliseconds(device, count, entry.bits);
    let block = device.multiprocessors() as usize * entry.instances_per_block;
    let ns = |ms: f64| (ms * 1e6) as u64;
    (ns(ms(1)), ns(ms(1000 * block) / 1000.0))
}

/// The fastest kernel by measured times is chosen, even where the estimates disagree.
#[test]
fn measured_times_decide() {
    for chip in [(7, 0), (8, 9), (9, 0)] {
        let device = DeviceInfo::imaginary(132, 227 << 10).with_compute_capability(chip);
        for fastest in ["dpf", "int", "rns", "rns_mma"] {
            let device = measured(&device, |entry| {
                let ns = match entry.key.family == fastest {
                    true => 1_000_000,
                    false => 100_000_000,
                };
                // For each instance, so that the size of blocks does not matter.
                let per_block = entry.instances_per_block as u64;
                Some((ns * u64::from(entry.bits), ns * per_block))
            });
            for bits in widths() {
                let mut serving = serving(bits);
                let serves = |entry: &Entry| {
                    let is_direct = entry.r2_bits(bits) == bits;
                    entry.key.family == fastest && entry.runs_on(&device) && is_direct
                };
                let has_kernel = serving.any(serves);
                for count in [1, 1000, 1_000_000] {
                    let chosen = family(bits, bits, count, &device);
                    assert_eq!(chosen == fastest, has_kernel, "{chip:?} {bits} {fastest}");
                }
            }
        }
    }
}

/// Estimates are proportional to measured times, and never fall with the number of instances.
/// Measured times equal to the estimates change no choice.
#[test]
fn forecasts_follow_what_was_measured() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let counts = || (0..40).map(|step| (1.5f64.powi(step)) as usize);
    let as_foretold = measured(&device, |entry| {
        entry.runs_on(&device).then(|| predicted(entry, &device))
    });
    let twice = measured(&device, |entry| {
        let (alone, shared) = predicted(entry, &device);
        Some((2 * alone, 2 * shared))
    });
    for bits in widths() {
        for exponent_bits in [17, bits] {
            let forecasts = |device: &DeviceInfo| -> Vec<_> {
                counts()
                    .map(|count| {
                        let tuning = Tuning::default();
                        let plan = Plan::new(bits, exponent_bits, count, device, tuning).unwrap();
                        (plan.entry.function, plan.milliseconds)
                    })
                    .collect()
            };
            let (before, after) = (forecasts(&device), forecasts(&as_foretold));
            for ((before, after), twice) in before.iter().zip(&after).zip(forecasts(&twice)) {
                assert_eq!((before.0, before.0), (after.0, twice.0), "{bits}");
                assert!((before.1 / after.1 - 1.0).abs() < 1e-3);
                assert!((twice.1 / after.1 - 2.0).abs() < 1e-3);
            }
            assert!(after.is_sorted_by(|a, b| a.1 <= b.1));
        }
    }
}

/// A slower kernel is never chosen for more batches.
#[test]
fn slower_kernels_are_not_chosen_more_often() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    for bits in widths() {
        for slowed in serving(bits) {
            let chosen = |percent: u64| {
                let device = measured(&device, |entry| {
                    let (alone, shared) = predicted(entry, &device);
                    let percent = match ptr::eq(entry, slowed) {
                        true => percent,
                        false => 100,
                    };
                    Some((alone * percent / 100, shared * percent / 100))
                });
                let counts = (0..20).map(|power| 1usize << power);
                let plans = counts.filter_map(|count| planned(bits, count, &device));
                plans.filter(|plan| ptr::eq(plan.entry, slowed)).count()
            };
            let times = [20, 50, 80, 100, 125, 200, 500].map(chosen);
            assert!(times.is_sorted_by(|a, b| a >= b), "{bits}: {times:?}");
        }
    }
}

/// Widths that were not measured use the families' estimates.
#[test]
fn what_was_not_measured_is_foretold() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let partly = measured(&device, |entry| (entry.bits == 1024).then_some((1, 1)));
    let ms = |device: &DeviceInfo, bits| {
        let plan = planned(bits, 1000, device).unwrap();
        plan.milliseconds
    };
    assert_eq!(ms(&partly, 2048), ms(&device, 2048));
    assert!(ms(&partly, 1024) < 1e-3 * ms(&device, 1024));
}

/// Exponentiations modulo the factors of a key take as long as those of equally wide numbers.
#[cfg(feature = "rsa")]
#[test]
fn measured_times_decide_among_halves() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let class = CrtClass::narrowest(CrtShape::full(2048, 1024)).unwrap();
    for fastest in ["dpf", "rns", "rns_mma"] {
        let device = measured(&device, |entry| {
            Some(match entry.key.family == fastest {
                true => (1_000, 1_000),
                false => (1_000_000, 1_000_000),
            })
        });
        for count in [1, 1_000_000] {
            let plan = class.plan(count, &device).unwrap();
            assert_eq!(plan.entry.key.family, fastest);
        }
    }
}

/// Published estimates are those that the choice follows.
#[test]
fn entry_points_say_what_they_are_chosen_by() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    for bits in [512, 960, 1024, 4096, 8192] {
        for count in [1, 1_000_000] {
            let fastest = fastest_entry_point(&device, bits, bits, count).unwrap();
            let plan = planned(bits, count, &device).unwrap();
            assert!(ptr::eq(plan.entry, fastest));
            let widest = Plan::new(bits, fastest.bits(), count, &device, Tuning::default());
            let forecast = fastest.forecast(&device, count).unwrap().as_secs_f64() * 1e3;
            assert!((forecast / widest.unwrap().milliseconds - 1.0).abs() < 1e-3);
        }
    }
    assert!(fastest_entry_point(&device, 8193, 17, 1).is_none());
    let old = device.with_compute_capability((7, 0));
    let rns = serving(1024).find(|point| point.family() == "rns");
    assert_eq!(rns.unwrap().forecast(&old, 1), None);
}
