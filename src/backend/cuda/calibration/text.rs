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
//! multiprocessors, and the name. Lines that begin with `#`, and empty ones, are ignored. The sum
//! covers all other lines.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::str::{FromStr, SplitWhitespace};

use batch_modexp_core::CalibrationFault;

use super::super::runtime::costs::{BlockCosts, Costs};
use super::{Calibration, Chip, ProcessorCosts, SHIPPED, kernel_set};

/// The first line, with the version of the format.
const HEAD: &str = "batch-modexp calibration 1";

/// A year in nanoseconds, the longest time that is accepted. Sums of such times do not overflow.
const LONGEST_NS: u64 = 365 * 86_400 * 1_000_000_000;

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        let (head, rest) = body.split_once('\n').unwrap_or_default();
        writeln!(f, "{head}")?;
        writeln!(
            f,
            "# Times in nanoseconds. call: besides its kernels. kernel: a block with exponents as long as its numbers, alone"
        )?;
        writeln!(
            f,
            "# on a device, and each of as many as share a multiprocessor. width: picoseconds of a thread for a bit."
        )?;
        write!(f, "{rest}")?;
        writeln!(f, "sum {:016x}", sum(&body))
    }
}

impl Calibration {
    /// All lines except the sum and the comments.
    fn body(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_body(&mut text);
        text
    }

    fn write_body(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "{HEAD}\nkernels {:016x}", kernel_set())?;
        for (chip, costs) in &self.devices {
            let (major, minor) = chip.compute_capability;
            writeln!(
                text,
                "device {major}.{minor} {} {} {}",
                chip.cuda_version, chip.multiprocessors, chip.name
            )?;
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
}

impl FromStr for Calibration {
    type Err = CalibrationFault;

    /// # Errors
    ///
    /// [`CalibrationFault::Garbled`] if the text is not a calibration or was changed, and
    /// [`CalibrationFault::OtherKernels`] if it is from a version of the crate with other kernels.
    fn from_str(text: &str) -> Result<Self, CalibrationFault> {
        let numbered = (1..).zip(text.lines());
        let is_said =
            |(_, line): &(usize, &str)| !matches!(line.trim(), "") && !line.starts_with('#');
        let mut lines = numbered.filter(is_said);
        let mut last = 0;
        let mut next = || {
            let found = lines.next();
            last = found.map_or(last + 1, |(number, _)| number);
            (last, found.map_or("", |(_, line)| line))
        };
        let (line, head) = next();
        if head.trim_end() != HEAD {
            return Err(CalibrationFault::Garbled { line });
        }
        let (line, kernels) = next();
        let mut words = kernels.split_whitespace();
        let found = (words.next(), hexadecimal(&mut words), words.next());
        match found {
            (Some("kernels"), Some(set), None) if set == kernel_set() => {}
            (Some("kernels"), Some(_), None) => return Err(CalibrationFault::OtherKernels),
            _ => return Err(CalibrationFault::Garbled { line }),
        }
        let mut parser = Parser::default();
        loop {
            let (line, said) = next();
            let garbled = CalibrationFault::Garbled { line };
            let mut words = said.split_whitespace();
            if words.next() == Some("sum") {
                let calibration = parser.end();
                let sums = (hexadecimal(&mut words), words.next());
                let is_whole =
                    sums == (Some(sum(&calibration.body())), None) && next().1.is_empty();
                return is_whole.then_some(calibration).ok_or(garbled);
            }
            parser.take(said).ok_or(garbled)?;
        }
    }
}

/// The part that has been read.
#[derive(Default)]
struct Parser {
    devices: Vec<(Chip, Costs)>,
    processor: Option<ProcessorCosts>,
}

impl Parser {
    /// Reads a line. `None` if it is not allowed here.
    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        match (words.next()?, &mut self.processor) {
            ("device", None) => {
                let chip = chip(&mut words)?;
                let is_known = self.devices.iter().any(|(known, _)| *known == chip);
                self.devices.push((chip, Costs::default()));
                (!is_known).then_some(())
            }
            ("call", None) => {
                let (_, costs) = self.devices.last_mut()?;
                let before = costs.call_ns.replace(time(&mut words)?);
                (before.is_none() && words.next().is_none()).then_some(())
            }
            ("kernel", None) => {
                let (_, costs) = self.devices.last_mut()?;
                kernel(&mut words, costs)
            }
            ("processor", None) => {
                let backend = String::from(words.next()?);
                let per_bit_ps = BTreeMap::new();
                self.processor = Some(ProcessorCosts {
                    backend,
                    per_bit_ps,
                });
                words.next().is_none().then_some(())
            }
            ("width", Some(processor)) => {
                let bits = words.next()?.parse().ok()?;
                let before = processor.per_bit_ps.insert(bits, time(&mut words)?);
                (before.is_none() && words.next().is_none()).then_some(())
            }
            _ => None,
        }
    }

    fn end(&mut self) -> Calibration {
        let devices = core::mem::take(&mut self.devices).into_iter();
        Calibration {
            devices: devices
                .map(|(chip, costs)| (chip, Arc::new(costs)))
                .collect(),
            processor: self.processor.take(),
        }
    }
}

fn chip(words: &mut SplitWhitespace<'_>) -> Option<Chip> {
    let (major, minor) = words.next()?.split_once('.')?;
    Some(Chip {
        compute_capability: (major.parse().ok()?, minor.parse().ok()?),
        cuda_version: words.next()?.parse().ok()?,
        multiprocessors: words.next()?.parse().ok()?,
        name: words.by_ref().collect::<Vec<_>>().join(" "),
    })
}

fn kernel(words: &mut SplitWhitespace<'_>, costs: &mut Costs) -> Option<()> {
    let (family, bits, variant) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let key = SHIPPED
        .exponentiating()
        .map(|entry| entry.image.key)
        .find(|key| (key.family, key.bits, key.variant) == (family, bits, variant))?;
    let times = BlockCosts {
        alone_ns: time(words)?,
        shared_ns: time(words)?,
    };
    let before = costs.kernels.insert(key, times);
    (before.is_none() && words.next().is_none()).then_some(())
}

/// A time. Zero is refused.
fn time(words: &mut SplitWhitespace<'_>) -> Option<u64> {
    let time = words.next()?.parse().ok()?;
    (1..=LONGEST_NS).contains(&time).then_some(time)
}

fn hexadecimal(words: &mut SplitWhitespace<'_>) -> Option<u64> {
    u64::from_str_radix(words.next()?, 16).ok()
}

/// FNV-1a of 64 bits, which detects accidental changes.
fn sum(text: &str) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
