//! The arithmetic of `residue.cuh`, modulo one prime.

/// A prime modulus `m = 2^29 - distance`.
#[derive(Clone, Copy, Debug)]
pub struct Modulus {
    /// `2^29 - m`.
    pub distance: u32,
}

impl Modulus {
    /// The modulus itself.
    #[must_use]
    pub fn value(self) -> u32 {
        (1 << 29) - self.distance
    }

    pub(super) fn minus(self) -> u32 {
        self.value().wrapping_neg()
    }

    /// Congruent to `low + 2^16 high`.
    #[must_use]
    pub fn fold(self, low: u32, high: u32) -> u32 {
        let above_16 = high + (low >> 16);
        let word = low.wrapping_add(high.wrapping_shl(16));
        word.wrapping_add((above_16 >> 13).wrapping_mul(self.minus()))
    }

    /// Congruent to `low + 2^16 high`. Less reduced than [`fold`](Self::fold), with one instruction
    /// less.
    #[must_use]
    pub fn fold_loosely(self, low: u32, high: u32) -> u32 {
        low + ((high & 0x1fff) << 16) + (high >> 13) * self.distance
    }

    /// Congruent to `x`, and below 2.5 m for `x < 2^61` and a distance below 2,900. Otherwise below
    /// 3.8 m.
    ///
    /// # Panics
    ///
    /// If `x` is not below `69 * 2^56`, or `3 * 2^61` for a distance below 1,400.
    #[must_use]
    pub fn reduce(self, x: u64) -> u32 {
        let (low, high) = (x as u32, (x >> 32) as u32);
        let bound = if self.distance < 1_400 {
            3 << 61
        } else {
            69 << 56
        };
        assert!(x < bound, "the product is too large");
        let mut quotient = (x >> 29) as u32;
        quotient = quotient.wrapping_add(((high >> 13) * self.distance) >> 13);
        low.wrapping_add(quotient.wrapping_mul(self.minus()))
    }

    /// Congruent to `x`, and below `2^29 + 2^16`.
    #[must_use]
    pub fn reduce_word(self, x: u32) -> u32 {
        x.wrapping_add((x >> 29).wrapping_mul(self.minus()))
    }

    /// `x - m` if that is not negative, otherwise `x`.
    #[must_use]
    pub fn subtract_once(self, x: u32) -> u32 {
        x.min(x.wrapping_add(self.minus()))
    }

    pub(super) fn subtract_twice(self, x: u32) -> u32 {
        self.subtract_once(self.subtract_once(x))
    }

    /// `floor(2^32 factor / m)` for a factor below m.
    #[must_use]
    pub fn quotient_of_factor(self, factor: u32) -> u32 {
        let mut quotient = (factor << 3) + (((factor >> 13) * self.distance) >> 13);
        let mut rest = quotient.wrapping_mul(self.minus());
        for _ in 0..2 {
            let less = self.subtract_once(rest);
            quotient += u32::from(less != rest);
            rest = less;
        }
        quotient
    }

    /// Congruent to `x factor`. `quotient` is the one of the factor.
    #[must_use]
    pub fn times_constant(self, x: u32, factor: u32, quotient: u32) -> u32 {
        let high = ((u64::from(x) * u64::from(quotient)) >> 32) as u32;
        x.wrapping_mul(factor)
            .wrapping_add(high.wrapping_mul(self.minus()))
    }

    /// Congruent to `x y`.
    #[must_use]
    pub fn times(self, x: u32, y: u32) -> u32 {
        self.reduce(u64::from(x) * u64::from(y))
    }

    fn square_times(self, mut x: u32, squarings: u32, y: u32) -> u32 {
        for _ in 0..squarings {
            x = self.times(x, x);
        }
        self.times(x, y)
    }

    /// Congruent to the inverse of `x`, or to 0 for a multiple of m.
    #[must_use]
    pub fn inverse(self, x: u32) -> u32 {
        let ones_2 = self.square_times(x, 1, x);
        let ones_4 = self.square_times(ones_2, 2, ones_2);
        let ones_8 = self.square_times(ones_4, 4, ones_4);
        let ones_16 = self.square_times(ones_8, 8, ones_8);
        let mut power = ones_16;
        let exponent = (1 << 13) - 2 - self.distance;
        for bit in (0..13).rev() {
            power = self.square_times(power, 1, if exponent >> bit & 1 == 1 { x } else { 1 });
        }
        power
    }
}
