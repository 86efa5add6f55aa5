//! Engines: each computes on the calling thread with one instruction set.
//!
//! Many numbers are in one flat buffer, one after the other. Each has as many limbs as the moduli,
//! least significant limb first. Number `i` belongs to modulus `i`. All numbers and moduli are
//! secret. Public are the exponents of public powers, the number of moduli, their width, and which
//! of them are the same reference.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, CtEq, Limb, Unsigned};

use crate::checks::check_batch;
use crate::monty::ModulusRef;
use crate::public_exponent::PublicExponent;
use crate::secret::Secret;
use crate::width::{MAX_BITS, clear, place, width};
use crate::{Error, ModExp};

/// The arithmetic that RSA needs, on flat numbers.
///
/// Callers use the provided methods. They check the lengths of a request before they pass it to the
/// `run_` method that each engine implements. All operations are constant-time in every secret.
///
/// Only crates of this workspace implement it; `batch-modexp` does not export it. No foreign code
/// therefore checks the results of private operations.
pub trait Engine: Sync {
    /// The engine's name, for users.
    fn name(&self) -> &'static str;

    /// The bound of trial division for candidates for primes of 1024 bits. To divide by a prime above
    /// it takes longer than the primality tests that this saves; estimated. Fast engines have low
    /// bounds.
    fn trial_division_bound(&self) -> u32;

    /// Computes powers with secret exponents: see [`SecretPowers`].
    ///
    /// # Panics
    ///
    /// Those of [`SecretPowers::assert_lengths`].
    fn pow(&self, powers: SecretPowers<'_>) {
        powers.assert_lengths();
        self.run_pow(powers);
    }

    /// `a[i] * b[i] mod moduli[i]`. The factors may have any value.
    ///
    /// # Panics
    ///
    /// If the moduli are too wide or not equally wide, or if there is not a number for each of them.
    fn products(&self, moduli: Moduli<'_>, a: &[Limb], b: &[Limb]) -> Secret<Vec<Limb>> {
        let len = moduli.len() * size_of_all(moduli);
        assert_eq!([a.len(), b.len()], [len; 2], "a number for each modulus");
        let mut out = Secret::new(vec![Limb::ZERO; len]);
        self.run_products(moduli, [a, b], &mut out);
        out
    }

    /// `bases[i]^exponent mod moduli[i]`. The bases may have any value.
    ///
    /// # Panics
    ///
    /// If the moduli are too wide or not equally wide, or if there is not a number for each of them.
    fn public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
    ) -> Secret<Vec<Limb>> {
        let len = moduli.len() * size_of_all(moduli);
        assert_eq!(bases.len(), len, "a number for each modulus");
        let mut out = Secret::new(vec![Limb::ZERO; len]);
        self.run_public_powers(moduli, exponent, bases, &mut out);
        out
    }

    /// `numbers[i] mod moduli[i]`, as long as the moduli. The numbers may have any value. They are
    /// equally long, at most twice as long as the moduli.
    ///
    /// # Panics
    ///
    /// If the moduli are too wide, not equally wide, or too short for the numbers, or if there is not
    /// a number for each modulus.
    fn remainders(&self, moduli: Moduli<'_>, numbers: &[Limb]) -> Secret<Vec<Limb>> {
        let len = moduli.len() * size_of_all(moduli);
        assert!(numbers.len().is_multiple_of(moduli.len().max(1)));
        assert!(numbers.len() <= 2 * len);
        let mut out = Secret::new(vec![Limb::ZERO; len]);
        self.run_remainders(moduli, numbers, &mut out);
        out
    }

    /// Tells for each item whether `bases[i]^exponent` is `expected[i]` modulo `moduli[i]`, the
    /// product of its factors. Expected powers are below the moduli; bases may have any value.
    ///
    /// Engines with SIMD lanes compare modulo the factors, if there are any, which takes less time.
    ///
    /// # Panics
    ///
    /// Those of [`Comparison::assert_lengths`] and [`public_powers`](Self::public_powers). Engines
    /// with lanes also panic if the factors are too short for the numbers.
    fn powers_agree(&self, moduli: Moduli<'_>, comparison: &Comparison<'_>) -> Vec<Choice> {
        comparison.assert_lengths();
        let in_lanes = match comparison.factors[0].is_empty() {
            true => None,
            false => self.run_comparison(comparison),
        };
        in_lanes.unwrap_or_else(|| {
            let powers = self.public_powers(moduli, comparison.exponent, comparison.bases);
            let size = size_of_all(moduli).max(1);
            let expected = comparison.expected.chunks_exact(size);
            let pairs = powers.chunks_exact(size).zip(expected);
            pairs
                .map(|(power, expected)| ct_eq(power, expected))
                .collect()
        })
    }

    /// Implements [`pow`](Self::pow).
    fn run_pow(&self, powers: SecretPowers<'_>);

    /// Implements [`products`](Self::products).
    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]);

    /// Implements [`public_powers`](Self::public_powers).
    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    );

    /// Implements [`remainders`](Self::remainders).
    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]);

    /// Implements [`powers_agree`](Self::powers_agree) modulo the factors, for numbers of any value.
    /// `None` without SIMD lanes.
    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>>;
}

