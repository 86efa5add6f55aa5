//! How a number is cut into blocks whose column sums fit into the vector registers.
//!
//! A block multiplication holds one column sum for each limb of a block in registers, and needs up to eight more. So a
//! block has up to [`Madd52::MAX_BLOCK`] limbs: 20 with the 32 registers of AVX-512, 10 with 16 registers.

use super::madd52::{Kernel, Madd52, RADIX_BITS};

/// The number of limbs for moduli of `bits` bits: the fewest that give `2^(52 * limbs) > 4 * modulus`
/// and are a whole number of equal blocks. At most one limb a block is more than needed.
pub(super) fn limb_count<T: Madd52>(bits: u32) -> usize {
    let needed = (bits + 2).div_ceil(RADIX_BITS).max(2) as usize;
    needed.next_multiple_of(block_count::<T>(needed))
}

/// How many blocks `limbs` limbs are cut into.
fn block_count<T: Madd52>(limbs: usize) -> usize {
    limbs.div_ceil(T::MAX_BLOCK)
}

/// How many limbs a block of a number of `limbs` limbs has.
pub(super) fn block_len<T: Madd52>(limbs: usize) -> usize {
    limbs / block_count::<T>(limbs)
}

/// Whether there may be halves where blocks have so many limbs: for moduli of 1024, 1536, 2048 bits and more that are as round, so
/// that not everything is compiled once more.
pub(super) const fn may_have_halves<T: Madd52>(block: usize) -> bool {
    T::CAN_SAVE_PRODUCTS && block >= 15 && block.is_multiple_of(5)
}

/// Whether there is code that squares numbers of one such block with their columns in registers: as for
/// [halves](may_have_halves), and for moduli of 512 and 768 bits.
pub(super) const fn keeps_columns<T: Madd52>(block: usize) -> bool {
    T::CAN_SAVE_PRODUCTS && block >= 10 && block.is_multiple_of(5)
}

/// Runs `kernel` with the block length of operands of `limbs` limbs, a number that [`limb_count`] gave.
pub(super) fn dispatch<T: Madd52, K: Kernel<T::Limb>>(unit: T, limbs: usize, kernel: &mut K) {
    match block_len::<T>(limbs) {
        2 => unit.run::<K, 2>(kernel),
        3 => unit.run::<K, 3>(kernel),
        4 => unit.run::<K, 4>(kernel),
        5 => unit.run::<K, 5>(kernel),
        6 => unit.run::<K, 6>(kernel),
        7 => unit.run::<K, 7>(kernel),
        8 => unit.run::<K, 8>(kernel),
        9 => unit.run::<K, 9>(kernel),
        10 => unit.run::<K, 10>(kernel),
        block => {
            // In a constant, so that nothing is compiled that a unit does not need.
            if const { T::MAX_BLOCK > 10 } {
                long_block(unit, block, kernel);
            } else {
                unreachable!("no block has {block} limbs");
            }
        }
    }
}

/// The blocks of more than ten limbs.
fn long_block<T: Madd52, K: Kernel<T::Limb>>(unit: T, block: usize, kernel: &mut K) {
    match block {
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
        block => unreachable!("no block has {block} limbs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifma::portable;
    use crate::lanes::MAX_BITS;

    #[test]
    fn there_is_room_and_little_waste() {
        check(portable::EIGHT);
        check(portable::FOUR);
    }

    fn check<T: Madd52>(_: T) {
        for bits in (64..=MAX_BITS).step_by(64) {
            let limbs = limb_count::<T>(bits);
            let blocks = block_count::<T>(limbs);
            assert_eq!(limbs % blocks, 0, "{bits}");
            assert!((2..=T::MAX_BLOCK).contains(&(limbs / blocks)), "{bits}");
            let needed = (bits + 2).div_ceil(RADIX_BITS) as usize;
            assert!((needed..needed.max(2) + blocks).contains(&limbs), "{bits}");
            // The time grows as the square of the limbs.
            let [at_most, of] = if T::MAX_BLOCK == 20 { [6, 5] } else { [5, 4] };
            assert!(
                of * limbs * limbs <= at_most * needed * needed,
                "{bits}: {needed} -> {limbs}"
            );
        }
    }
}
