//! Tests of the parent module.

use super::super::plan::entry_points;
use super::*;

fn planned(registry: Registry, bits: u32, count: usize, device: &DeviceInfo) -> Option<Plan> {
    Plan::new(registry, bits, bits, count, device, Tuning::default())
}

fn name(bits: u32, count: usize, device: &DeviceInfo, tuning: Tuning) -> Option<&'static str> {
    let plan = Plan::new(SHIPPED, bits, bits, count, device, tuning);
    plan.map(|plan| plan.entry.image.function)
}

#[test]
fn small_batches_take_more_lanes_for_each_instance() {
    // Of a chip without tensor cores, on which doubles are faster than integers.
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
    let plan = Plan::new(SHIPPED, bits, exponent_bits, count, device, tuning).unwrap();
    plan.entry.image.key.family
}

/// On an H200 tensor cores compute large batches, at the widths that they have kernels for.
#[test]
fn families_are_chosen_by_what_was_measured() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    for bits in [1024, 1536, 2048] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "rns", "{bits}");
        assert_eq!(family(bits, bits, 1, &device), "dpf", "{bits}");
    }
    for bits in [512, 768, 3072, 4096] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "dpf", "{bits}");
    }
    // Doubles have no narrower kernels than those for 512 bits.
    for bits in [128, 256] {
        assert_eq!(family(bits, bits, 1_000_000, &device), "int", "{bits}");
    }
    let older = device.clone().with_compute_capability((7, 0));
    assert_eq!(family(1024, 1024, 1_000_000, &older), "dpf");
    // Most chips have next to no units for doubles. Forecasts for them are predictions.
    let game = DeviceInfo::imaginary(132, 99 << 10).with_compute_capability((8, 9));
    let game = game.with_few_doubles();
    for chip in [(7, 5), (8, 6), (8, 9), (12, 0)] {
        let game = game.clone().with_compute_capability(chip);
        for bits in SHIPPED.widths() {
            assert_eq!(family(bits, bits, 1_000_000, &game), "int", "{bits}");
        }
    }
    // It would want Montgomery parameters that the host does not have.
    assert_eq!(family(960, 960, 1_000_000, &device), "dpf");
}

/// The choice of the measured table, whatever the length of the exponents: 132 multiprocessors, 227 KiB, no tensor
/// cores.
#[test]
fn an_h200_changes_kernels_where_it_was_measured() {
    let device = DeviceInfo::imaginary(132, 227 << 10).with_compute_capability((7, 0));
    for bits in SHIPPED.widths() {
        for exponent_bits in [17, bits] {
            let at = |count: usize| {
                let tuning = Tuning::default();
                let plan = Plan::new(SHIPPED, bits, exponent_bits, count, &device, tuning);
                plan.unwrap().entry
            };
            for count in (0..20).map(|power| 1usize << power) {
                let time = |entry: &Entry| {
                    let times = entry.times.unwrap();
                    let blocks = count
                        .div_ceil(132)
                        .div_ceil(entry.image.instances_per_block);
                    times.alone_ms.max(blocks as f64 * times.shared_ms)
                };
                let best = SHIPPED
                    .serving(bits)
                    .filter(|entry| entry.runs_on(&device))
                    .map(time)
                    .fold(f64::INFINITY, f64::min);
                assert_eq!(time(at(count)), best, "{bits} bits, {count}");
            }
        }
    }
}

#[test]
fn a_tuned_entry_point_must_serve_the_width() {
    let device = DeviceInfo::imaginary(100, 227 << 10);
    for asked in entry_points(4096) {
        let tuning = Tuning {
            entry_point: Some(asked),
            ..Tuning::default()
        };
        assert_eq!(name(4000, 1, &device, tuning), Some(asked.name()));
        assert_eq!(name(4000, 1_000_000, &device, tuning), Some(asked.name()));
        assert_eq!(name(512, 1, &device, tuning), Some("modexp_512_t2"));
        assert_eq!(name(4097, 1, &device, tuning), None);
    }
}

/// Chips for games have few units for doubles.
#[test]
fn chips_are_told_apart() {
    assert!(is_fast(&DeviceInfo::imaginary(100, 227 << 10)));
    let game = DeviceInfo::imaginary(100, 100 << 10).with_compute_capability((8, 9));
    assert!(!is_fast(&game.with_few_doubles()));
}

/// A kernel for few instances, more of them, and devices with few doubles take longer.
#[test]
fn forecasts_follow_the_work() {
    let device = DeviceInfo::imaginary(100, 227 << 10).with_compute_capability((7, 0));
    let ms = |bits, count, device: &DeviceInfo| {
        let plan = planned(SHIPPED, bits, count, device);
        plan.unwrap().forecast.milliseconds
    };
    assert!(ms(1024, 1_000_000, &device) > 1.9 * ms(1024, 500_000, &device));
    assert!(ms(2048, 100_000, &device) > 6.0 * ms(1024, 100_000, &device));
    let dpf = entry_points(1024).find(|point| point.family() == "dpf");
    let ms = |device: &DeviceInfo| {
        let tuning = Tuning {
            entry_point: dpf,
            ..Tuning::default()
        };
        let plan = Plan::new(SHIPPED, 1024, 1024, 1000, device, tuning);
        plan.unwrap().forecast.milliseconds
    };
    let slow = device.clone().with_few_doubles();
    assert!((ms(&slow) / ms(&device) - 32.0).abs() < 1e-6);
}

#[cfg(feature = "sign")]
#[test]
fn the_halves_decide_among_classes() {
    let hopper = DeviceInfo::imaginary(100, 227 << 10);
    let device = hopper.clone().with_compute_capability((7, 0));
    let classes = crt_classes(SHIPPED, 2048, 1024);
    let halves = |count, device: &DeviceInfo| {
        let plan = CrtPlan::new(&classes, 1024, count, device)?;
        assert_eq!(plan.class.bits, 2048);
        Some(plan.halves.entry.image.function)
    };
    assert_eq!(halves(1, &device), Some("rsa_2048_exp_t4"));
    assert_eq!(halves(1_000_000, &device), Some("rsa_2048_exp_t1"));
    // The halves may be another family's.
    assert_eq!(halves(1, &hopper), Some("rsa_2048_exp_t4"));
    assert_eq!(halves(1_000_000, &hopper), Some("rsa_2048_exp_t2"));
    // The check needs more shared memory than such a chip has.
    assert_eq!(halves(1, &DeviceInfo::imaginary(100, 64 << 10)), None);
    // Tensor cores take full widths alone.
    let narrow = crt_classes(SHIPPED, 1984, 960);
    assert_eq!(narrow[0].halves.len(), 2);
    // Unequal factors, and moduli for which there is no class.
    assert!(
        crt_classes(SHIPPED, 2048, 1088)
            .iter()
            .all(|class| class.bits > 2048)
    );
    assert!(crt_classes(SHIPPED, 8192, 4096).is_empty());
}
