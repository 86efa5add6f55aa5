//! The text format of a calibration, one line for each measurement:
//!
//! ```text
//! batch-modexp calibration 1
//! kernels 0123456789abcdef
//! device 9.0 13000 132 NVIDIA H200
//! call 400000
//! kernel dpf 1024 t1 9060000 9330000
//! processor ifma
//! width 1024 1200000
//! sum fedcba9876543210
//! ```
//!
//! A device is given by its compute capability, the version of the driver, the number of
//! multiprocessors, and the name. Times are in nanoseconds. That of a call excludes its kernels.
//! Those of a kernel are for a block with exponents as long as its numbers: alone on a device, and
//! each of as many as share a multiprocessor. A width has picoseconds of a thread for a bit. Lines
//! that begin with `#`, and empty ones, are ignored. The sum covers all other lines.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use batch_modexp_core::CalibrationFault;

use super::super::family;
use super::super::runtime::probe::BlockTimes;
use super::{Calibration, ProcessorCosts, kernel_set};

/// The first line, with the version of the format.
const HEAD: &str = "batch-modexp calibration 1\n";

/// A year in nanoseconds, the longest time that is accepted. Sums of such times do not overflow.
const LONGEST_NS: u64 = 365 * 86_400 * 1_000_000_000;

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_lines(&mut text)?;
        writeln!(f, "{text}sum {:016x}", sum(&text))
    }
}

impl FromStr for Calibration {
    type Err = CalibrationFault;

    /// # Errors
    ///
    /// [`CalibrationFault::Garbled`] if the text is not a calibration or was changed, and
    /// [`CalibrationFault::OtherKernels`] if it is from a version of the crate with other kernels.
    fn from_str(text: &str) -> Result<Self, CalibrationFault> {
        let mut calibration = Self {
            devices: Vec::new(),
            processor: None,
        };
        let (mut last, mut body, mut is_whole) = (0, String::new(), false);
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<_> = text.split_whitespace().collect();
            let is_expected = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                _ if is_whole => false,
                words if body.is_empty() => words.join(" ") == HEAD.trim_end(),
                ["kernels", set] if body == HEAD => match hexadecimal(set) {
                    Some(set) if set != kernel_set() => return Err(CalibrationFault::OtherKernels),
                    set => set.is_some(),
                },
                _ if body == HEAD => false,
                ["sum", expected] => {
                    is_whole = hexadecimal(expected) == Some(sum(&body));
                    is_whole
                }
                words => calibration.read(words).is_some(),
            };
            if !is_expected {
                return Err(CalibrationFault::Garbled { line });
            }
            body += &(words.join(" ") + "\n");
            last = line;
        }
        let garbled = CalibrationFault::Garbled { line: last + 1 };
        is_whole.then_some(calibration).ok_or(garbled)
    }
}

impl Calibration {
    /// Writes all lines except the sum.
    fn write_lines(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "{HEAD}kernels {:016x}", kernel_set())?;
        for (chip, costs) in &self.devices {
            writeln!(text, "device {chip}")?;
            if let Some(call) = costs.call_ns {
                writeln!(text, "call {call}")?;
            }
            for (key, times) in &costs.kernels {
                let (alone, shared) = (times.alone_ns, times.shared_ns);
                let (family, bits, variant) = (key.family, key.bits, key.variant);
                writeln!(text, "kernel {family} {bits} {variant} {alone} {shared}")?;
            }
        }
        if let Some(processor) = &self.processor {
            writeln!(text, "processor {}", processor.backend)?;
            for (bits, per_bit) in &processor.per_bit_ps {
                writeln!(text, "width {bits} {per_bit}")?;
            }
        }
        Ok(())
    }

    /// Reads the words of a line of measurements. `None` if it is not one.
    ///
    /// Lines that are missing, repeated or in another order change the sum.
    fn read(&mut self, words: &[&str]) -> Option<()> {
        let last = self.devices.last_mut();
        // The times have no other owner before the text is read.
        let costs = last.and_then(|(_, costs)| Arc::get_mut(costs));
        match words {
            ["device", capability, cuda_version, multiprocessors, ..] => {
                let (major, minor) = capability.split_once('.')?;
                for number in [major, minor, cuda_version, multiprocessors] {
                    number.parse::<u32>().ok()?;
                }
                self.devices.push((words[1..].join(" "), Arc::default()));
            }
            ["call", call] => costs?.call_ns = Some(time(call)?),
            ["kernel", family, bits, variant, alone, shared] => {
                let wanted = (*family, bits.parse().ok()?, *variant);
                let mut keys = family::exponentiating().map(|entry| entry.key);
                let key = keys.find(|key| (key.family, key.bits, key.variant) == wanted)?;
                let times = BlockTimes {
                    alone_ns: time(alone)?,
                    shared_ns: time(shared)?,
                };
                costs?.kernels.insert(key, times);
            }
            ["processor", backend] => {
                self.processor = Some(ProcessorCosts {
                    backend: String::from(*backend),
                    per_bit_ps: BTreeMap::new(),
                });
            }
            ["width", bits, per_bit] => {
                let processor = self.processor.as_mut()?;
                let bits = bits.parse().ok()?;
                processor.per_bit_ps.insert(bits, time(per_bit)?);
            }
            _ => return None,
        }
        Some(())
    }
}

/// A time. Zero is refused.
fn time(word: &str) -> Option<u64> {
    let time = word.parse().ok()?;
    (1..=LONGEST_NS).contains(&time).then_some(time)
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// FNV-1a of 64 bits, which detects accidental changes.
pub(super) fn sum(text: &str) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
