//! Errors of modules that cannot be read, and of launches that are refused.

use core::error::Error;
use core::fmt;

use crate::fault::Stop;

/// A place in a PTX module that is invalid or not supported.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PtxError {
    /// Line in the text, from 1.
    pub line: u32,
    /// The text at that place, with single spaces, shortened if it is long.
    pub text: String,
    /// The problem with it.
    pub problem: Problem,
}

/// The problem with a place in a PTX module.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The instruction is not supported: it is not in [`SUPPORTED`](crate::SUPPORTED).
    Instruction,
    /// The operands do not fit the instruction.
    Operands,
    /// The directive is not supported.
    Directive,
    /// A declaration of parameters, registers or shared variables that cannot be read, or whose
    /// type is not supported.
    Declaration,
    /// A number that cannot be read or does not fit 64 bits.
    Number,
    /// No register, shared or global variable or special register has this name. Variables in
    /// constant memory, and global ones whose initial values are not numbers, are not supported.
    UnknownName(String),
    /// The entry point has no such label.
    UnknownLabel(String),
    /// The entry point has no such parameter.
    UnknownParameter(String),
    /// The name has already been declared in this block or an outer one.
    DuplicateName(String),
    /// An unmatched closing brace, or a body without a header.
    Unexpected,
    /// The text ends within a statement or a body. The file may have been cut off.
    EndOfText,
    /// More than the machine accepts of the named thing.
    TooLarge(&'static str),
}

/// A launch that does not fit the kernel or the machine.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LaunchError {
    /// The grid is empty: it needs at least one block.
    NoBlocks,
    /// The number of threads of a block is not a multiple of 32 from 32 to 1,024.
    Threads(u32),
    /// The kernel's `.maxntid` or `.reqntid` forbids this number of threads in a block.
    ThreadBound {
        /// Threads of the launch.
        threads: u32,
        /// The kernel's limit.
        bound: crate::Threads,
    },
    /// More shared memory, static and dynamic together, than a block has on any GPU.
    SharedMemory {
        /// Total number of bytes.
        bytes: usize,
    },
    /// The number of arguments is not that of the kernel's parameters.
    ArgumentCount {
        /// Parameters of the kernel.
        parameters: usize,
        /// Arguments of the launch.
        arguments: usize,
    },
    /// The argument's size is not that of its parameter.
    ArgumentSize {
        /// Number of the parameter, from 0.
        parameter: usize,
        /// Bytes of the parameter.
        bytes: usize,
        /// Bytes of the argument.
        given: usize,
    },
    /// The warps of a block have more registers together than the machine supports.
    Registers {
        /// Registers of all warps of a block.
        registers: usize,
    },
}

/// The reason for a launch that did not run to its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RunError {
    /// The launch was refused.
    Launch(LaunchError),
    /// An instruction violated a rule.
    Stop(Stop),
}

/// The longest text that an error quotes, in bytes.
const QUOTED: usize = 120;

impl PtxError {
    pub(crate) fn new(line: u32, text: &str, problem: Problem) -> Self {
        let text = match text.char_indices().nth(QUOTED) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        };
        Self {
            line,
            text,
            problem,
        }
    }
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.problem, self.text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction => f.write_str("this instruction is not supported"),
            Self::Operands => f.write_str("these operands are not supported"),
            Self::Directive => f.write_str("this directive is not supported"),
            Self::Declaration => f.write_str("cannot read this declaration"),
            Self::Number => f.write_str("cannot read this number"),
            Self::UnknownName(name) => write!(
                f,
                "`{name}` is neither a register nor a variable nor a special register that is supported"
            ),
            Self::UnknownLabel(name) => write!(f, "there is no label `{name}`"),
            Self::UnknownParameter(name) => write!(f, "there is no parameter `{name}`"),
            Self::DuplicateName(name) => write!(f, "`{name}` is declared twice"),
            Self::Unexpected => f.write_str("this belongs to nothing"),
            Self::EndOfText => f.write_str("the text ends before this does"),
            Self::TooLarge(what) => write!(f, "more {what} than the machine takes"),
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBlocks => f.write_str("a grid has at least one block"),
            Self::Threads(threads) => write!(
                f,
                "a block has 32 to 1024 threads, a multiple of 32, not {threads}"
            ),
            Self::ThreadBound { threads, bound } => {
                write!(f, "the kernel takes {bound} in a block, not {threads}")
            }
            Self::SharedMemory { bytes } => write!(
                f,
                "{bytes} bytes of shared memory are more than any GPU has for a block"
            ),
            Self::ArgumentCount {
                parameters,
                arguments,
            } => write!(
                f,
                "the kernel has {parameters} parameters, and {arguments} arguments were given"
            ),
            Self::ArgumentSize {
                parameter,
                bytes,
                given,
            } => write!(
                f,
                "parameter {parameter} has {bytes} bytes, and its argument {given}"
            ),
            Self::Registers { registers } => write!(
                f,
                "the {registers} registers of a block's warps are more than the machine keeps"
            ),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch(error) => error.fmt(f),
            Self::Stop(stop) => stop.fmt(f),
        }
    }
}

impl Error for PtxError {}
impl Error for LaunchError {}
impl Error for RunError {}

impl From<LaunchError> for RunError {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<Stop> for RunError {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
