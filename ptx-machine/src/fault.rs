//! Faults that stop a kernel.

use core::error::Error;
use core::fmt;

use crate::memory::Pointer;

/// A rule that an instruction violated. The rules for secrets come first.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// A branch or the guard of an instruction depends on a secret. Loop bounds are branches.
    SecretBranch,
    /// The address of a load or store depends on a secret, in any kind of memory.
    SecretAddress {
        /// The bits of the address that depend on a secret.
        bits: u64,
    },
    /// A shuffle's source lane or segment, or the lanes that a barrier names, depend on a secret.
    SecretLane,
    /// The operands of an instruction of variable time depend on a secret.
    SecretLatency,
    /// An access outside all buffers, or across the end of one.
    OutOfBounds(Location),
    /// An access whose address is not a multiple of its size. For a bulk copy, addresses or a size
    /// that are not multiples of 16, or no bytes.
    Misaligned(Location),
    /// A read of memory that has not been written.
    Uninitialised(Location),
    /// A write to a read-only buffer.
    ReadOnly(Location),
    /// Two warps access the same shared memory without a barrier in between, and at least one of
    /// them writes.
    Race(Location),
    /// A shuffle or barrier names lanes that are elsewhere in the program. Or a matrix product or a
    /// wait for copies runs in part of a warp. Or the block of a product has no whole warpgroups.
    NotConverged,
    /// A register of a matrix product is used before the warp has waited for the product, or the
    /// warp reaches a barrier of the block or its end before that.
    InFlight,
    /// A matrix product uses registers that were written after the last `wgmma.fence`.
    Unfenced,
    /// A matrix product or bulk copy reads or overwrites memory that ordinary stores have written,
    /// without a `fence.proxy.async` of all lanes after them.
    Unseen(Location),
    /// A warp accesses shared memory that a bulk copy writes, and has not waited for the copy. Or
    /// no warp has waited for it at the end of the block.
    CopyInFlight(Location),
    /// A barrier for bulk copies is not initialised, is initialised twice, or is accessed as
    /// ordinary memory. Or it gets a second arrival in a phase, or impossible numbers. Or a warp
    /// uses it that has not waited for every phase before.
    CopyBarrier(Location),
    /// All warps that have not ended wait for others or for bulk copies, and no copy is under way.
    NeverCompletes,
    /// A matrix product uses a matrix layout that is not supported.
    MatrixLayout,
    /// A floating-point operand or result is infinite or not a number.
    NotFinite,
    /// The launch exceeds the instruction limit [`Launch::max_steps`](crate::Launch::max_steps).
    TooLong,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Location {
    /// In the parameters of the kernel, at this byte.
    Parameters(u64),
    /// In the shared memory of the block, at this byte.
    Shared(u64),
    /// In or behind a buffer, at this byte of it.
    Buffer(Pointer, u64),
    /// In or behind a global variable of the module, at this byte of it.
    Variable(u64),
    /// At a global address outside all buffers.
    Nowhere(u64),
}

/// A fault, and the place where it happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stop {
    /// The violated rule.
    pub fault: Fault,
    /// The name of the entry point.
    pub entry: String,
    /// Line in the PTX, from 1.
    pub line: u32,
    /// The instruction in the text, with single spaces.
    pub text: String,
    /// The block, from 0.
    pub block: u32,
    /// The warp in the block, from 0.
    pub warp: u32,
    /// The first lane at fault, from 0. `None` if the fault is that of the warp: taint is kept for
    /// all lanes of a warp together.
    pub lane: Option<u32>,
}

impl Fault {
    /// Whether the fault reveals a secret.
    #[must_use]
    pub fn is_leak(&self) -> bool {
        matches!(
            self,
            Self::SecretBranch
                | Self::SecretAddress { .. }
                | Self::SecretLane
                | Self::SecretLatency
        )
    }

    /// The place in memory, for faults that have one.
    #[must_use]
    pub fn location(&self) -> Option<Location> {
        match *self {
            Self::OutOfBounds(location)
            | Self::Misaligned(location)
            | Self::Uninitialised(location)
            | Self::ReadOnly(location)
            | Self::Unseen(location)
            | Self::CopyInFlight(location)
            | Self::CopyBarrier(location)
            | Self::Race(location) => Some(location),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SecretBranch => f.write_str("a branch or guard depends on a secret"),
            Self::SecretAddress { bits } => {
                write!(f, "an address depends on a secret, in the bits {bits:#x}")
            }
            Self::SecretLane => f.write_str("the lanes that take part depend on a secret"),
            Self::SecretLatency => f.write_str("the running time depends on a secret operand"),
            Self::OutOfBounds(place) => write!(f, "an access out of bounds, {place}"),
            Self::Misaligned(place) => write!(f, "an access that is not aligned, {place}"),
            Self::Uninitialised(place) => {
                write!(f, "a read of memory that was never written, {place}")
            }
            Self::ReadOnly(place) => write!(f, "a write to read-only memory, {place}"),
            Self::Race(place) => write!(f, "two warps race, {place}"),
            Self::NotConverged => {
                f.write_str("a shuffle or barrier names lanes that are elsewhere in the program")
            }
            Self::InFlight => f.write_str("a matrix product has not been waited for"),
            Self::Unfenced => {
                f.write_str("a matrix product on registers that were written after the last fence")
            }
            Self::Unseen(place) => write!(
                f,
                "a matrix product or copy of what was stored with no fence between, {place}"
            ),
            Self::CopyInFlight(place) => {
                write!(f, "a copy has not been waited for, {place}")
            }
            Self::CopyBarrier(place) => write!(f, "a barrier for copies is misused, {place}"),
            Self::NeverCompletes => f.write_str("a wait for a copy that never completes"),
            Self::MatrixLayout => f.write_str("a layout of a matrix that is not known"),
            Self::NotFinite => f.write_str("a number that is infinite or not a number"),
            Self::TooLong => f.write_str("more steps than the launch allows"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameters(byte) => write!(f, "at byte {byte} of the parameters"),
            Self::Shared(byte) => write!(f, "at byte {byte} of shared memory"),
            Self::Buffer(buffer, byte) => {
                write!(f, "at byte {byte} of buffer {}", buffer.index())
            }
            Self::Variable(byte) => write!(f, "at byte {byte} of a variable of the module"),
            Self::Nowhere(address) => write!(f, "at {address:#x}, where no buffer is"),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fault,
            entry,
            line,
            text,
            block,
            warp,
            lane,
        } = self;
        write!(
            f,
            "{entry}, line {line}: {fault}: {text} (block {block}, warp {warp}"
        )?;
        match lane {
            Some(lane) => write!(f, ", lane {lane})"),
            None => write!(f, ")"),
        }
    }
}

impl Error for Stop {}
