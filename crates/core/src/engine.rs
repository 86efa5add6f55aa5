//! Engines: each computes on the calling thread with one instruction set.
//!
//! Many numbers are in one flat buffer, one after the other. Each has as many limbs as the moduli,
//! least significant limb first. Number `i` belongs to modulus `i`. All numbers and moduli are
//! secret. Public are the exponents of public powers, the number of moduli, their width, and which
//! of them are the same reference.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, Limb};

use crate::limbs::ct_eq;
use crate::monty::ModulusRef;
use crate::public_exponent::PublicExponent;
use crate::secret::Secret;
use crate::width::MAX_BITS;

/// The arithmetic that RSA needs, on flat numbers.
///
/// Callers use the provided methods. They check the lengths of a request before they pass it to the
/// `run_` method that each engine implements. All operations are constant-time in every secret.
///
/// Only crates of this workspace implement it; `batch-modexp` does not export it. No foreign code
/// therefore checks the results of private operations.
///
/// # Panics
///
/// The provided methods panic if the moduli are too wide or not equally wide, or if a buffer does
/// not have a number for each of them.
pub trait Engine: Sync {
    /// The engine's name, for users.
    fn name(&self) -> &'static str;

    /// The bound of trial division for candidates for primes of 1024 bits. To divide by a prime above
    /// it takes longer than the primality tests that this saves; estimated. Fast engines have low
    /// bounds.
    fn trial_division_bound(&self) -> u32;

    /// Computes powers with secret exponents: see [`SecretPowers`].
    fn pow(&self, powers: SecretPowers<'_>) {
        powers.assert_lengths();
        self.run_pow(powers);
    }

    /// `a[i] * b[i] mod moduli[i]`. The factors may have any value.
    fn products(&self, moduli: Moduli<'_>, a: &[Limb], b: &[Limb]) -> Secret<Vec<Limb>> {
        let mut out = zeros(moduli, &[a, b]);
        self.run_products(moduli, [a, b], &mut out);
        out
    }

    /// `bases[i]^exponent mod moduli[i]`. The bases may have any value.
    fn public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
    ) -> Secret<Vec<Limb>> {
        let mut out = zeros(moduli, &[bases]);
        self.run_public_powers(moduli, exponent, bases, &mut out);
        out
    }

    /// `numbers[i] mod moduli[i]`, as long as the moduli. The numbers may have any value. They are
    /// equally long, at most twice as long as the moduli.
    ///
    /// # Panics
    ///
    /// If the numbers are longer.
    fn remainders(&self, moduli: Moduli<'_>, numbers: &[Limb]) -> Secret<Vec<Limb>> {
        let mut out = zeros(moduli, &[]);
        assert!(numbers.len().is_multiple_of(moduli.len().max(1)));
        assert!(numbers.len() <= 2 * out.len());
        self.run_remainders(moduli, numbers, &mut out);
        out
    }

    /// Tells for each item whether `bases[i]^exponent` is `expected[i]` modulo `moduli[i]`, the
    /// product of its primes. Expected powers are below the moduli; bases may have any value.
    ///
    /// Engines with SIMD lanes compare modulo the primes, if there are any, which takes less time.
    /// They panic if the primes are too short for the numbers.
    fn powers_agree(&self, moduli: Moduli<'_>, comparison: &Comparison<'_>) -> Vec<Choice> {
        comparison.assert_lengths();
        if !comparison.primes.is_empty()
            && let Some(verdicts) = self.run_powers_agree(comparison)
        {
            return verdicts;
        }
        let powers = self.public_powers(moduli, comparison.exponent, comparison.bases);
        let size = size_of_all(moduli);
        let pairs = powers
            .chunks_exact(size)
            .zip(comparison.expected.chunks_exact(size));
        pairs
            .map(|(power, expected)| ct_eq(power, expected))
            .collect()
    }

    /// Implements [`pow`](Self::pow).
    fn run_pow(&self, powers: SecretPowers<'_>);

    /// Implements [`products`](Self::products).
    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]);

    /// Implements [`public_powers`](Self::public_powers).
    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
        out: &mut [Limb],
    );

    /// Implements [`remainders`](Self::remainders).
    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]);

    /// Implements [`powers_agree`](Self::powers_agree) modulo the primes, for numbers of any value.
    /// `None` without SIMD lanes.
    fn run_powers_agree(&self, _comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        None
    }
}

/// The moduli of flat numbers, all equally wide, at most [`MAX_BITS`] bits.
pub type Moduli<'a> = &'a [ModulusRef<'a>];

/// Powers with secret exponents, and the places for them. Bases, exponents and moduli are secret.
///
/// The numbers of a buffer follow one another. Each has [as many limbs](Self::limbs) as the moduli,
/// least significant first. Buffers do not overlap. There may be no powers.
pub struct SecretPowers<'a> {
    /// Odd and equally wide, of at most 16,384 bits. Consecutive powers may share one: see
    /// [`ModulusRef::is_same`].
    pub moduli: Moduli<'a>,
    /// One for each modulus, none narrower than `exponent_bits`; narrower or wider than the moduli.
    pub exponents: &'a [&'a [Limb]],
    /// Only this many low bits of each exponent are used; public. May exceed the width of the moduli.
    pub exponent_bits: u32,
    /// A number for each modulus, of any value.
    pub bases: &'a [Limb],
    /// `bases[i]^exponents[i] mod moduli[i]`, below the modulus. Holds anything before.
    pub out: &'a mut [Limb],
}

