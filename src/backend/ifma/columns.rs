//! Column sums in registers.
//!
//! Column sums are not normalised in between. A column gets at most four halves of products below 2^52
//! a row, from at most 320 rows (16,384 bits), and a carry: less than 2^63.

use super::madd52::{Limb, Madd52};

/// Writes `$body` out for each `$j` below `$b`, which is at most 20. A loop that the compiler unrolls
/// later does not do: it would keep the sums in memory.
macro_rules! unrolled {
    ($b:ident, $j:ident, $body:block) => {
        unrolled!(@ $b, $j, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    };
    (@ $b:ident, $j:ident, $body:block, $($index:literal)*) => { $({
        const $j: usize = $index;
        if $j < $b $body
    })* };
}
pub(super) use unrolled;

/// Column sums, least significant first.
pub(super) type Sums<T, const B: usize> = [<T as Madd52>::Vector; B];

/// Reads `B` column sums.
#[inline(always)]
pub(super) fn load<T: Madd52, const B: usize>(t: T, block: &[Limb; B]) -> Sums<T, B> {
    let mut sums = [t.zero(); B];
    unrolled!(B, J, {
        sums[J] = t.load(&block[J]);
    });
    sums
}

/// Writes `B` column sums.
#[inline(always)]
pub(super) fn store<T: Madd52, const B: usize>(t: T, block: &mut [Limb; B], sums: Sums<T, B>) {
    unrolled!(B, J, {
        t.store(&mut block[J], sums[J]);
    });
}

/// See [`Madd52::pin`].
#[inline(always)]
pub(super) fn pin<T: Madd52, const B: usize>(t: T, mut sums: Sums<T, B>) -> Sums<T, B> {
    unrolled!(B, J, {
        sums[J] = t.pin(sums[J]);
    });
    sums
}

/// What a column carries into the next one when the multiple of the modulus that makes it a multiple of
/// 2^52 is added: `ceil(sum / 2^52)`, whatever the modulus.
#[inline(always)]
pub(super) fn carry_of_cleared<T: Madd52>(t: T, sum: T::Vector) -> T::Vector {
    t.carry(t.add(sum, t.ones()))
}

/// Writes `B` column sums as limbs, given the carry from below, and returns the carry. What a limb
/// carries stays in it above its 52 bits as well: factors count modulo 2^52.
#[inline(always)]
pub(super) fn carry_through<T: Madd52, const B: usize>(
    t: T,
    out: &mut [Limb; B],
    sums: Sums<T, B>,
    mut carry: T::Vector,
) -> T::Vector {
    unrolled!(B, J, {
        let sum = t.add(sums[J], carry);
        carry = t.carry(sum);
        t.store(&mut out[J], sum);
    });
    carry
}
