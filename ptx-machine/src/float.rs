//! Exact `fma.rz.f64` in integers: a single rounding, toward zero, independent of the host's
//! rounding mode.

const FRACTION_BITS: u32 = 52;
const IMPLICIT_ONE: u64 = 1 << FRACTION_BITS;
/// Biased exponent of infinities and NaN.
const NOT_FINITE: u64 = 0x7ff;
/// Exponent of the unit in the last place of subnormal numbers: `2^-1074`.
const MIN_ULP: i32 = -1074;

/// `magnitude * 2^exponent`, with a sign, also for zero.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

/// `a * b + c` on bit patterns, rounded once, toward zero (IEEE 754-2019, section 4.3.3). `None` if
/// an operand is infinite or not a number.
pub(crate) fn fma_rz(a: u64, b: u64, c: u64) -> Option<u64> {
    let c_bits = c;
    let (a, b, c) = (unpack(a)?, unpack(b)?, unpack(c)?);
    let product = Exact {
        negative: a.negative != b.negative,
        magnitude: a.magnitude * b.magnitude,
        exponent: a.exponent + b.exponent,
    };
    if c.magnitude != 0 {
        if product.magnitude == 0 {
            return Some(c_bits);
        }
        // The product is below half of the last bit of c, even after a step down to the next power
        // of two. It can at most cause that step.
        if c.exponent - product.exponent > PRODUCT_BITS {
            return Some(c_bits - u64::from(product.negative != c.negative));
        }
    } else if product.magnitude == 0 {
        return Some(u64::from(product.negative && c.negative) << 63);
    }
    Some(pack(sum(product, c)))
}

fn unpack(bits: u64) -> Option<Exact> {
    let biased = bits >> FRACTION_BITS & NOT_FINITE;
    if biased == NOT_FINITE {
        return None;
    }
    let fraction = bits & (IMPLICIT_ONE - 1);
    let magnitude = if biased == 0 {
        fraction
    } else {
        fraction | IMPLICIT_ONE
    };
    Some(Exact {
        negative: bits >> 63 == 1,
        magnitude: u128::from(magnitude),
        exponent: biased.max(1) as i32 - 1 + MIN_ULP,
    })
}

/// Bits of a product.
const PRODUCT_BITS: i32 = 106;
/// The distance that moves the highest bit of a 53-bit addend to bit 125.
const MOST_APART: i32 = 73;

/// `product + addend`, not both zero. Exact, or with the last bit standing for all bits below it.
///
/// The sum is exact if the addend's last bit is that of the product or slightly above, as in most
/// sums of the kernels. Otherwise the larger number is moved up until its highest bit is bit 125.
/// It has at most 106 bits, so at least 20 zeros are below.
///
/// The smaller number loses bits only if it is below bit 106. Then the last bit of its shifted
/// magnitude is set. The sum's own last bit is then set, and the exact sum lies strictly between
/// its two neighbours. The bits that [`pack`] keeps, 70 higher, are those of the exact sum.
fn sum(product: Exact, addend: Exact) -> Exact {
    let apart = addend.exponent - product.exponent;
    if (0..=MOST_APART).contains(&apart) {
        let addend = Exact {
            magnitude: addend.magnitude << apart,
            exponent: product.exponent,
            ..addend
        };
        return aligned_sum(product, addend);
    }
    let (large, small) = if top(product) >= top(addend) {
        (product, addend)
    } else {
        (addend, product)
    };
    let up = large.magnitude.leading_zeros() - 2;
    let exponent = large.exponent - up as i32;
    let large = Exact {
        magnitude: large.magnitude << up,
        exponent,
        ..large
    };
    let small = Exact {
        magnitude: shifted(small.magnitude, small.exponent - exponent),
        exponent,
        ..small
    };
    aligned_sum(large, small)
}

/// `x + y`, with the same exponent and magnitudes below `2^126`.
fn aligned_sum(x: Exact, y: Exact) -> Exact {
    let (x_magnitude, y_magnitude) = (x.magnitude as i128, y.magnitude as i128);
    let sum = if x.negative == y.negative {
        x_magnitude + y_magnitude
    } else {
        x_magnitude - y_magnitude
    };
    // An exact zero is positive in this rounding mode.
    Exact {
        negative: if sum == 0 {
            false
        } else {
            x.negative != (sum < 0)
        },
        magnitude: sum.unsigned_abs(),
        exponent: x.exponent,
    }
}

/// One above the exponent of the highest set bit. The least value for zero.
fn top(x: Exact) -> i32 {
    match x.magnitude {
        0 => i32::MIN,
        magnitude => x.exponent + (128 - magnitude.leading_zeros()) as i32,
    }
}

/// `magnitude * 2^shift`, with the last bit set if a set bit was shifted out.
fn shifted(magnitude: u128, shift: i32) -> u128 {
    if shift >= 0 {
        return magnitude.unbounded_shl(shift as u32);
    }
    let down = shift.unsigned_abs();
    let kept = magnitude.unbounded_shr(down);
    kept | u128::from(kept.unbounded_shl(down) != magnitude)
}

