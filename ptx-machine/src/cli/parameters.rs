//! Kernel parameters on the command line, and the launch arguments made from them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;

use ptx_machine::{Argument, Entry, Global, Parameter, Pointer};

use super::args::CheckArgs;
use super::failure::Failure;
use super::file;

/// A parameter's number and its value: `N=VALUE`.
#[derive(Clone, Debug)]
pub struct Numbered<T> {
    pub number: usize,
    pub value: T,
}

/// The contents of a buffer.
#[derive(Clone, Debug)]
pub enum Contents {
    Out(usize),
    Zero(usize),
    Random(usize),
    File(PathBuf),
}

/// A place that must not hold secrets at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Parameter(usize),
    Shared,
    Variables,
}

/// The arguments of a launch, and its buffers.
pub struct Bound {
    pub arguments: Vec<Argument>,
    pub global: Global,
    /// For each parameter its buffer, if it has one.
    pub buffers: Vec<Option<Pointer>>,
}

/// The maximum size of all buffers in bytes. The machine needs three bytes for each.
const MAX_BYTES: usize = 256 << 20;

/// Sets the value of every parameter of `entry`.
pub fn bind(entry: &Entry, args: &CheckArgs) -> Result<Bound, Failure> {
    let parameters = entry.parameters();
    let scalars = by_number("--arg", &args.arg, parameters.len())?;
    let contents = by_number("--buffer", &args.buffer, parameters.len())?;
    for number in &args.secret {
        match contents.get(number) {
            None => return Err(no_buffer("--secret", *number)),
            Some(Contents::Out(_)) => {
                return Err(Failure::Usage(format!(
                    "--secret {number}: an `out` buffer holds nothing yet"
                )));
            }
            Some(_) => {}
        }
    }
    for place in &args.wiped {
        match place {
            Place::Parameter(number) if !contents.contains_key(number) => {
                return Err(no_buffer("--wiped", *number));
            }
            _ => {}
        }
    }
    let mut bound = Bound {
        arguments: Vec::new(),
        global: Global::default(),
        buffers: Vec::new(),
    };
    let mut bytes = 0;
    for (number, parameter) in parameters.iter().enumerate() {
        let (argument, buffer) = match (scalars.get(&number), contents.get(&number)) {
            (Some(value), None) => (scalar(number, parameter, **value)?, None),
            (None, Some(contents)) if parameter.bytes == 8 => {
                let secret = args.secret.contains(&number);
                let seed = args.seed.wrapping_add(number as u64);
                let pointer = buffer(contents, secret, seed, &mut bound.global, &mut bytes)?;
                (Argument::Pointer(pointer), Some(pointer))
            }
            (None, Some(_)) => {
                return Err(Failure::Usage(format!(
                    "--buffer {number}: parameter {number} is a {}, no pointer",
                    parameter.kind
                )));
            }
            (Some(_), Some(_)) => {
                return Err(Failure::Usage(format!(
                    "parameter {number} has both --arg and --buffer"
                )));
            }
            (None, None) => {
                return Err(Failure::Usage(format!(
                    "parameter {number} ({}, {}) needs --arg {number}=NUMBER or --buffer {number}=CONTENTS",
                    parameter.kind, parameter.name
                )));
            }
        };
        bound.arguments.push(argument);
        bound.buffers.push(buffer);
    }
    Ok(bound)
}

fn no_buffer(option: &str, number: usize) -> Failure {
    Failure::Usage(format!(
        "{option} {number}: parameter {number} has no --buffer"
    ))
}

fn by_number<'a, T>(
    option: &str,
    values: &'a [Numbered<T>],
    count: usize,
) -> Result<HashMap<usize, &'a T>, Failure> {
    let mut found = HashMap::new();
    for Numbered { number, value } in values {
        if *number >= count {
            return Err(Failure::Usage(format!(
                "{option} {number}: the entry point has {count} parameters, counted from 0"
            )));
        }
        if found.insert(*number, value).is_some() {
            return Err(Failure::Usage(format!("{option} {number} is there twice")));
        }
    }
    Ok(found)
}

fn scalar(number: usize, parameter: &Parameter, value: i128) -> Result<Argument, Failure> {
    let bits = 8 * parameter.bytes as u32;
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(Failure::Usage(format!(
            "--arg {number}: parameter {number} is a {}, no number",
            parameter.kind
        )));
    }
    if value < -(1 << (bits - 1)) || value >= 1 << bits {
        return Err(Failure::Usage(format!(
            "--arg {number}: {value} does not fit {}",
            parameter.kind
        )));
    }
    // Negative numbers in two's complement.
    Ok(match bits {
        8 => Argument::U8(value as u8),
        16 => Argument::U16(value as u16),
        32 => Argument::U32(value as u32),
        _ => Argument::U64(value as u64),
    })
}

fn buffer(
    contents: &Contents,
    secret: bool,
    seed: u64,
    global: &mut Global,
    total: &mut usize,
) -> Result<Pointer, Failure> {
    let left = MAX_BYTES - *total;
    let checked = |bytes: usize| match bytes <= left {
        true => Ok(bytes),
        false => Err(Failure::Usage(format!(
            "the buffers have more than {MAX_BYTES} bytes together"
        ))),
    };
    let pointer = match contents {
        Contents::Out(bytes) => global.uninitialised(checked(*bytes)?),
        Contents::Zero(bytes) => global.with_bytes(vec![0; checked(*bytes)?], secret),
        Contents::Random(bytes) => global.with_bytes(random(checked(*bytes)?, seed), secret),
        Contents::File(path) => global.with_bytes(file::bytes(path, left)?, secret),
    };
    *total += global.buffer(pointer).len();
    Ok(pointer)
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Any
/// distinct-looking bytes will do.
fn random(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0xd134_2543_de82_ef95);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut random = Vec::with_capacity(bytes.next_multiple_of(8));
    while random.len() < bytes {
        random.extend(next().to_le_bytes());
    }
    random.truncate(bytes);
    random
}

impl<T: FromValue> FromStr for Numbered<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, value) = text.split_once('=').ok_or("there is no `=`")?;
        Ok(Self {
            number: number
                .parse()
                .map_err(|_| "a parameter's number, from 0, goes before the `=`")?,
            value: T::from_value(value)?,
        })
    }
}

/// A type that can be parsed from the text after the `=`.
pub trait FromValue: Sized {
    fn from_value(text: &str) -> Result<Self, String>;
}

impl FromValue for i128 {
    fn from_value(text: &str) -> Result<Self, String> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let magnitude = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let magnitude = magnitude.map_err(|_| format!("`{text}` is no number of 64 bits"))?;
        Ok(sign * Self::from(magnitude))
    }
}

impl FromValue for Contents {
    fn from_value(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let bytes = || {
            let bytes = rest.parse();
            bytes.map_err(|_| format!("`{rest}` is no number of bytes"))
        };
        match kind {
            "out" => Ok(Self::Out(bytes()?)),
            "zero" => Ok(Self::Zero(bytes()?)),
            "random" => Ok(Self::Random(bytes()?)),
            "file" if !rest.is_empty() => Ok(Self::File(rest.into())),
            _ => {
                Err("the contents are out:BYTES, zero:BYTES, random:BYTES or file:PATH".to_owned())
            }
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "shared" => Ok(Self::Shared),
            "variables" => Ok(Self::Variables),
            _ => text
                .parse()
                .map(Self::Parameter)
                .map_err(|_| "a parameter's number, from 0, or `shared` or `variables`".to_owned()),
        }
    }
}
