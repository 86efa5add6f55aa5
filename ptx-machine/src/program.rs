//! Instructions on numbered registers, the output of the decoder and the input of the machine.
//!
//! Constants, special registers and addresses of shared variables are registers too, which are set
//! once. Every operand is therefore a register number.

use crate::memory::Variables;
use crate::module::{Parameter, Threads};

/// A decoded entry point.
pub struct Program {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) threads: Option<Threads>,
    /// The offset of dynamic shared memory.
    pub(crate) dynamic_start: usize,
    /// The instructions. The last one ends the kernel.
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) register_count: usize,
    pub(crate) constants: Vec<(Reg, u64)>,
    pub(crate) specials: Vec<(Reg, Special)>,
    /// The variables of the module that the program uses.
    pub(crate) variables: Variables,
    /// For each instruction the number of its statement.
    pub(crate) origins: Vec<usize>,
    /// Line and text of each statement.
    pub(crate) statements: Vec<(u32, String)>,
}

impl Program {
    /// The name of the entry point.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A register number.
pub(crate) type Reg = usize;

/// Registers that the launch sets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    ThreadInBlock,
    ThreadsPerBlock,
    Block,
    Blocks,
    Lane,
}

pub(crate) struct Instruction {
    /// The register of the predicate, and the value that makes a lane active.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) op: Op,
    /// The registers that it reads, as from [`Op::registers`].
    pub(crate) reads: Vec<Reg>,
    pub(crate) writes: Vec<Reg>,
}

impl Instruction {
    pub(crate) fn new(guard: Option<(Reg, bool)>, op: Op) -> Self {
        let (reads, writes) = op.registers();
        Self {
            guard,
            op,
            reads,
            writes,
        }
    }
}

/// A product of bytes on tensor cores: `wgmma.mma_async` of 64 rows by 32 by 8 columns for every
/// four sums.
pub(crate) struct MatrixProduct {
    /// The sums of a lane, to which the products are added.
    pub(crate) sums: Vec<Reg>,
    /// The bytes of its rows.
    pub(crate) rows: [Reg; 4],
    /// The descriptor of the other factor, in shared memory.
    pub(crate) matrix: Reg,
    /// Whether the sums keep their values, instead of starting from 0.
    pub(crate) keep: Reg,
}

/// A synchronous product of bytes on tensor cores: `mma.sync` of 16 rows by 32 by 8 columns.
pub(crate) struct WarpProduct {
    /// The sums of a lane.
    pub(crate) to: [Reg; 4],
    /// The bytes of its rows.
    pub(crate) rows: [Reg; 4],
    /// The bytes of its column.
    pub(crate) column: [Reg; 2],
    /// The addends of the products.
    pub(crate) from: [Reg; 4],
}

/// A copy from global to shared memory that arrives at a barrier: `cp.async.bulk`.
pub(crate) struct BulkCopy {
    pub(crate) to: Place,
    pub(crate) from: Place,
    pub(crate) bytes: Reg,
    pub(crate) barrier: Place,
}

pub(crate) enum Op {
    Binary(Binary, Width, [Reg; 3]),
    /// Shift right, keeping the sign.
    ShiftRightSigned(Width, [Reg; 3]),
    /// `to, from`: converts from this many bits, with optional sign extension.
    Convert {
        to: Reg,
        from: Reg,
        bits: u32,
        signed: bool,
        width: Width,
    },
    Pack {
        to: Reg,
        low: Reg,
        high: Reg,
    },
    Unpack {
        low: Option<Reg>,
        high: Option<Reg>,
        from: Reg,
    },
    /// `to, if set, if clear, predicate`
    Select(Width, [Reg; 4]),
    /// `to, field, rest, position, length`
    InsertField(Width, [Reg; 5]),
    /// `to, from, position, length`
    ExtractField(Width, [Reg; 4]),
    Compare {
        comparison: Comparison,
        signed: bool,
        width: Width,
        to: Reg,
        a: Reg,
        b: Reg,
    },
    /// `to, a, b, c`: `a * b + c` toward zero.
    FmaTowardZero([Reg; 4]),
    /// `to, a, b`
    Float(Float, [Reg; 3]),
    /// `to, from`: turns the sign.
    NegateFloat([Reg; 2]),
    /// `to, from`: a 64-bit integer as a double, to nearest.
    ToDouble {
        to: Reg,
        from: Reg,
        signed: bool,
    },
    Parameter {
        to: Reg,
        bytes: usize,
        offset: u64,
    },
    Load(Access),
    Store(Access),
    /// Prefetches from a global address, and changes nothing.
    Prefetch {
        base: Reg,
        offset: i64,
    },
    Shuffle {
        mode: Shuffle,
        to: Reg,
        valid: Option<Reg>,
        from: Reg,
        lane: Reg,
        clamp: Reg,
        members: Reg,
    },
    Branch {
        target: usize,
    },
    Exit,
    BlockBarrier,
    WarpBarrier {
        members: Reg,
    },
    /// `to, low, high, selector`: four of eight bytes.
    Permute([Reg; 4]),
    MatrixProduct(Box<MatrixProduct>),
    WarpProduct(Box<WarpProduct>),
    /// Orders register accesses before the matrix products that follow.
    MatrixFence,
    /// Closes a group of matrix products.
    MatrixCommit,
    /// Waits for all groups except the last `pending`.
    MatrixWait {
        pending: usize,
    },
    /// Makes stores to these kinds of memory visible to matrix products and bulk copies.
    ProxyFence {
        global: bool,
        shared: bool,
    },
    /// Makes a barrier for bulk copies, with one arrival in each phase.
    InitBarrier(Place),
    /// Arrives at a barrier, whose phase expects this many bytes more.
    ExpectCopies {
        barrier: Place,
        bytes: Reg,
    },
    /// Waits for the phase of this parity.
    WaitForCopies {
        complete: Reg,
        barrier: Place,
        parity: Reg,
    },
    BulkCopy(Box<BulkCopy>),
}

