//! Tests of calibrations as text. The tests of `plan` cover choices by measured times.

use alloc::string::ToString as _;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

use super::super::runtime::probe::BlockTimes;
use super::*;

/// Random calibrations. A failure names the seed of the case.
struct Cases(ChaCha20Rng);

impl Cases {
    /// Checks many cases, each with a seed.
    fn check(check: impl Fn(u64, &mut Self)) {
        for seed in 0..192 {
            check(seed, &mut Self(ChaCha20Rng::seed_from_u64(seed)));
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    /// `Some` half of the time.
    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 1).then(|| value(self))
    }

    /// A word of `1..=most` characters in `first..=last`.
    fn word(&mut self, most: usize, first: u8, last: u8) -> String {
        let count = 1 + self.below(most);
        let range = usize::from(last - first) + 1;
        (0..count)
            .map(|_| char::from(first + self.below(range) as u8))
            .collect()
    }

    /// A time in nanoseconds: short, ordinary, or the longest one.
    fn time(&mut self) -> u64 {
        match self.below(3) {
            0 => 1 + self.below(9) as u64,
            1 => 1 + self.below(999_999_999) as u64,
            _ => 365 * 86_400 * 1_000_000_000,
        }
    }

    fn chip(&mut self, number: usize) -> String {
        let name: Vec<_> = (0..self.below(5))
            .map(|_| self.word(12, b'!', b'~'))
            .collect();
        let (capability, cuda) = (self.below(200) as f64 / 10.0, self.below(20_000));
        let name = name.join(" ");
        words(&alloc::format!("{capability:.1} {cuda} {number} {name}"))
    }

    /// Costs of some of the kernels.
    fn costs(&mut self) -> Costs {
        let keys = family::exponentiating().map(|entry| entry.key);
        Costs {
            call_ns: self.option(Self::time),
            kernels: keys
                .filter_map(|key| {
                    let times = self.option(|cases| BlockTimes {
                        alone_ns: cases.time(),
                        shared_ns: cases.time(),
                    })?;
                    Some((key, times))
                })
                .collect(),
        }
    }

    fn calibration(&mut self) -> Calibration {
        let devices = 1 + self.below(3);
        Calibration {
            devices: (0..devices)
                .map(|number| (self.chip(number), Arc::new(self.costs())))
                .collect(),
            processor: self.option(|cases| ProcessorCosts {
                backend: cases.word(8, b'a', b'z'),
                per_bit_ps: (0..cases.below(5))
                    .map(|_| (1 + cases.below(4999) as u32, cases.time()))
                    .collect(),
            }),
        }
    }
}

#[test]
fn texts_come_back() {
    Cases::check(|seed, cases| {
        let calibration = cases.calibration();
        let text = calibration.to_string();
        assert_eq!(text.parse(), Ok(calibration.clone()), "seed {seed}");
        // Comments, empty lines and other line endings are ignored.
        let foreign = text.replace('\n', "\r\n\r\n# more\r\n");
        assert_eq!(foreign.parse(), Ok(calibration), "seed {seed}");
    });
}

/// Changed characters, missing or repeated lines, and cut-off ends are refused.
#[test]
fn garbled_texts_are_refused() {
    Cases::check(|seed, cases| {
        let calibration = cases.calibration();
        let text = calibration.to_string();
        let said: Vec<_> = text.lines().collect();
        let is_refused = |lines: &[&str]| {
            let parsed = lines.join("\n").parse::<Calibration>();
            matches!(
                parsed,
                Err(CalibrationFault::Garbled { .. } | CalibrationFault::OtherKernels)
            )
        };
        let line = cases.below(said.len());
        assert!(is_refused(&said[..line]), "seed {seed}");
        let mut missing = said.clone();
        missing.remove(line);
        assert!(is_refused(&missing), "seed {seed}");
        let mut twice = said.clone();
        twice.insert(line, said[line]);
        assert!(is_refused(&twice), "seed {seed}");

        let column = cases.below(said[line].len());
        let mut changed = said[line].to_string();
        changed.replace_range(column..=column, &cases.word(1, b' ', b'~'));
        let mut lines = said.clone();
        lines[line] = &changed;
        let parsed = lines.join("\n").parse::<Calibration>();
        // A change may keep the meaning: hexadecimal digits have either case, and spaces may
        // repeat.
        assert!(parsed.is_err() || parsed == Ok(calibration), "seed {seed}");
    });
}

