//! Sums, differences and short reductions, for comparisons of numbers.

use super::convert::MAX_COUNT;
use super::{Lanes, Modulus};

/// [`Lanes::add_products`] by two separate products.
pub(crate) fn add_products<L: Lanes>(
    lanes: L,
    out: &mut [L::Limb],
    [a, b]: [[&[L::Limb]; 2]; 2],
    modulus: Modulus<'_, L::Limb>,
    spare: &mut [L::Limb],
    scratch: &mut [L::Limb],
) {
    lanes.mul(out, a[0], b[0], modulus, scratch);
    lanes.mul(spare, a[1], b[1], modulus, scratch);
    add::<L>(out, spare);
}

/// `a += b` in every lane.
pub(super) fn add<L: Lanes>(a: &mut [L::Limb], b: &[L::Limb]) {
    let mut carry = [0; MAX_COUNT];
    for (a, b) in a.iter_mut().zip(b) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let sum = L::lane(a, lane) + L::lane(b, lane) + *carry;
            L::set_lane(a, lane, sum & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}

/// `a = (modulus << lift) - a` in every lane, for a of at most `modulus << lift`.
pub(super) fn negate<L: Lanes>(a: &mut [L::Limb], modulus: &[L::Limb], lift: u32) {
    // Signed.
    let mut carry = [0i64; MAX_COUNT];
    for (a, modulus) in a.iter_mut().zip(modulus) {
        for (lane, carry) in carry[..L::COUNT].iter_mut().enumerate() {
            let lifted = (L::lane(modulus, lane) << lift) as i64;
            let sum = lifted - L::lane(a, lane) as i64 + *carry;
            L::set_lane(a, lane, sum as u64 & ((1 << L::RADIX_BITS) - 1));
            *carry = sum >> L::RADIX_BITS;
        }
    }
}

/// [`Lanes::reduce_lowest`] by one limb: adds the multiple of the modulus that clears the lowest
/// limb, and drops that limb.
pub(super) fn reduce_lowest<L: Lanes>(value: &mut [L::Limb], modulus: Modulus<'_, L::Limb>) {
    let mask = (1 << L::RADIX_BITS) - 1;
    for lane in 0..L::COUNT {
        let lowest = L::lane(&value[0], lane);
        let quotient = lowest.wrapping_mul(L::lane(modulus.neg_inv, lane)) & mask;
        let mut carry = 0;
        for (i, limb) in modulus.limbs.iter().enumerate() {
            let product = u128::from(quotient) * u128::from(L::lane(limb, lane));
            let sum = product + u128::from(L::lane(&value[i], lane)) + u128::from(carry);
            if let Some(below) = i.checked_sub(1) {
                L::set_lane(&mut value[below], lane, sum as u64 & mask);
            }
            // The sum is below 2^(RADIX_BITS + 1).
            carry = (sum >> L::RADIX_BITS) as u64;
        }
        if let Some(highest) = value.last_mut() {
            L::set_lane(highest, lane, carry & mask);
        }
    }
}
