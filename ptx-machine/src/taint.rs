//! Rules for the bits of a result that may depend on a secret.
//!
//! A taint is a mask: bit `i` is set if bit `i` of the value may depend on a secret in any lane.
//!
//! The rules for sums are those of memcheck (Nethercote and Seward, "How to shadow every byte of
//! memory used by a program", 2007). A sum has its least value with all tainted bits at 0, and its
//! greatest with all at 1. Bits above the highest one in which these two differ cannot change.
//!
//! All rules are sound: they may taint too much, never too little. The tests below compare them
//! with all values of the tainted bits. No rule depends on the values of tainted bits.

/// One 64-bit value for each lane of a warp.
pub(crate) type Lanes = [u64; 32];

/// Bits that may differ among the values from `least` to `greatest`.
#[inline]
fn between(least: u64, greatest: u64) -> u64 {
    match least ^ greatest {
        0 => 0,
        differing => u64::MAX >> differing.leading_zeros(),
    }
}

/// All bits from the lowest set bit of `mask` upwards, which a carry can reach.
#[inline]
pub(crate) fn upwards(mask: u64) -> u64 {
    mask | mask.wrapping_neg()
}

/// All 64 bits if any bit of `mask` is set.
#[inline]
pub(crate) fn any(mask: u64) -> u64 {
    if mask == 0 { 0 } else { u64::MAX }
}

/// The taint of `x + y`, modulo `2^64`.
#[inline]
pub(crate) fn add(x: u64, tx: u64, y: u64, ty: u64) -> u64 {
    let (least, carry_least) = (x & !tx).overflowing_add(y & !ty);
    let (greatest, carry_greatest) = (x | tx).overflowing_add(y | ty);
    let changing = if carry_least == carry_greatest {
        between(least, greatest)
    } else {
        u64::MAX
    };
    (changing | tx | ty) & upwards(tx | ty)
}

/// The taint of `x - y`, modulo `2^64`.
#[inline]
pub(crate) fn sub(x: u64, tx: u64, y: u64, ty: u64) -> u64 {
    let (least, borrow_least) = (x & !tx).overflowing_sub(y | ty);
    let (greatest, borrow_greatest) = (x | tx).overflowing_sub(y & !ty);
    let changing = if borrow_least == borrow_greatest {
        between(least, greatest)
    } else {
        u64::MAX
    };
    (changing | tx | ty) & upwards(tx | ty)
}

/// The taint of `x & y`. A public 0 on one side hides the other.
#[inline]
pub(crate) fn and(x: u64, tx: u64, y: u64, ty: u64) -> u64 {
    (tx | ty) & (tx | x) & (ty | y)
}

/// The taint of `x | y`. A public 1 on one side hides the other.
#[inline]
pub(crate) fn or(x: u64, tx: u64, y: u64, ty: u64) -> u64 {
    (tx | ty) & (tx | !x) & (ty | !y)
}

/// The taint of the unsigned product. A public power of two shifts. Otherwise bits below the lowest
/// one that can change, and above the largest product, stay public.
#[inline]
pub(crate) fn mul(x: u64, tx: u64, y: u64, ty: u64) -> u64 {
    if ty == 0 && y.is_power_of_two() {
        return tx << y.trailing_zeros();
    }
    if tx == 0 && x.is_power_of_two() {
        return ty << x.trailing_zeros();
    }
    let largest = u128::from(x | tx) * u128::from(y | ty);
    let top = match u64::try_from(largest) {
        Ok(0) => 0,
        Ok(largest) => u64::MAX >> largest.leading_zeros(),
        Err(_) => u64::MAX,
    };
    // The lowest bit of x that can be set, times the lowest that can change in y, and vice versa.
    let lowest = |value: u64| value.trailing_zeros();
    let low = (lowest(tx) + lowest(y | ty)).min(lowest(ty) + lowest(x | tx));
    if tx | ty == 0 || low >= 64 {
        0
    } else {
        top & (u64::MAX << low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u32 = 4;

    /// The bits of `op(x, y)` that change while the tainted bits take all their values.
    fn exact(op: fn(u64, u64) -> u64, x: u64, tx: u64, y: u64, ty: u64) -> u64 {
        let variants = |value: u64, taint: u64| {
            (0..1 << BITS)
                .filter(move |v| v & !taint == value & !taint)
                .collect::<Vec<u64>>()
        };
        let first = op(x, y);
        let mut changing = 0;
        for x in variants(x, tx) {
            for y in variants(y, ty) {
                changing |= op(x, y) ^ first;
            }
        }
        changing
    }

    /// Compares a rule with the exact answer on all 4-bit values and taints, moved up by `shift`,
    /// so that results also wrap around at bit 64. Returns the number of tainted bits that were
    /// unnecessary.
    fn never_too_little(rule: fn(u64, u64, u64, u64) -> u64, op: fn(u64, u64) -> u64) -> u32 {
        let mut superfluous = 0;
        for case in 0..1u64 << (4 * BITS) {
            let part = |i: u32| case >> (i * BITS) & ((1 << BITS) - 1);
            let (x, tx, y, ty) = (part(0), part(1), part(2), part(3));
            let of_public_bits = rule(x & !tx, tx, y & !ty, ty);
            let (exact, rule) = (exact(op, x, tx, y, ty), rule(x, tx, y, ty));
            assert_eq!(exact & !rule, 0, "x {x:b}/{tx:b}, y {y:b}/{ty:b}");
            assert_eq!(of_public_bits, rule, "x {x:b}/{tx:b}, y {y:b}/{ty:b}");
            superfluous += (rule & !exact).count_ones();
        }
        superfluous
    }

    #[test]
    fn rules_are_sound() {
        never_too_little(add, |x, y| x.wrapping_add(y));
        never_too_little(sub, |x, y| x.wrapping_sub(y));
        never_too_little(mul, |x, y| x.wrapping_mul(y));
        assert_eq!(never_too_little(and, |x, y| x & y), 0);
        assert_eq!(never_too_little(or, |x, y| x | y), 0);
    }

    #[test]
    fn sums_that_wrap_around() {
        for low in 0..16u64 {
            for tx in 0..16u64 {
                let x = low.wrapping_sub(16);
                for y in 0..16u64 {
                    let exact = (0..16)
                        .filter(|v| v & !tx == low & !tx)
                        .map(|v| (v.wrapping_sub(16)).wrapping_add(y) ^ x.wrapping_add(y))
                        .fold(0, |all, changed| all | changed);
                    assert_eq!(exact & !add(x, tx, y, 0), 0, "{x:x}/{tx:x} + {y}");
                }
            }
        }
    }

    #[test]
    fn an_aligned_digit_does_not_reach_the_low_bits_of_an_address() {
        let (digit, digit_taint) = (0b1_0110 << 7, 0b1_1111 << 7);
        assert_eq!(add(0x4000 + 12, 0, digit, digit_taint), digit_taint);
        assert_eq!(mul(0b1_0110, 0b1_1111, 128, 0), 0b1_1111 << 7);
        assert_eq!(add(0x40 + 12, 0, digit, digit_taint), digit_taint);
    }
}