/// [`BatchModExp::batch_mod_exp`](crate::BatchModExp::batch_mod_exp) by an engine, which is not
/// generic over a caller's numbers: Rust compiles generic code again in every crate that calls it, and
/// the kernels of an engine take minutes.
///
/// # Errors
///
/// Those of [`check_batch`].
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub fn batch_mod_exp<U: Unsigned>(
    engine: &dyn Engine,
    batch: &[ModExp<'_, U>],
    exponent_bits: u32,
    out: &mut [U],
) -> Result<(), Error> {
    /// A multiple of the lanes of every engine. More numbers would not fit into a cache.
    const MOST: usize = 512;
    check_batch(batch, exponent_bits, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let bits = |instance: &ModExp<'_, U>| width(instance.params.modulus().as_ref());
    let runs = batch.chunk_by(|a, b| bits(a) == bits(b));
    let mut places = out.iter_mut();
    for run in runs.flat_map(|run| run.chunks(MOST)) {
        let moduli: Vec<_> = run.iter().map(|x| ModulusRef::of(x.params)).collect();
        let exponents: Vec<_> = run.iter().map(|x| x.exponent.as_limbs()).collect();
        let size = size_of_all(&moduli);
        let zeros = || Secret::new(vec![Limb::ZERO; moduli.len() * size]);
        let (mut bases, mut powers) = (zeros(), zeros());
        for (base, instance) in bases.chunks_exact_mut(size).zip(run) {
            let limbs = instance.base.as_limbs();
            base[..limbs.len()].copy_from_slice(limbs);
        }
        engine.pow(SecretPowers {
            moduli: &moduli,
            exponents: &exponents,
            exponent_bits,
            bases: &bases,
            out: &mut powers,
        });
        let powers = powers.chunks_exact(size).zip(run);
        for ((power, instance), out) in powers.zip(&mut places) {
            place(out, instance.params.modulus().as_ref()).copy_from_slice(power);
        }
    }
    Ok(())
}

/// The moduli of flat numbers, all equally wide, at most [`MAX_BITS`] bits.
pub type Moduli<'a> = &'a [ModulusRef<'a>];

/// The bits of a mask: see [`Comparison`].
pub const MASK_BITS: u32 = 12;

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

/// Powers to compare with expected values, modulo two factors if there are any. Numbers may be twice
/// as long as the factors. Everything is secret except the exponent and which factors are the same
/// reference.
pub struct Comparison<'a> {
    /// The first factors, then the second ones; odd and all equally wide. Or none.
    pub factors: [Moduli<'a>; 2],
    /// The exponent of all bases.
    pub exponent: Exponent<'a>,
    /// A number for each pair of factors, of any value.
    pub bases: &'a [Limb],
    /// The expected powers. Modulo factors they may have any value.
    pub expected: &'a [Limb],
    /// Random numbers, one for each factor. A lane computes modulo an odd multiple of its factor,
    /// which the low [`MASK_BITS`] bits determine. This way the base and its power, which others
    /// know, are not reduced by the same secret number every time.
    pub masks: Option<&'a [u16]>,
}

impl Comparison<'_> {
    /// Checks the lengths of the buffers.
    ///
    /// # Panics
    ///
    /// If the factors are too wide or not equally wide, or if a buffer does not have a number or a
    /// mask for each of them.
    pub fn assert_lengths(&self) {
        let [first, second] = self.factors;
        let (count, size) = (first.len(), size_of_all(first));
        assert_eq!([size_of_all(second), second.len()], [size, count]);
        assert_eq!(self.bases.len(), self.expected.len());
        assert!(self.bases.len().is_multiple_of(count.max(1)));
        assert_eq!(self.masks.map_or(2 * count, <[u16]>::len), 2 * count);
    }
}

/// Whether two numbers of equal length are equal, in constant time.
#[must_use]
pub fn ct_eq(a: &[Limb], b: &[Limb]) -> Choice {
    let pairs = a.iter().zip(b);
    let difference = pairs.fold(Limb::ZERO, |bits, (a, b)| bits | (*a ^ *b));
    difference.ct_eq(&Limb::ZERO)
}

/// The number of limbs of each modulus; 0 without moduli.
///
/// # Panics
///
/// If the moduli have no limbs, more than 16,384 bits, or different widths, or a constant has another
/// width.
fn size_of_all(moduli: Moduli<'_>) -> usize {
    const MOST: usize = (MAX_BITS / Limb::BITS) as usize;
    let Some(first) = moduli.first() else {
        return 0;
    };
    let size = first.limbs.len();
    assert!((1..=MOST).contains(&size), "moduli of 1 to 16,384 bits");
    assert!(
        moduli
            .iter()
            .all(|modulus| [modulus.limbs.len(), modulus.r2.len()] == [size; 2]),
        "moduli of one batch are equally wide, and so are their constants"
    );
    size
}

/// A public exponent of at least 1.
#[derive(Clone, Copy)]
pub struct Exponent<'a> {
    limbs: &'a [Limb],
    /// The index of its highest bit.
    top: u32,
    /// The index of its lowest bit that counts; lower bits are taken as 0.
    lowest: u32,
}

impl<'a> Exponent<'a> {
    /// The exponent `exponent`, least significant limb first.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn new(exponent: &'a (impl AsRef<[Limb]> + ?Sized)) -> Self {
        let limbs = exponent.as_ref();
        let highest = limbs.iter().rposition(|limb| limb.0 != 0);
        let highest = highest.expect("a public exponent is at least 1");
        Self {
            limbs,
            top: (highest as u32 + 1) * Limb::BITS - 1 - limbs[highest].0.leading_zeros(),
            lowest: 0,
        }
    }

    /// The length of the exponent in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.top + 1
    }

    /// The exponent `odd - 1`.
    ///
    /// # Panics
    ///
    /// If `odd` is even or 1.
    #[must_use]
    pub fn one_less(odd: &'a (impl AsRef<[Limb]> + ?Sized)) -> Self {
        let exponent = Self::new(odd);
        assert!(exponent.top >= 1 && exponent.limbs[0].0 & 1 == 1);
        Self {
            lowest: 1,
            ..exponent
        }
    }

    /// The squarings and products that raise a number to this exponent.
    #[must_use]
    pub fn prepare(self) -> PublicExponent {
        PublicExponent::of_bits(self.bits(), |bit| {
            let limb = self.limbs[(bit / Limb::BITS) as usize].0;
            bit >= self.lowest && (limb >> (bit % Limb::BITS)) & 1 == 1
        })
    }
}