/// The bit pattern of `x`, truncated to 53 bits, or fewer for a subnormal number.
fn pack(x: Exact) -> u64 {
    let sign = u64::from(x.negative) << 63;
    if x.magnitude == 0 {
        return sign;
    }
    let zeros = x.magnitude.leading_zeros();
    let ulp = x.exponent + (128 - zeros) as i32 - (FRACTION_BITS as i32 + 1);
    let (ulp, fraction) = if ulp >= MIN_ULP {
        // The highest bits, of which the first is set.
        let highest = ((x.magnitude << zeros) >> 64) as u64;
        (ulp, highest >> (63 - FRACTION_BITS))
    } else {
        let shift = x.exponent - MIN_ULP;
        let fraction = if shift >= 0 {
            x.magnitude << shift
        } else {
            x.magnitude.unbounded_shr(shift.unsigned_abs())
        };
        (MIN_ULP, fraction as u64)
    };
    // A subnormal fraction lacks the implicit one, which raises the exponent from 0 to 1.
    let biased = (ulp - MIN_ULP) as u64;
    let magnitude = (biased << FRACTION_BITS) + fraction;
    sign | magnitude.min((NOT_FINITE << FRACTION_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, Sign};

    /// `fma_rz` by definition: the exact sum over a common denominator of `2^2148`, then the
    /// largest representable magnitude that is not above it.
    fn reference(a: u64, b: u64, c: u64) -> u64 {
        let scaled = |bits: u64| {
            let x = unpack(bits).unwrap();
            let sign = if x.negative { Sign::Minus } else { Sign::Plus };
            BigInt::from_biguint(sign, x.magnitude.into()) << (x.exponent - MIN_ULP) as usize
        };
        let exact = scaled(a) * scaled(b) + (scaled(c) << 1074usize);
        let sign = match exact.sign() {
            Sign::Minus => 1 << 63,
            Sign::Plus => 0,
            Sign::NoSign => {
                let zero = |bits: u64| bits << 1 == 0;
                let product = (a ^ b) >> 63;
                let both_negative = (zero(a) || zero(b)) && zero(c) && product & c >> 63 == 1;
                u64::from(both_negative) << 63
            }
        };
        let magnitude = exact.magnitude();
        let ulp = magnitude.bits().saturating_sub(53).max(1074);
        let fraction = u64::try_from(magnitude >> ulp as usize).unwrap();
        let bits = ((ulp - 1074) << 52) + fraction;
        sign | bits.min(f64::MAX.to_bits())
    }

    fn check(a: u64, b: u64, c: u64) {
        assert_eq!(
            fma_rz(a, b, c),
            Some(reference(a, b, c)),
            "fma.rz({a:016x}, {b:016x}, {c:016x})"
        );
    }

    /// All combinations of signs, exponents and fractions at their limits: 600 numbers, of which
    /// all pairs are multiplied.
    fn edges(exponents: &[u64]) -> Vec<u64> {
        let fractions = [
            0,
            1,
            (1 << 51) - 1,
            1 << 51,
            0x5_5555_5555_5555,
            (1 << 52) - 2,
            (1 << 52) - 1,
        ];
        let mut numbers = Vec::new();
        for sign in [0, 1 << 63] {
            for exponent in exponents {
                numbers.extend(fractions.map(|fraction| sign | exponent << 52 | fraction));
            }
        }
        numbers
    }

    #[test]
    fn edge_cases_against_big_integers() {
        let numbers = edges(&[0, 1, 2, 512, 969, 1023, 1024, 1075, 1127, 2045, 2046]);
        for (i, &a) in numbers.iter().enumerate() {
            for &b in numbers.iter().skip(i % 5).step_by(5) {
                for &c in numbers.iter().skip(i % 3).step_by(3) {
                    check(a, b, c);
                }
            }
        }
    }

    #[test]
    fn products_against_addends_at_every_distance() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            // Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        };
        let finite = |bits: u64| bits & !(1 << 62);
        for distance in 0..4000 {
            let (a, b) = (next() >> 12 | 1023 << 52, next() >> 12 | 1023 << 52);
            let c = (next() & !(NOT_FINITE << 52)) | ((1023 + distance % 300 - 150) << 52);
            check(a, b, c);
            check(a, b, c ^ 1 << 63);
            // The rounded product itself, so that the sum cancels down to the last bits.
            let product = fma_rz(a, b, 0).unwrap();
            check(a, b, product ^ 1 << 63);
            check(finite(next()), finite(next()), finite(next()));
        }
    }

    #[test]
    fn the_wide_sample_constants() {
        let (hi_constant, lo_constant) = (2f64.powi(104), 2f64.powi(104) + 2f64.powi(52));
        for a in [0u64, 1, 2, (1 << 52) - 1, 1 << 52] {
            for b in [0u64, 1, 3, (1 << 52) - 1, 1 << 52] {
                let (x, y) = ((a as f64).to_bits(), (b as f64).to_bits());
                let hi = fma_rz(x, y, hi_constant.to_bits()).unwrap();
                let rest = (lo_constant - f64::from_bits(hi)).to_bits();
                let lo = fma_rz(x, y, rest).unwrap();
                let (high, low) = (hi - (0x467 << 52), lo - (0x433 << 52));
                let product = u128::from(a) * u128::from(b);
                assert_eq!((u128::from(high) << 52) + u128::from(low), product);
            }
        }
    }

    #[test]
    fn infinities_are_refused() {
        let (one, infinity) = (1f64.to_bits(), f64::INFINITY.to_bits());
        assert_eq!(fma_rz(one, one, infinity), None);
        assert_eq!(fma_rz(infinity, one, one), None);
    }
}