impl Op {
    /// The registers that it reads, and those that it writes, other than the sums and rows of a
    /// matrix product.
    pub(crate) fn registers(&self) -> (Vec<Reg>, Vec<Reg>) {
        match *self {
            Self::Binary(_, _, [to, a, b])
            | Self::ShiftRightSigned(_, [to, a, b])
            | Self::Float(_, [to, a, b])
            | Self::Compare { to, a, b, .. }
            | Self::Pack {
                to,
                low: a,
                high: b,
            } => (vec![a, b], vec![to]),
            Self::Convert { to, from, .. }
            | Self::NegateFloat([to, from])
            | Self::ToDouble { to, from, .. } => (vec![from], vec![to]),
            Self::Unpack { low, high, from } => (vec![from], low.into_iter().chain(high).collect()),
            Self::Select(_, [to, a, b, c])
            | Self::ExtractField(_, [to, a, b, c])
            | Self::FmaTowardZero([to, a, b, c])
            | Self::Permute([to, a, b, c]) => (vec![a, b, c], vec![to]),
            Self::InsertField(_, [to, a, b, c, d]) => (vec![a, b, c, d], vec![to]),
            Self::Parameter { to, .. } => (vec![], vec![to]),
            Self::Load(ref access) => (vec![access.base], access.values.clone()),
            Self::Store(ref access) => ([&[access.base], &access.values[..]].concat(), vec![]),
            Self::Prefetch { base, .. } => (vec![base], vec![]),
            Self::Shuffle {
                to,
                valid,
                from,
                lane,
                clamp,
                members,
                ..
            } => {
                let written = [to].into_iter().chain(valid).collect();
                (vec![from, lane, clamp, members], written)
            }
            Self::WarpBarrier { members } => (vec![members], vec![]),
            Self::MatrixProduct(ref product) => (vec![product.matrix, product.keep], vec![]),
            Self::WarpProduct(ref product) => {
                let read = [&product.rows[..], &product.column, &product.from].concat();
                (read, product.to.to_vec())
            }
            Self::InitBarrier(place) => (vec![place.base], vec![]),
            Self::ExpectCopies { barrier, bytes } => (vec![barrier.base, bytes], vec![]),
            Self::WaitForCopies {
                complete,
                barrier,
                parity,
            } => (vec![barrier.base, parity], vec![complete]),
            Self::BulkCopy(ref copy) => {
                let places = [copy.to.base, copy.from.base, copy.barrier.base, copy.bytes];
                (places.to_vec(), vec![])
            }
            Self::Branch { .. }
            | Self::Exit
            | Self::BlockBarrier
            | Self::MatrixFence
            | Self::MatrixCommit
            | Self::MatrixWait { .. }
            | Self::ProxyFence { .. } => (vec![], vec![]),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Binary {
    Add,
    Sub,
    MulLow,
    MulHigh64,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    /// The running time of a division depends on its operands.
    DivUnsigned,
    RemUnsigned,
    DivSigned,
    RemSigned,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Float {
    AddToNearest,
    SubToNearest,
    MulToNearest,
    AddTowardZero,
    SubTowardZero,
    MulTowardZero,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

/// The width of an integer operation in bits; 1 for predicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Width(pub(crate) u32);

impl Width {
    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Space {
    Global,
    Shared,
}

/// An address: a register and a constant.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// A load or store of 1, 2 or 4 consecutive elements.
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) values: Vec<Reg>,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}
