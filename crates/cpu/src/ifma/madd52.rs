//! The instructions that the kernels are written in.

use zeroize::Zeroize;

use super::tuning::Tuning;

/// Bits in a limb.
pub(super) const RADIX_BITS: u32 = 52;

/// The most limbs that a block has, on any unit.
const MAX_BLOCK: usize = 20;

/// The most lanes that a vector has.
pub(super) const MAX_LANES: usize = 8;

/// One limb of all lanes, aligned as the processor loads it best.
pub(crate) trait Limb: Copy + Default + Zeroize + 'static {
    /// The number of lanes.
    const LANES: usize;

    /// Zero in every lane.
    const ZERO: Self;

    /// As many zeros as a block may have limbs.
    const ZEROS: &[Self; MAX_BLOCK];

    /// A word for each lane, anywhere in memory.
    type Words: AsRef<[u64]> + 'static;

    /// Cuts words into those for each lane.
    fn chunks(words: &[u64]) -> &[Self::Words];

    /// The value of each lane.
    fn lanes(&self) -> &[u64];

    /// The value of each lane, to be changed.
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
    const ZEROS: &[Self; MAX_BLOCK] = &[Self::ZERO; MAX_BLOCK];

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
    const ZEROS: &[Self; MAX_BLOCK] = &[Self::ZERO; MAX_BLOCK];

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

/// Lanes of 64 bits and what can be done with them, by one instruction each or two. AVX-512 has eight of them, AVX-IFMA
/// has four; the tests have a portable version.
pub(crate) trait Madd52: Copy {
    /// The largest block, in limbs: see [`size`](super::size).
    const MAX_BLOCK: usize;

    /// Whether [`merge`](Self::merge) needs zeros in `old`.
    const MERGES_INTO_ZERO: bool;

    /// Whether there is code that does with fewer multiply-adds: see [`tuning`](Self::tuning).
    const CAN_SAVE_PRODUCTS: bool;

    /// One limb of all lanes, in memory.
    type Limb: Limb;

    /// The same in a register.
    type Vector: Copy;

    /// A choice of lanes.
    type Mask: Copy;

    /// The tuning for this processor.
    fn tuning(self) -> Tuning;

    /// Zero.
    fn zero(self) -> Self::Vector;

    /// Reads from memory.
    fn load(self, limb: &Self::Limb) -> Self::Vector;

    /// Writes to memory.
    fn store(self, limb: &mut Self::Limb, vector: Self::Vector);

    /// `sum + (a * b mod 2^52)`, where `a` and `b` count modulo 2^52. The compiler leaves multiply-adds in the order in
    /// which they are written.
    fn madd_lo(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `sum + floor(a * b / 2^52)`, likewise.
    fn madd_hi(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `floor(a / 2^52)`.
    fn carry(self, a: Self::Vector) -> Self::Vector;

    /// `a / 2^52`, rounded up; `a` is below `2^64 - 2^52`.
    fn carry_of_cleared(self, a: Self::Vector) -> Self::Vector;

    /// `a mod 2^52`.
    fn low(self, a: Self::Vector) -> Self::Vector;

    /// Each byte in a lane; bytes beyond the lanes count for nothing.
    fn widen(self, bytes: [u8; MAX_LANES]) -> Self::Vector;

    /// The lanes in which `a` is `b`.
    fn equal(self, a: Self::Vector, b: u64) -> Self::Mask;

    /// `old`, but `new` in the lanes of `mask`. Where this [needs zeros](Self::MERGES_INTO_ZERO), `old` is zero in those
    /// lanes, or is `new` already.
    fn merge(self, old: Self::Vector, mask: Self::Mask, new: &Self::Limb) -> Self::Vector;

    /// Numbers of lanes, as [`pick`](Self::pick) wants them. A byte is below the number of lanes.
    fn lane_numbers(self, bytes: [u8; MAX_LANES]) -> Self::Vector;

    /// `old`, but in the lanes of `mask` the words whose numbers `lanes` has. All words are read, and moved in registers. Where
    /// [`merge`](Self::merge) needs zeros, this does too.
    fn pick(
        self,
        old: Self::Vector,
        mask: Self::Mask,
        lanes: Self::Vector,
        words: &<Self::Limb as Limb>::Words,
    ) -> Self::Vector;

    /// `limb` becomes `new` in the lanes of `mask`. The address does not depend on the mask, nor does the time, if the page was
    /// written before.
    #[inline(always)]
    fn replace(self, limb: &mut Self::Limb, mask: Self::Mask, new: &Self::Limb) {
        let merged = self.merge(self.load(limb), mask, new);
        self.store(limb, merged);
    }

    /// The same value in each lane.
    fn splat(self, value: u64) -> Self::Vector;

    /// The same reference, of unknown origin to the compiler, which therefore cannot hoist loads
    /// through it out of a loop. It would have to spill them again: there are more limbs than registers.
    fn reload<T>(self, reference: &T) -> &T;

    /// The same of a reference to write through.
    fn reload_mut<T>(self, reference: &mut T) -> &mut T;

    /// Runs `kernel` compiled for these instructions.
    fn run<K: Kernel<Self::Limb>, const B: usize>(self, kernel: &mut K);
}

/// A computation over vectors and blocks of `B` limbs. It is passed on by reference: a copy of what has just been written
/// would wait for it.
pub(crate) trait Kernel<L: Limb> {
    /// Must be `#[inline(always)]`, to be compiled with the instructions of its caller.
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, unit: T);
}