#[test]
fn any_text_is_parsed_without_a_panic() {
    Cases::check(|seed, cases| {
        let head = cases.option(|_| "batch-modexp calibration 1\n");
        let mut text = String::from(head.unwrap_or_default());
        for _ in 0..cases.below(200) {
            // All of Unicode, ASCII, or line ends.
            let bound = [0x11_0000, 0x80, 1][cases.below(3)];
            let character = char::from_u32(cases.below(bound) as u32);
            text.extend(character.map(|character| if bound == 1 { '\n' } else { character }));
        }
        assert!(text.parse::<Calibration>().is_err(), "seed {seed}");
    });
}

fn sample() -> Calibration {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let costs = Costs {
        call_ns: Some(400_000),
        ..Costs::default()
    };
    Calibration {
        devices: Vec::from([(chip(&device), Arc::new(costs))]),
        processor: None,
    }
}

#[test]
fn faults_name_the_line() {
    let text = sample().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for line in 0..5 {
        let mut garbled = lines.clone();
        garbled[line] = "nonsense";
        let parsed = garbled.join("\n").parse::<Calibration>();
        assert_eq!(parsed, Err(CalibrationFault::Garbled { line: line + 1 }));
    }
    let parsed = lines[..4].join("\n").parse::<Calibration>();
    assert_eq!(parsed, Err(CalibrationFault::Garbled { line: 5 }));
    assert_eq!(
        "".parse::<Calibration>(),
        Err(CalibrationFault::Garbled { line: 1 })
    );
}

/// A text of a version with other kernels is refused, whatever else it says.
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

/// Other chips are not known, nor parts of a device or devices with another driver.
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

/// A device is given by numbers and a name, which may be empty. Other words are not another device.
#[test]
fn devices_without_numbers_are_refused() {
    let text = sample().to_string();
    let device = text.lines().nth(2).unwrap();
    assert_eq!(device, "device 9.0 13000 132");
    let parsed = |chip: &str| {
        let (body, _) = text.rsplit_once("sum").unwrap();
        let body = body.replace(device, &alloc::format!("device {chip}"));
        alloc::format!("{body}sum {:016x}", text::sum(&body)).parse::<Calibration>()
    };
    for chip in ["9.0 13000 132", "9.0 13000 132 NVIDIA H200"] {
        assert!(parsed(chip).is_ok(), "{chip}");
    }
    for chip in [
        "some other device",
        "9 13000 132",
        "9.x 13000 132",
        "9.0 13.0 132 NVIDIA H200",
        "9.0 13000 -132",
        "9.0 13000 NVIDIA H200",
        "9.0 13000",
    ] {
        let fault = CalibrationFault::Garbled { line: 3 };
        assert_eq!(parsed(chip), Err(fault), "{chip}");
    }
}

/// Zero, malformed and excessive times are refused, as are lines with too few or too many.
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
            Err(CalibrationFault::Garbled { line: 5 }),
            "{times}"
        );
    }
    for kernel in ["dpf 513 t1", "other 512 t1", "dpf 512 t3"] {
        let line = alloc::format!("kernel {kernel} 1 1\nsum");
        let parsed = text.replace("sum", &line).parse::<Calibration>();
        assert_eq!(
            parsed,
            Err(CalibrationFault::Garbled { line: 5 }),
            "{kernel}"
        );
    }
}
