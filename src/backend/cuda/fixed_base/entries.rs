//! The entries of a table as exponentiations of one base, whose results are operands.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::{BoxedUint, Limb, Resize, Unsigned};

use super::Inputs;
use crate::backend::cuda::family::Entry;
use crate::backend::cuda::family::fixed;
use crate::backend::cuda::feed::Feed;
use crate::backend::cuda::words::copy_in;

/// The entries of all rows.
pub(super) struct Entries<'a, U: Unsigned> {
    pub(super) kernel: &'static Entry,
    pub(super) inputs: &'a Inputs<'a, U>,
}

impl<'a, U: Unsigned> Entries<'a, U> {
    /// The base of an entry, and its exponent, which is public. An entry of row j for the digit d is
    /// the power with the exponent `d 2^(j w)`.
    ///
    /// Signed exponents are raised by half of their range, for which row 0 compensates: there the
    /// exponent is `d - 2^(exponent_bits - 1)`, a power of the inverse if it is negative.
    fn operands(&self, number: usize) -> (&'a U, BoxedUint) {
        let bits = self.inputs.exponent_bits;
        let (row, digit) = (number / fixed::ENTRIES, number % fixed::ENTRIES);
        let shifted = |number: u64, shift| {
            // Bits above the longest exponents are not used.
            let number = BoxedUint::from(number).resize(self.kernel.bits);
            let shifted = number.shl_vartime(shift);
            shifted.expect("a row begins within the longest exponents")
        };
        let digit = shifted(digit as u64, row as u32 * fixed::WINDOW_BITS);
        let (Some(inverse), 0, Some(top)) = (self.inputs.inverse, row, bits.checked_sub(1)) else {
            return (self.inputs.base, digit);
        };
        let half = shifted(1, top);
        match digit.cmp_vartime(&half) {
            Ordering::Less => (inverse, half.wrapping_sub(&digit)),
            _ => (self.inputs.base, digit.wrapping_sub(&half)),
        }
    }
}

impl<'a, 'p, U: Unsigned + Sync + Send> Feed<&'p mut [&mut [u64]]> for Entries<'a, U> {
    type Opened = Vec<(&'a U, BoxedUint)>;
    type Error = Error;

    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        vec![(ModulusRef::of(self.inputs.params), items.len())]
    }

    fn open(&self, items: Range<usize>, _: bool) -> Result<Self::Opened, Error> {
        Ok(items.map(|number| self.operands(number)).collect())
    }

    fn numbers<'n>(&'n self, operands: &'n Self::Opened, item: usize) -> [&'n [Limb]; 2] {
        let (base, exponent) = &operands[item];
        [base.as_limbs(), exponent.as_limbs()]
    }

    fn take(&self, _: Self::Opened, results: &[Limb], places: &'p mut [&mut [u64]]) {
        let operands = results.chunks_exact(results.len() / places.len());
        for (place, operand) in places.iter_mut().zip(operands) {
            copy_in(operand, place);
        }
    }
}
