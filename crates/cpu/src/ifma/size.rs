//! The division of numbers into tiles whose column sums fit into the vector registers.
//!
//! A tile multiplication keeps one column sum for each limb of a tile in registers, and needs up to
//! eight more. A tile therefore has up to [`Madd52::MAX_TILE`] limbs: 20 with the 32 registers of
//! AVX-512, 10 with 16 registers.

use super::madd52::{Kernel, Madd52, RADIX_BITS};

/// The number of limbs for moduli of `bits` bits. It is the smallest that gives a whole number of
/// equal tiles and `2^(52 * limbs) > 4 * modulus`. This adds at most one limb for each tile.
pub(super) fn limb_count<T: Madd52>(bits: u32) -> usize {
    let needed = (bits + 2).div_ceil(RADIX_BITS).max(2) as usize;
    needed.next_multiple_of(tile_count::<T>(needed))
}

/// The number of tiles of a number of `limbs` limbs.
fn tile_count<T: Madd52>(limbs: usize) -> usize {
    limbs.div_ceil(T::MAX_TILE)
}

/// The number of limbs in each tile of a number of `limbs` limbs.
pub(super) fn tile_len<T: Madd52>(limbs: usize) -> usize {
    // Without a division where it would take longest beside the kernel.
    match tile_count::<T>(limbs) {
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
                long_tile(unit, tile, kernel);
            } else {
                unreachable!("no tile has {tile} limbs");
            }
        }
    }
}

/// Tiles of more than ten limbs.
fn long_tile<T: Madd52, K: Kernel<T::Limb>>(unit: T, tile: usize, kernel: &mut K) {
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
            let tiles = tile_count::<T>(limbs);
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
