//! Why the machine stopped a kernel.

use core::fmt;

/// What an instruction did that it must not do. The secrets rules come first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// A branch, or the guard of an instruction, depends on a secret: loop bounds are branches too.
    SecretBranch,
    /// Address bits that must be public depend on a secret; `bits` is the mask of those.
    SecretAddress { bits: u64 },
    /// Which lanes of a shared-memory access collide in a bank depends on a secret.
    SecretBankConflict,
    /// The lane that a shuffle reads, or its segment, depends on a secret.
    SecretLane,
    /// The running time of the instruction depends on its operands, and these on a secret.
    SecretLatency,
    /// An access outside every buffer, or across the end of one.
    OutOfBounds { address: u64 },
    /// An access whose address is not a multiple of its size.
    Misaligned { address: u64 },
    /// A read of memory that nothing has written.
    Uninitialised { address: u64 },
    /// A write to a buffer that the kernel may only read.
    ReadOnly { address: u64 },
    /// A shuffle or barrier that names lanes which are elsewhere in the program.
    NotConverged,
    /// Floating-point operands that are infinite or not a number.
    NotFinite,
    /// Two warps use the same shared memory, at least one of them to write, with no barrier between.
    Race { address: u64 },
    /// The program ran for longer than the launch allows.
    TooLong,
}

/// A fault, and where in the PTX it happened.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) fault: Fault,
    /// Line in the PTX file, from 1.
    pub(crate) line: u32,
    /// The instruction as it stands there.
    pub(crate) text: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {:?}", self.line, self.text, self.fault)
    }
}
