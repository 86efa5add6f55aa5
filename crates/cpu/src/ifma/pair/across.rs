//! Instructions across lanes, which pairs need besides those of one instance per lane.

use zeroize::Zeroize;

use crate::ifma::madd52::{Limb8, Madd52};

/// One limb of both instances: two neighbouring lanes of a vector.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C, align(16))]
pub(crate) struct Pair(pub(super) [u64; 2]);

impl Pair {
    pub(super) const ZERO: Self = Self([0; 2]);
}

impl Zeroize for Pair {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Operations that move pairs within a vector of four pairs, lowest first.
pub(crate) trait Across: Madd52<Limb = Limb8> {
    /// Writes a vector; the address needs only the alignment of a pair.
    fn store_pairs(self, pairs: &mut [Pair; 4], vector: Self::Vector);

    /// Reads a vector from four places.
    fn gather(self, pairs: [&Pair; 4]) -> Self::Vector;

    /// Writes a vector to four places.
    fn scatter(self, pairs: [&mut Pair; 4], vector: Self::Vector);

    /// The same pair four times.
    fn spread(self, pair: &Pair) -> Self::Vector;

    /// The lowest pair four times.
    fn spread_lowest(self, a: Self::Vector) -> Self::Vector;

    /// The lowest pair, and zeros above it.
    fn lowest(self, a: Self::Vector) -> Self::Vector;

    /// Each pair one position lower; the highest becomes zero.
    fn down(self, a: Self::Vector) -> Self::Vector;

    /// Each pair one position higher; the lowest becomes zero.
    fn up(self, a: Self::Vector) -> Self::Vector;

    /// `2^52 - 1` in the lanes where `bit` is 1; zero where it is 0.
    fn mask_of(self, bit: Self::Vector) -> Self::Vector;

    /// `a & b`.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `new` in the lanes whose digit is `entry`, `old` in the others.
    fn pick_pairs(
        self,
        old: Self::Vector,
        new: &[Pair; 4],
        digits: Self::Vector,
        entry: u64,
    ) -> Self::Vector;

    /// Runs `kernel`, compiled for these instructions.
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K);
}

/// A computation over numbers whose quarters have `J` limbs.
pub(crate) trait PairKernel {
    /// Must be `#[inline(always)]`, so that it is compiled with the instructions of its caller.
    fn run<T: Across, const J: usize>(self, unit: T);
}
