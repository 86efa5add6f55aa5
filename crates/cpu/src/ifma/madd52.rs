//! The instructions that the kernels are written in, and the division of numbers into tiles.
//!
//! A *tile* is a group of limbs whose column sums fit into the vector registers. A tile
//! multiplication keeps one column sum for each limb of a tile in registers, and needs up to eight
//! more. A tile therefore has up to [`Madd52::MAX_TILE`] limbs: 20 with the 32 registers of
//! AVX-512, 10 with 16 registers.

use core::arch::asm;
use core::ptr;

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

/// Defines a limb of `$lanes` lanes, aligned to its size of `$size` bytes.
macro_rules! lane_limb {
    ($(#[$doc:meta])* $Limb:ident: $lanes:literal lanes, $size:literal bytes) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        #[repr(C, align($size))]
        pub(crate) struct $Limb(pub(super) [u64; $lanes]);

        impl LaneLimb for $Limb {
            const LANES: usize = $lanes;
            const ZERO: Self = Self([0; $lanes]);
            const ZEROS: &[Self; MAX_TILE] = &[Self::ZERO; MAX_TILE];

            type Words = [u64; $lanes];

            fn chunks(words: &[u64]) -> &[Self::Words] {
                words.as_chunks().0
            }

            fn lanes(&self) -> &[u64] {
                &self.0
            }

            fn lanes_mut(&mut self) -> &mut [u64] {
                &mut self.0
            }
        }

        impl Zeroize for $Limb {
            fn zeroize(&mut self) {
                self.0.zeroize();
            }
        }
    };
}

lane_limb! {
    /// One limb of eight lanes.
    Limb8: 8 lanes, 64 bytes
}
lane_limb! {
    /// One limb of four lanes.
    Limb4: 4 lanes, 32 bytes
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

/// Runs a kernel of `$unit` that is compiled for each of the listed lengths, with length `$len`.
macro_rules! run_with_len {
    ($unit:ident.$run:ident::<$K:ident>($kernel:ident), $len:expr, $($known:literal)*) => {
        match $len {
            $($known => $unit.$run::<$K, $known>($kernel),)*
            len => unreachable!("no kernel has {len} limbs"),
        }
    };
}
pub(super) use run_with_len;

/// Runs `kernel` with the tile length of operands of `limbs` limbs, a number that [`limb_count`]
/// gave.
pub(super) fn dispatch<T: Madd52, K: Kernel<T::Limb>>(unit: T, limbs: usize, kernel: &mut K) {
    let len = tile_len::<T>(limbs);
    // A constant, so that nothing is compiled that a unit does not need.
    if const { T::MAX_TILE > 10 } && len > 10 {
        run_with_len!(unit.run::<K>(kernel), len, 11 12 13 14 15 16 17 18 19 20);
    } else {
        run_with_len!(unit.run::<K>(kernel), len, 2 3 4 5 6 7 8 9 10);
    }
}

/// Repeats `$body` for each `$j` below `$b`, which is at most 20, or for each listed number. A loop
/// that the compiler unrolls later does not suffice: it would keep the sums in memory.
macro_rules! unrolled {
    ($b:ident, $j:ident, $body:block) => {
        unrolled!(@ $b, $j, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    };
    ($j:ident, $body:block, $($index:literal)*) => { $({
        const $j: usize = $index;
        $body
    })* };
    (@ $b:ident, $j:ident, $body:block, $($index:literal)*) => { $({
        const $j: usize = $index;
        if $j < $b $body
    })* };
}
pub(super) use unrolled;

/// The same reference, of unknown origin to the compiler. It therefore cannot hoist loads through
/// it out of a loop, and would only have to spill them: there are more limbs than registers.
#[inline(always)]
#[allow(unsafe_code)]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read or written through the pointer.
pub(super) fn reload<T>(reference: &T) -> &T {
    if cfg!(miri) {
        return reference; // Miri runs no assembly.
    }
    let mut pointer = ptr::from_ref(reference);
    // Not `pure`: the compiler would merge two calls on the same reference.
    // SAFETY: there is no instruction, so the pointer keeps its value and its provenance. The new
    // reference lives no longer than the original.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags));
        &*pointer
    }
}

/// Defines a function that adds halves of products by one instruction. Assembly that is not `pure`
/// keeps its place. The compiler may move the intrinsic. It does not know that all rows wait for the
/// next quotient, and would compute it at the end of a row.
macro_rules! multiply_add {
    ($name:ident($Vector:ident in $register:ident), $features:literal, $instruction:literal) => {
        #[target_feature(enable = $features)]
        #[inline]
        fn $name(mut sum: $Vector, a: $Vector, b: $Vector) -> $Vector {
            // SAFETY: the token of the caller proves that the instruction exists; it changes `sum`
            // only.
            unsafe {
                core::arch::asm!(
                    concat!($instruction, " {0}, {1}, {2}"),
                    inout($register) sum, in($register) a, in($register) b,
                    options(nomem, nostack, preserves_flags),
                );
            }
            sum
        }
    };
}
pub(super) use multiply_add;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifma::testing::portable;
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
