//! One instance at a time in words of 64 bits, for batches too small to fill lanes.
//!
//! Uses MULX, ADCX and ADOX, which x86-64 processors have since Intel's Broadwell and AMD's Zen.
//!
//! Numbers are cut into tiles of eight words. The product of two tiles stays in registers. Each row
//! of eight products has two carry chains, one for low halves and one for high ones. Source: E.
//! Ozturk, J. Guilford, V. Gopal, "Large Integer Squaring on Intel Architecture Processors" (Intel,
//! 2013); OpenSSL uses such rows too.
//!
//! Montgomery reduction goes by tiles as well: `R` is `2^512` to the power of the number of tiles.
//! Intermediate results subtract the modulus only on a carry out of `R`. Numbers are therefore
//! below `R`, but not always below the modulus (S. Gueron, "Efficient Software Implementations of
//! Modular Exponentiation", Journal of Cryptographic Engineering 2, 2012).
//!
//! The common ladder sees a lane type with one lane and limbs of 32 bits; two limbs are a word.

mod assembly;
mod kernels;
mod montgomery;
#[cfg(test)]
mod tests;

use core::mem;

pub(super) use self::kernels::Token;
use self::montgomery::{Odd, TILE, Tile, Unit};
use super::lanes::{LaneModulus, Lanes, Operands};

/// The narrowest supported moduli, in bits. The Montgomery constants of crypto-bigint suffice for
/// at most twice their width.
#[cfg(test)]
pub(super) const MIN_BITS: u32 = 320;

/// Bits in a tile.
pub(super) const TILE_BITS: u32 = 32 * TILE as u32;

/// One instance, computed with the instructions of `T`.
///
/// Unlike [`Lanes`] requires, factors may be any numbers below `R`. Products are then below `R`,
/// and below `BOUND * modulus` if `a * b < R * modulus`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<T>(pub(super) T);

impl<T: Unit> Lanes for Words<T> {
    type Limb = u32;

    const COUNT: usize = 1;
    const RADIX_BITS: u32 = 32;
    const BOUND: u8 = 2;
    const ZERO: u32 = 0;
    /// A look-up among 32 entries takes a fifth of a multiplication of 1024 bits.
    const LONG_EXPONENT_BITS: u32 = 500;

    /// Rounds up to whole tiles.
    fn limb_count(bits: u32) -> usize {
        (bits.div_ceil(Self::RADIX_BITS) as usize).next_multiple_of(TILE)
    }

    fn scratch_len(limbs: usize) -> usize {
        montgomery::scratch_len(limbs / TILE) * TILE
    }

    fn set_lane(limb: &mut u32, _lane: usize, value: u64) {
        *limb = value as u32;
    }

    fn lane(limb: &u32, _lane: usize) -> u64 {
        u64::from(*limb)
    }

    fn constants_len(_: usize) -> usize {
        4
    }

    /// `-1 / modulus mod 2^128`, as four limbs.
    fn prepare(self, constants: &mut [u32], modulus: &[u32], neg_inv: &u32, _: &mut [u32]) {
        let modulus = two_words(modulus);
        let mut x = u128::from(*neg_inv);
        for _ in 0..2 {
            // `x m = -1 + e` with a small `e` gives `x (2 + x m) m = -1 + e^2` (Newton): the number
            // of correct bits doubles.
            x = x.wrapping_mul(x.wrapping_mul(modulus).wrapping_add(2));
        }
        for (i, limb) in constants.iter_mut().enumerate() {
            *limb = (x >> (32 * i)) as u32;
        }
    }

    fn mul(
        self,
        out: &mut [u32],
        a: &[u32],
        b: &[u32],
        modulus: LaneModulus<'_, u32>,
        scratch: &mut [u32],
    ) {
        let (out, scratch) = (tiles_mut(out), tiles_mut(scratch));
        montgomery::multiply(self.0, out, tiles(a), tiles(b), odd(modulus), scratch);
    }

    fn square(
        self,
        out: &mut [u32],
        a: &[u32],
        modulus: LaneModulus<'_, u32>,
        scratch: &mut [u32],
    ) {
        let (out, scratch) = (tiles_mut(out), tiles_mut(scratch));
        montgomery::square(self.0, out, tiles(a), odd(modulus), scratch);
    }

    fn select(self, out: &mut [u32], table: &[u32], digits: &[u8]) {
        out.fill(0);
        self.0.or_entry(out, table, digits[0]);
    }

    /// Looks up a part of the table before each squaring. These instructions do not depend on the
    /// squaring, and are few enough for the processor to execute both at the same time.
    fn step(self, squarings: u32, digits: &[u8], x: &mut Operands<'_, Self>) {
        let entries_at_a_time = (1usize << squarings).div_ceil(squarings as usize);
        let mut parts = x.table.chunks(entries_at_a_time * x.entry.len());
        let mut digit = digits[0];
        x.entry.fill(0);
        for _ in 0..squarings {
            if let Some(part) = parts.next() {
                self.0.or_entry(x.entry, part, digit);
                // Wraps around once its entry has been read. No part has enough entries to match it
                // after that.
                digit = digit.wrapping_sub(entries_at_a_time as u8);
            }
            self.square(x.spare, x.value, x.modulus, x.scratch);
            mem::swap(&mut x.value, &mut x.spare);
        }
        self.mul(x.spare, x.value, x.entry, x.modulus, x.scratch);
        mem::swap(&mut x.value, &mut x.spare);
    }
}

/// The modulus in tiles, with the constants that `prepare` made.
fn odd(modulus: LaneModulus<'_, u32>) -> Odd<'_> {
    Odd {
        modulus: tiles(modulus.limbs),
        neg_inv: two_words(modulus.constants),
    }
}

/// The four lowest limbs as a number.
fn two_words(limbs: &[u32]) -> u128 {
    let [low, high] = [0, 2].map(|i| u128::from(word([limbs[i], limbs[i + 1]])));
    low | high << 64
}

/// Two limbs as a word.
fn word([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Limbs as tiles; `limb_count` gave their number.
fn tiles(limbs: &[u32]) -> &[Tile] {
    limbs.as_chunks().0
}

/// Like [`tiles`], for writing.
fn tiles_mut(limbs: &mut [u32]) -> &mut [Tile] {
    limbs.as_chunks_mut().0
}
