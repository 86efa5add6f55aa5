//! Tests of the parent module, as text; how choices follow it is tested beside them, in `plan`.

use alloc::string::ToString as _;

use proptest::prelude::*;

use super::super::runtime::costs::BlockCosts;
use super::*;

/// What anything may have taken, in nanoseconds.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        1u64..10,
        1u64..1_000_000_000,
        Just(365 * 86_400 * 1_000_000_000)
    ]
}

fn chip() -> impl Strategy<Value = Chip> {
    let name = prop::collection::vec("[!-~]{1,12}", 0..5).prop_map(|words| words.join(" "));
    (name, (0..20, 0..10), 0u32..1000, 0..20_000).prop_map(
        |(name, compute_capability, multiprocessors, cuda_version)| Chip {
            name,
            compute_capability,
            multiprocessors,
            cuda_version,
        },
    )
}

/// Some of the kernels.
fn costs() -> impl Strategy<Value = Costs> {
    let keys = || SHIPPED.exponentiating().map(|entry| entry.image.key);
    let times = prop::collection::vec(prop::option::of((time(), time())), keys().count());
    (prop::option::of(time()), times).prop_map(move |(call_ns, times)| Costs {
        call_ns,
        kernels: keys()
            .zip(times)
            .filter_map(|(key, times)| {
                let (alone_ns, shared_ns) = times?;
                let times = BlockCosts {
                    alone_ns,
                    shared_ns,
                };
                Some((key, times))
            })
            .collect(),
    })
}

fn calibration() -> impl Strategy<Value = Calibration> {
    let per_bit = prop::collection::btree_map(1u32..5000, time(), 0..5);
    let processor = ("[a-z]{1,8}", per_bit).prop_map(|(backend, per_bit_ps)| ProcessorCosts {
        backend,
        per_bit_ps,
    });
    let devices = prop::collection::vec((chip(), costs()), 1..4);
    (devices, prop::option::of(processor)).prop_map(|(mut devices, processor)| {
        for (i, (chip, _)) in devices.iter_mut().enumerate() {
            // No two alike.
            chip.multiprocessors = 10 * chip.multiprocessors + i as u32;
        }
        let shared = |(chip, costs)| (chip, Arc::new(costs));
        Calibration {
            devices: devices.into_iter().map(shared).collect(),
            processor,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_come_back(calibration in calibration()) {
        let text = calibration.to_string();
        prop_assert_eq!(text.parse(), Ok(calibration.clone()));
        // Comments, empty lines and the ends of lines of other systems say nothing.
        let foreign = text.replace('\n', "\r\n\r\n# more\r\n");
        prop_assert_eq!(foreign.parse(), Ok(calibration));
    }

    /// A character that was changed, a line that is missing or is there twice, an end that was cut off.
    #[test]
    fn garbled_texts_are_refused(
        calibration in calibration(),
        place in any::<prop::sample::Index>(),
        other in "[ -~]",
    ) {
        let text = calibration.to_string();
        let said: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let is_refused = |lines: &[&str]| {
            let parsed = lines.join("\n").parse::<Calibration>();
            matches!(parsed, Err(CalibrationFault::Garbled { .. } | CalibrationFault::OtherKernels))
        };
        let line = place.index(said.len());
        prop_assert!(is_refused(&said[..line]));
        let mut missing = said.clone();
        missing.remove(line);
        prop_assert!(is_refused(&missing));
        let mut twice = said.clone();
        twice.insert(line, said[line]);
        prop_assert!(is_refused(&twice));

        let column = place.index(said[line].len());
        let mut changed = said[line].to_string();
        changed.replace_range(column..=column, &other);
        let mut lines = said.clone();
        lines[line] = &changed;
        let parsed = lines.join("\n").parse::<Calibration>();
        // What it says may be the same: hexadecimal digits are of either case, and 9 spaces are as good as one.
        prop_assert!(parsed.is_err() || parsed == Ok(calibration));
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text in "(batch-modexp calibration 1\n)?(\\PC|\n){0,200}") {
        prop_assert!(text.parse::<Calibration>().is_err());
    }
}

fn sample() -> Calibration {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let costs = Costs {
        call_ns: Some(400_000),
        ..Costs::default()
    };
    Calibration {
        devices: Vec::from([(Chip::of(&device), Arc::new(costs))]),
        processor: None,
    }
}

#[test]
fn faults_name_the_line() {
    let text = sample().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    for line in [0, 1, 4, 5, 6] {
        let mut garbled = lines.clone();
        garbled[line] = "nonsense";
        let parsed = garbled.join("\n").parse::<Calibration>();
        assert_eq!(parsed, Err(CalibrationFault::Garbled { line: line + 1 }));
    }
    let parsed = lines[..6].join("\n").parse::<Calibration>();
    assert_eq!(parsed, Err(CalibrationFault::Garbled { line: 7 }));
    assert_eq!(
        "".parse::<Calibration>(),
        Err(CalibrationFault::Garbled { line: 1 })
    );
}

/// The numbers of kernels differ from version to version, whatever else a text says.
#[test]
fn texts_of_other_kernels_are_refused() {
    let ours = alloc::format!("kernels {:016x}", kernel_set());
    let theirs = alloc::format!("kernels {:016x}", kernel_set() ^ 1);
    let text = sample().to_string().replace(&ours, &theirs);
    assert_eq!(
        text.parse::<Calibration>(),
        Err(CalibrationFault::OtherKernels)
    );
}

/// Other chips, and others of a kind: a share of a device, or one with another driver.
#[test]
fn other_devices_are_not_known() {
    let calibration = sample();
    let known = DeviceInfo::imaginary(132, 227 << 10);
    assert_eq!(calibration.costs(&known).unwrap().call_ns, Some(400_000));
    let others = [
        DeviceInfo::imaginary(66, 227 << 10),
        known.clone().with_compute_capability((9, 1)),
        known.with_cuda_version(13_010),
    ];
    for other in others {
        let fault = CalibrationFault::OtherDevice {
            name: String::new(),
        };
        assert_eq!(calibration.costs(&other), Err(fault));
    }
}

/// Every time has a kernel of its own.
#[test]
fn impossible_times_are_refused() {
    let text = sample().to_string();
    for times in [
        "0 1",
        "1 0",
        "1",
        "1 1 1",
        "-1 1",
        "1.5 1",
        "99999999999999999999 1",
        "31536000000000001 1",
    ] {
        let line = alloc::format!("kernel dpf 512 t1 {times}\nsum");
        let parsed = text.replace("sum", &line).parse::<Calibration>();
        assert_eq!(
            parsed,
            Err(CalibrationFault::Garbled { line: 7 }),
            "{times}"
        );
    }
    for kernel in ["dpf 513 t1", "other 512 t1", "dpf 512 t3"] {
        let line = alloc::format!("kernel {kernel} 1 1\nsum");
        let parsed = text.replace("sum", &line).parse::<Calibration>();
        assert_eq!(
            parsed,
            Err(CalibrationFault::Garbled { line: 7 }),
            "{kernel}"
        );
    }
}
