//! Powers of numbers in flat buffers, for RSA.

use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::engine::SecretPowers;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::Limb;

use super::PowerFeed;
use crate::backend::cuda::Cuda;
use crate::backend::cuda::feed::Feed;
use crate::backend::cuda::plan::Tuning;
use crate::backend::cuda::runtime::pipeline::Destination;

impl Cuda {
    /// Computes powers with secret exponents: see [`run_powers`](Self::run_powers).
    pub(crate) fn run_secret_powers(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        let limbs = powers.limbs();
        let places = Places {
            limbs,
            numbers: powers.out,
        };
        let numbers = Numbers {
            limbs,
            moduli: powers.moduli,
            bases: powers.bases,
            exponents: powers.exponents,
        };
        self.run_powers(powers.exponent_bits, Tuning::default(), &numbers, places)
            .map(|_| ())
    }
}

/// Numbers in the caller's memory: see [`SecretPowers`].
struct Numbers<'a> {
    /// Limbs in each base.
    limbs: usize,
    moduli: &'a [ModulusRef<'a>],
    bases: &'a [Limb],
    exponents: &'a [&'a [Limb]],
}

/// Places for powers, one after the other.
struct Places<'a> {
    /// Limbs in each.
    limbs: usize,
    numbers: &'a mut [Limb],
}

impl Destination for Places<'_> {
    fn len(&self) -> usize {
        self.numbers.len().checked_div(self.limbs).unwrap_or(0)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let limbs = self.limbs;
        let (head, tail) = self.numbers.split_at_mut(middle * limbs);
        let places = |numbers| Self { limbs, numbers };
        (places(head), places(tail))
    }
}

impl<'o> Feed<Places<'o>> for Numbers<'_> {
    type Opened = Range<usize>;
    type Error = Error;

    const IS_OPEN: bool = true;

    fn open(&self, items: Range<usize>, _: bool) -> Result<Range<usize>, Error> {
        Ok(items)
    }

    fn numbers<'n>(&'n self, items: &'n Range<usize>, item: usize) -> [&'n [Limb]; 2] {
        let item = items.start + item;
        [
            &self.bases[item * self.limbs..][..self.limbs],
            self.exponents[item],
        ]
    }

    fn take(&self, _: Range<usize>, powers: &[Limb], places: Places<'o>) {
        places.numbers.copy_from_slice(powers);
    }
}

impl<'o> PowerFeed<Places<'o>> for Numbers<'_> {
    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        let runs = self.moduli[items].chunk_by(ModulusRef::is_same);
        runs.map(|run| (run[0], run.len())).collect()
    }
}
