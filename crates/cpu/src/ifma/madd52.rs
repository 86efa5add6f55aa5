//! The instructions that the kernels are written in.

use zeroize::Zeroize;

/// Bits in a limb.
pub(super) const RADIX_BITS: u32 = 52;

/// The largest number of limbs in a tile, on any unit.
const MAX_TILE: usize = 20;

/// The largest number of lanes in a vector.
pub(super) const MAX_LANES: usize = 8;

/// One limb of all lanes, aligned for fast loads.
pub(crate) trait Limb: Copy + Default + Zeroize + 'static {
    /// The number of lanes.
    const LANES: usize;

    /// Zero in every lane.
    const ZERO: Self;

    /// Zeros for the longest tile.
    const ZEROS: &[Self; MAX_TILE];

    /// A word for each lane, at any address.
    type Words: AsRef<[u64]> + 'static;

    /// Splits words into groups of one for each lane.
    fn chunks(words: &[u64]) -> &[Self::Words];

    /// The values of the lanes.
    fn lanes(&self) -> &[u64];

    /// The values of the lanes, for writing.
    fn lanes_mut(&mut self) -> &mut [u64];
}

/// One limb of eight lanes.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Limb8(pub(super) [u64; 8]);

/// One limb of four lanes.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
pub(crate) struct Limb4(pub(super) [u64; 4]);

impl Limb for Limb8 {
    const LANES: usize = 8;
    const ZERO: Self = Self([0; 8]);
    const ZEROS: &[Self; MAX_TILE] = &[Self::ZERO; MAX_TILE];

    type Words = [u64; 8];

    fn chunks(words: &[u64]) -> &[[u64; 8]] {
        words.as_chunks().0
    }

    fn lanes(&self) -> &[u64] {
        &self.0
    }

    fn lanes_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

impl Limb for Limb4 {
    const LANES: usize = 4;
    const ZERO: Self = Self([0; 4]);
    const ZEROS: &[Self; MAX_TILE] = &[Self::ZERO; MAX_TILE];

    type Words = [u64; 4];

    fn chunks(words: &[u64]) -> &[[u64; 4]] {
        words.as_chunks().0
    }

    fn lanes(&self) -> &[u64] {
        &self.0
    }

    fn lanes_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

impl Zeroize for Limb8 {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Zeroize for Limb4 {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// A family of processors that has its own code for exponentiation in eight lanes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Processor {
    /// Starts one multiply-add of 512 bits a cycle.
    Zen4,
    /// Starts two a cycle, on the ports of all vector operations but plain loads and stores.
    Intel,
    /// A Zen 5, which starts two a cycle and has other ports for the rest; and processors that were
    /// not measured.
    Other,
}

/// Lanes of 64 bits and their operations, each of one or two instructions. AVX-512 has eight lanes,
/// AVX-IFMA four. Tests have a portable version.
pub(crate) trait Madd52: Copy {
    /// The largest tile, in limbs: see [`size`](super::size).
    const MAX_TILE: usize;

    /// Whether [`merge`](Self::merge) needs zeros in `old`.
    const MERGES_INTO_ZERO: bool;

    /// Whether there is code with fewer multiply-adds, for some [processors](Processor).
    const CAN_SAVE_PRODUCTS: bool;

    /// One limb of all lanes, in memory.
    type Limb: Limb;

    /// One limb of all lanes, in a register.
    type Vector: Copy;

    /// A selection of lanes.
    type Mask: Copy;

    /// The processor, for the choice of code.
    fn processor(self) -> Processor;

    /// Zero.
    fn zero(self) -> Self::Vector;

    /// Reads from memory.
    fn load(self, limb: &Self::Limb) -> Self::Vector;

    /// Writes to memory.
    fn store(self, limb: &mut Self::Limb, vector: Self::Vector);

    /// `sum + (a * b mod 2^52)`, where only the low 52 bits of `a` and `b` count. The compiler
    /// keeps multiply-adds in source order.
    fn madd_lo(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `sum + floor(a * b / 2^52)`, with the same rules.
    fn madd_hi(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `floor(a / 2^52)`.
    fn carry(self, a: Self::Vector) -> Self::Vector;

    /// `a / 2^52`, rounded up; `a` is below `2^64 - 2^52`.
    fn carry_of_cleared(self, a: Self::Vector) -> Self::Vector;

    /// `a mod 2^52`.
    fn low(self, a: Self::Vector) -> Self::Vector;

    /// One byte for each lane; bytes beyond the lanes are ignored.
    fn widen(self, bytes: [u8; MAX_LANES]) -> Self::Vector;

    /// The lanes in which `a` equals `b`.
    fn equal(self, a: Self::Vector, b: u64) -> Self::Mask;

    /// `new` in the lanes of `mask`, `old` in the others. If this [needs
    /// zeros](Self::MERGES_INTO_ZERO), `old` must be zero in the lanes of `mask`, or equal `new`.
    fn merge(self, old: Self::Vector, mask: Self::Mask, new: &Self::Limb) -> Self::Vector;

    /// Lane numbers in the form that [`pick`](Self::pick) takes. Each byte is below the number of
    /// lanes.
    fn lane_numbers(self, bytes: [u8; MAX_LANES]) -> Self::Vector;

    /// In the lanes of `mask` the words with the numbers in `lanes`, `old` in the others. Reads all
    /// words and moves them in registers. Needs zeros where [`merge`](Self::merge) does.
    fn pick(
        self,
        old: Self::Vector,
        mask: Self::Mask,
        lanes: Self::Vector,
        words: &<Self::Limb as Limb>::Words,
    ) -> Self::Vector;

    /// The same value in each lane.
    fn splat(self, value: u64) -> Self::Vector;

    /// The same reference, of unknown origin to the compiler. It therefore cannot hoist loads
    /// through it out of a loop, and would only have to spill them: there are more limbs than
    /// registers.
    fn reload<T>(self, reference: &T) -> &T;

    /// Like [`reload`](Self::reload), for a reference to write through.
    fn reload_mut<T>(self, reference: &mut T) -> &mut T;

    /// Runs `kernel`, compiled for these instructions.
    fn run<K: Kernel<Self::Limb>, const B: usize>(self, kernel: &mut K);
}

/// A computation over vectors and tiles of `B` limbs. It is passed by reference: a copy would wait
/// for values that were just written.
pub(crate) trait Kernel<L: Limb> {
    /// Must be `#[inline(always)]`, so that it is compiled with the instructions of its caller.
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, unit: T);
}
