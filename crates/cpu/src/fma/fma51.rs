//! The instructions that the kernels are written in.

use zeroize::Zeroize;

/// Bits in a limb.
pub(super) const RADIX_BITS: u32 = 51;
/// Mask of the low bits of a column sum, which form a limb.
pub(super) const MASK: u64 = (1 << RADIX_BITS) - 1;
/// 2^52. Its bit pattern plus an integer below 2^52 is the bit pattern of their sum.
pub(super) const TWO_52: f64 = 4_503_599_627_370_496.0;
/// The constant of the high half of a product, 2^103.
pub(super) const HIGH: f64 = TWO_52 * TWO_52 / 2.0;
/// The constant of the low half of a product, 2^103 + 1.5 * 2^52.
pub(super) const LOW: f64 = HIGH + 1.5 * TWO_52;

/// One limb of four lanes: bit patterns of doubles, or column sums.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
pub(super) struct Limb(pub(super) [u64; 4]);

impl Limb {
    pub(super) const ZERO: Self = Self([0; 4]);
}

impl Zeroize for Limb {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Four lanes of 64 bits and their operations: on AVX2, on NEON, and portably for tests.
pub(super) trait Fma51: Copy {
    /// Four doubles in registers.
    type Floats: Copy;
    /// Four integers modulo 2^64 in registers.
    type Sums: Copy;

    /// Reads limbs.
    fn load(self, limb: &Limb) -> Self::Floats;

    /// Writes limbs.
    fn store(self, limb: &mut Limb, floats: Self::Floats);

    /// Reads column sums.
    fn load_sums(self, limb: &Limb) -> Self::Sums;

    /// Writes column sums.
    fn store_sums(self, limb: &mut Limb, sums: Self::Sums);

    /// The value `value` in every lane.
    fn splat(self, value: u64) -> Self::Sums;

    /// The bit patterns of the high and the low half of `a * b`, as in the module [`fma`](super).
    fn product(self, a: Self::Floats, b: Self::Floats) -> (Self::Sums, Self::Sums);

    /// `2 * a`.
    fn double(self, a: Self::Floats) -> Self::Floats;

    /// `a + b`.
    fn add(self, a: Self::Sums, b: Self::Sums) -> Self::Sums;

    /// `floor(a / 2^51)`.
    fn carry(self, a: Self::Sums) -> Self::Sums;

    /// `a mod 2^51` as a double.
    fn limb(self, a: Self::Sums) -> Self::Floats;

    /// `old`, with `new` or-ed into the lanes whose digit is `entry`.
    fn pick(self, old: Self::Sums, new: &Limb, digits: Self::Sums, entry: u64) -> Self::Sums;

    /// Runs `kernel`, compiled for these instructions.
    fn run<K: Kernel>(self, kernel: K);
}

/// A computation over vectors.
pub(super) trait Kernel {
    /// Must be `#[inline(always)]`, so that it is compiled with the instructions of its caller.
    fn run<T: Fma51>(self, unit: T);
}