impl<'a> SecretPowers<'a> {
    /// Checks the lengths of the buffers.
    ///
    /// # Panics
    ///
    /// If the moduli are too wide or not equally wide, a buffer does not have a number for each of
    /// them, or an exponent is narrower than `exponent_bits`.
    pub fn assert_lengths(&self) {
        let (count, size) = (self.moduli.len(), size_of_all(self.moduli));
        let lens = [
            self.bases.len(),
            self.out.len(),
            self.exponents.len() * size,
        ];
        assert_eq!(lens, [count * size; 3], "a number for each modulus");
        let bits = self.exponent_bits as usize;
        let is_wide = |exponent: &&[Limb]| exponent.len() >= bits.div_ceil(Limb::BITS as usize);
        assert!(
            self.exponents.iter().all(is_wide),
            "an exponent is too narrow"
        );
    }

    /// The number of limbs of each modulus; 0 without moduli.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.moduli.first().map_or(0, |modulus| modulus.limbs.len())
    }

    /// Borrows the same request for one attempt, so that another can follow.
    #[must_use]
    pub fn reborrow(&mut self) -> SecretPowers<'_> {
        SecretPowers {
            out: &mut *self.out,
            ..*self
        }
    }

    /// Splits the request into the first `middle` powers and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer, or a buffer does not have a number for each modulus.
    #[must_use]
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let (exponent_bits, at) = (self.exponent_bits, middle * self.limbs());
        let moduli = self.moduli.split_at(middle);
        let exponents = self.exponents.split_at(middle);
        let bases = self.bases.split_at(at);
        let out = self.out.split_at_mut(at);
        let part = |moduli, exponents, bases, out| SecretPowers {
            moduli,
            exponents,
            exponent_bits,
            bases,
            out,
        };
        (
            part(moduli.0, exponents.0, bases.0, out.0),
            part(moduli.1, exponents.1, bases.1, out.1),
        )
    }
}

/// Zeros, a number for each modulus.
///
/// # Panics
///
/// Those of [`size_of_all`], or if one of `inputs` does not have a number for each modulus.
fn zeros(moduli: Moduli<'_>, inputs: &[&[Limb]]) -> Secret<Vec<Limb>> {
    let len = moduli.len() * size_of_all(moduli);
    let fits = |numbers: &&[Limb]| numbers.len() == len;
    assert!(inputs.iter().all(fits), "a number for each modulus");
    Secret::new(vec![Limb::ZERO; len])
}

/// The bits of a mask: see [`Comparison`].
pub const MASK_BITS: u32 = 12;

/// Powers to compare with expected values, modulo the two primes of each modulus if there are any.
/// Numbers may be twice as long as the primes. Everything is secret except the exponent and which
/// primes are the same reference.
pub struct Comparison<'a> {
    /// Each p, then each q; odd and all equally wide. Or none.
    pub primes: Moduli<'a>,
    /// The exponent of all bases.
    pub exponent: &'a PublicExponent,
    /// A number for each pair of primes, of any value.
    pub bases: &'a [Limb],
    /// The expected powers. Modulo primes they may have any value.
    pub expected: &'a [Limb],
    /// Random numbers, one for each prime. A lane computes modulo an odd multiple of its prime,
    /// which the low [`MASK_BITS`] bits determine. This way the base and its power, which others
    /// know, are not reduced by the same secret number every time.
    pub masks: Option<&'a [u16]>,
}

impl Comparison<'_> {
    /// Checks the lengths of the buffers.
    ///
    /// # Panics
    ///
    /// If the primes are too wide or not equally wide, or if a buffer does not have a number or a
    /// mask for each of them.
    pub fn assert_lengths(&self) {
        let count = self.primes.len();
        size_of_all(self.primes);
        assert!(count.is_multiple_of(2));
        assert_eq!(self.bases.len(), self.expected.len());
        assert!(self.bases.len().is_multiple_of((count / 2).max(1)));
        assert_eq!(self.masks.map_or(count, <[u16]>::len), count);
    }
}

/// The number of limbs of each modulus; 1 without moduli.
///
/// # Panics
///
/// If the moduli have no limbs, more than 16,384 bits, or different widths, or a constant has another
/// width.
pub(crate) fn size_of_all(moduli: Moduli<'_>) -> usize {
    const MOST: usize = (MAX_BITS / Limb::BITS) as usize;
    let size = moduli.first().map_or(1, |modulus| modulus.limbs.len());
    assert!((1..=MOST).contains(&size), "moduli of 1 to 16,384 bits");
    let fits = |modulus: &ModulusRef<'_>| [modulus.limbs.len(), modulus.r2.len()] == [size; 2];
    assert!(
        moduli.iter().all(fits),
        "moduli of one batch are equally wide, and so are their constants"
    );
    size
}
