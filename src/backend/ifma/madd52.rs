//! The instructions that the kernels are written in.

use zeroize::Zeroize;

/// Bits in a limb.
pub(super) const RADIX_BITS: u32 = 52;

/// One limb of eight lanes, aligned as the processor loads it best.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Limb(pub(super) [u64; 8]);

impl Limb {
    pub(super) const ZERO: Self = Self([0; 8]);
}

impl Zeroize for Limb {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Eight lanes of 64 bits and what can be done with them. AVX-512 has one instruction for each; the
/// tests have a portable version.
pub(super) trait Madd52: Copy {
    /// Eight lanes in a register.
    type Vector: Copy;

    /// A choice of lanes.
    type Mask: Copy;

    /// Zero.
    fn zero(self) -> Self::Vector;

    /// Reads from memory.
    fn load(self, limb: &Limb) -> Self::Vector;

    /// Writes to memory.
    fn store(self, limb: &mut Limb, vector: Self::Vector);

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

    /// Each byte in a lane.
    fn widen(self, bytes: [u8; 8]) -> Self::Vector;

    /// The lanes in which `a` is `b`.
    fn equal(self, a: Self::Vector, b: u64) -> Self::Mask;

    /// `old`, but `new` in the lanes of `mask`.
    fn merge(self, old: Self::Vector, mask: Self::Mask, new: &Limb) -> Self::Vector;

    /// The same reference, of unknown origin to the compiler, which therefore cannot hoist loads
    /// through it out of a loop. It would have to spill them again: there are more limbs than registers.
    fn reload<T>(self, reference: &T) -> &T;

    /// Runs `kernel` compiled for these instructions.
    fn run<K: Kernel, const B: usize>(self, kernel: &mut K);
}

/// A computation over vectors and blocks of `B` limbs. It is passed on by reference: a copy of what has just been written
/// would wait for it.
pub(super) trait Kernel {
    /// Must be `#[inline(always)]`, to be compiled with the instructions of its caller.
    fn run<T: Madd52, const B: usize>(&mut self, unit: T);
}
