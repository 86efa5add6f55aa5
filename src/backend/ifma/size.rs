//! How a number is cut into blocks whose column sums fit into the vector registers.

use super::madd52::{Kernel, Madd52, RADIX_BITS};

/// The largest block, in limbs. A block multiplication holds one column sum for each limb of a block in
/// registers, and needs up to eight more of the 32.
pub(super) const MAX_BLOCK: usize = 20;

/// The number of limbs for moduli of `bits` bits: the fewest that give `2^(52 * limbs) > 4 * modulus`
/// and are a whole number of equal blocks. At most one limb a block is more than needed.
pub(super) fn limb_count(bits: u32) -> usize {
    let needed = (bits + 2).div_ceil(RADIX_BITS).max(2) as usize;
    needed.next_multiple_of(block_count(needed))
}

/// How many blocks `limbs` limbs are cut into.
fn block_count(limbs: usize) -> usize {
    limbs.div_ceil(MAX_BLOCK)
}

/// Runs `kernel` with the block length of operands of `limbs` limbs, a number that [`limb_count`] gave.
pub(super) fn dispatch<T: Madd52, K: Kernel>(unit: T, limbs: usize, kernel: &mut K) {
    match limbs / block_count(limbs) {
        2 => unit.run::<K, 2>(kernel),
        3 => unit.run::<K, 3>(kernel),
        4 => unit.run::<K, 4>(kernel),
        5 => unit.run::<K, 5>(kernel),
        6 => unit.run::<K, 6>(kernel),
        7 => unit.run::<K, 7>(kernel),
        8 => unit.run::<K, 8>(kernel),
        9 => unit.run::<K, 9>(kernel),
        10 => unit.run::<K, 10>(kernel),
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
    use crate::backend::lanes::MAX_BITS;

    #[test]
    fn there_is_room_and_little_waste() {
        for bits in (64..=MAX_BITS).step_by(64) {
            let limbs = limb_count(bits);
            assert_eq!(limbs % block_count(limbs), 0, "{bits}");
            assert!(
                (2..=MAX_BLOCK).contains(&(limbs / block_count(limbs))),
                "{bits}"
            );
            let needed = (bits + 2).div_ceil(RADIX_BITS) as usize;
            assert!(limbs >= needed, "{bits}");
            // The time grows as the square of the limbs.
            assert!(
                5 * limbs * limbs <= 6 * needed * needed,
                "{bits}: {needed} -> {limbs}"
            );
        }
    }
}
