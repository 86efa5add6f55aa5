//! The instructions that the kernels are written in, and the division of numbers into tiles.
//!
//! A *tile* is a group of limbs whose column sums fit into the vector registers. A tile
//! multiplication keeps one column sum for each limb of a tile in registers, and needs up to eight
//! more. A tile therefore has up to [`Madd52::MAX_TILE`] limbs: 20 with the 32 registers of
//! AVX-512, 10 with 16 registers.

use zeroize::Zeroize;

use crate::lanes::MAX_LANES;

/// Bits in a limb.
pub(super) const RADIX_BITS: u32 = 52;

/// The largest number of limbs in a tile, on any unit.
const MAX_TILE: usize = 20;

/// One limb of all lanes, aligned for fast loads.
pub(crate) trait LaneLimb: Copy + Default + Zeroize + 'static {
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

impl LaneLimb for Limb8 {
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

impl LaneLimb for Limb4 {
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
    /// The largest tile, in limbs.
    const MAX_TILE: usize;

    /// Whether [`merge`](Self::merge) needs zeros in `old`.
    const MERGES_INTO_ZERO: bool;

    /// Whether there is code with fewer multiply-adds, for some [processors](Processor).
    const CAN_SAVE_PRODUCTS: bool;

    /// One limb of all lanes, in memory.
    type Limb: LaneLimb;

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
        words: &<Self::Limb as LaneLimb>::Words,
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
pub(crate) trait Kernel<L: LaneLimb> {
    /// Must be `#[inline(always)]`, so that it is compiled with the instructions of its caller.
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, unit: T);
}

/// The number of limbs for moduli of `bits` bits. It is the smallest that gives a whole number of
/// equal tiles and `2^(52 * limbs) > 4 * modulus`. This adds at most one limb for each tile.
pub(super) fn limb_count<T: Madd52>(bits: u32) -> usize {
    let needed = (bits + 2).div_ceil(RADIX_BITS).max(2) as usize;
    needed.next_multiple_of(count_of_tiles::<T>(needed))
}

/// The number of tiles of a number of `limbs` limbs.
fn count_of_tiles<T: Madd52>(limbs: usize) -> usize {
    limbs.div_ceil(T::MAX_TILE)
}

/// The number of limbs in each tile of a number of `limbs` limbs.
pub(super) fn tile_len<T: Madd52>(limbs: usize) -> usize {
    // Without a division where it would take longest beside the kernel.
    match count_of_tiles::<T>(limbs) {
        1 => limbs,
        2 => limbs / 2,
        count => limbs / count,
    }
}

/// Whether entries may have halves with tiles of this length. Only for tiles of 15 or 20 limbs, such
/// as those of moduli of 768, 1024, 1536 and 2048 bits, to limit the code that is compiled again.
pub(super) const fn may_have_halves<T: Madd52>(tile: usize) -> bool {
    T::CAN_SAVE_PRODUCTS && tile >= 15 && tile.is_multiple_of(5)
}

/// Whether there is code that squares numbers of one such tile with their columns in registers: for
/// the tiles with [halves](may_have_halves), and for moduli of 512 and 768 bits.
pub(super) const fn keeps_columns<T: Madd52>(tile: usize) -> bool {
    T::CAN_SAVE_PRODUCTS && tile >= 10 && tile.is_multiple_of(5)
}

/// Whether numbers of `limbs` limbs are squared so.
pub(super) fn is_squared_in_registers<T: Madd52>(limbs: usize) -> bool {
    limbs <= T::MAX_TILE && keeps_columns::<T>(limbs)
}

/// Runs `kernel` with the tile length of operands of `limbs` limbs, a number that [`limb_count`]
/// gave.
pub(super) fn dispatch<T: Madd52, K: Kernel<T::Limb>>(unit: T, limbs: usize, kernel: &mut K) {
    match tile_len::<T>(limbs) {
        2 => unit.run::<K, 2>(kernel),
        3 => unit.run::<K, 3>(kernel),
        4 => unit.run::<K, 4>(kernel),
        5 => unit.run::<K, 5>(kernel),
        6 => unit.run::<K, 6>(kernel),
        7 => unit.run::<K, 7>(kernel),
        8 => unit.run::<K, 8>(kernel),
        9 => unit.run::<K, 9>(kernel),
        10 => unit.run::<K, 10>(kernel),
        tile => {
            // A constant, so that nothing is compiled that a unit does not need.
            if const { T::MAX_TILE > 10 } {
                match tile {
                    11 => unit.run::<K, 11>(kernel),
                    12 => unit.run::<K, 12>(kernel),
                    13 => unit.run::<K, 13>(kernel),
                    14 => unit.run::<K, 14>(kernel),
                    15 => unit.run::<K, 15>(kernel),
                    16 => unit.run::<K, 16>(kernel),
                    17 => unit.run::<K, 17>(kernel),
                    18 => unit.run::<K, 18>(kernel),
                    19 => unit.run::<K, 19>(kernel),
                    20 => unit.run::<K, 20>(kernel),
                    tile => unreachable!("no tile has {tile} limbs"),
                }
            } else {
                unreachable!("no tile has {tile} limbs");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifma::portable;
    use batch_modexp_core::width::MAX_BITS;

    #[test]
    fn there_is_room_and_little_waste() {
        check(portable::EIGHT);
        check(portable::FOUR);
    }

    fn check<T: Madd52>(_: T) {
        for bits in (64..=MAX_BITS).step_by(64) {
            let limbs = limb_count::<T>(bits);
            let tiles = count_of_tiles::<T>(limbs);
            assert_eq!(limbs % tiles, 0, "{bits}");
            assert!((2..=T::MAX_TILE).contains(&(limbs / tiles)), "{bits}");
            let needed = (bits + 2).div_ceil(RADIX_BITS) as usize;
            assert!((needed..needed.max(2) + tiles).contains(&limbs), "{bits}");
            // The time grows as the square of the limbs.
            let [at_most, of] = if T::MAX_TILE == 20 { [6, 5] } else { [5, 4] };
            assert!(
                of * limbs * limbs <= at_most * needed * needed,
                "{bits}: {needed} -> {limbs}"
            );
        }
    }
}
