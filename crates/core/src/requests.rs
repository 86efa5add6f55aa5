//! Requests of RSA to an [engine](crate::engine), around its exponentiations with secret exponents: products with public
//! powers, comparisons of such powers, and remainders, of many numbers in flat buffers.
//!
//! A flat buffer holds numbers one after the other, each as many limbs long as the moduli, least significant
//! limb first. Number `i` belongs to modulus `i`. All numbers and moduli are secret; how many there are, how wide they
//! are and which moduli are the same reference is public, and so are the exponents.

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb};

/// The moduli of flat numbers: all equally wide, at most [`MAX_BITS`](crate::width::MAX_BITS) bits.
pub type Moduli<'a> = &'a [&'a MontyParams<BoxedUint>];

/// The bits of a mask: see [`Powers`].
pub const MASK_BITS: u32 = 12;

/// Products with public powers, and where they go: below the moduli, for bases and factors of any value.
pub struct Product<'a> {
    /// One for each number.
    pub moduli: Moduli<'a>,
    /// The exponent of all bases.
    pub exponent: Exponent<'a>,
    /// A number for each modulus, of any value.
    pub bases: &'a [Limb],
    /// Factors of the powers, if there are any.
    pub factors: Option<&'a [Limb]>,
    /// `factors[i] * bases[i]^exponent mod moduli[i]`, without `factors` the power alone.
    pub out: &'a mut [Limb],
    /// If wanted, `out[i] * bases[i] mod moduli[i]`.
    pub times_base: Option<&'a mut [Limb]>,
}

impl Product<'_> {
    /// Checks that the buffers have the lengths that they should have.
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide, or a buffer does not have a number for each modulus.
    pub fn assert_lengths(&self) {
        let len = self.moduli.len() * size_of_all(self.moduli);
        let lens = [
            self.bases.len(),
            self.out.len(),
            self.factors.map_or(len, <[Limb]>::len),
            self.times_base.as_ref().map_or(len, |out| out.len()),
        ];
        assert_eq!(lens, [len; 4], "a number for each modulus");
    }
}

/// Powers with secret exponents, and where they go: below the moduli, for bases of any value.
pub struct SecretPowers<'a> {
    /// One for each number.
    pub moduli: Moduli<'a>,
    /// One for each modulus, none narrower than `exponent_bits`.
    pub exponents: &'a [&'a BoxedUint],
    /// The low bits of the exponents that count; public.
    pub exponent_bits: u32,
    /// A number for each modulus, of any value.
    pub bases: &'a [Limb],
    /// `bases[i]^exponents[i] mod moduli[i]`.
    pub out: &'a mut [Limb],
}

impl<'a> SecretPowers<'a> {
    /// Checks that the buffers have the lengths that they should have.
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide, a buffer does not have a number for each modulus, or an exponent is narrower
    /// than `exponent_bits`.
    pub fn assert_lengths(&self) {
        let (count, size) = (self.moduli.len(), self.limbs());
        let lens = [
            self.bases.len(),
            self.out.len(),
            self.exponents.len() * size,
        ];
        assert_eq!(lens, [count * size; 3], "a number for each modulus");
        let is_wide = |exponent: &&BoxedUint| exponent.bits_precision() >= self.exponent_bits;
        assert!(
            self.exponents.iter().all(is_wide),
            "an exponent is too narrow"
        );
    }

    /// Limbs of each modulus.
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide.
    #[must_use]
    pub fn limbs(&self) -> usize {
        size_of_all(self.moduli)
    }

    /// The first `middle` powers, and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer, or the lengths are not as [`assert_lengths`](Self::assert_lengths) wants them.
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

/// Numbers to be reduced, and where the remainders go. The numbers, of any value, are equally long, at most twice as long as
/// the moduli; the remainders are as long as the moduli.
pub struct Reduction<'a> {
    /// One for each number.
    pub moduli: Moduli<'a>,
    /// One for each modulus.
    pub numbers: &'a [Limb],
    /// `numbers[i] mod moduli[i]`.
    pub out: &'a mut [Limb],
}

impl Reduction<'_> {
    /// Checks that the buffers have the lengths that they should have.
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide or too short for the numbers, or if a buffer does not have a number for each of
    /// them.
    pub fn assert_lengths(&self) {
        let (count, size) = (self.moduli.len(), size_of_all(self.moduli));
        assert_eq!(self.out.len(), count * size);
        assert!(self.numbers.len().is_multiple_of(count.max(1)));
        assert!(self.numbers.len() <= 2 * count * size);
    }
}

/// Powers that should be what is expected, modulo numbers with two factors. Flat numbers may be twice as long as the
/// factors here. All is secret but the exponent, and which factors are the same reference.
pub struct Powers<'a> {
    /// The first factors, and then the second ones: odd, and all of them equally wide.
    pub factors: [Moduli<'a>; 2],
    /// No factor has fewer bits; public.
    pub factor_bits: u32,
    /// The exponent of all bases.
    pub exponent: Exponent<'a>,
    /// A number for each pair of factors, of any value.
    pub bases: &'a [Limb],
    /// What their powers should be, of any value.
    pub expected: &'a [Limb],
    /// Random numbers, one for each factor: the lane's computation is modulo an odd multiple of the factor that follows
    /// from the low [`MASK_BITS`] bits. So what is known to others, the base and its power, is not reduced by the same
    /// secret number again and again.
    pub masks: Option<&'a [u16]>,
}

impl Powers<'_> {
    /// Checks that the buffers have the lengths that they should have.
    ///
    /// # Panics
    ///
    /// If the factors are not equally wide, or if a buffer does not have a number, or a mask, for each of them.
    pub fn assert_lengths(&self) {
        let [first, second] = self.factors;
        let (count, size) = (first.len(), size_of_all(first));
        assert_eq!([size_of_all(second), second.len()], [size, count]);
        assert_eq!(self.bases.len(), self.expected.len());
        assert!(self.bases.len().is_multiple_of(count.max(1)));
        assert_eq!(self.masks.map_or(2 * count, <[u16]>::len), 2 * count);
    }
}

/// The limbs of each number.
fn size_of_all(moduli: Moduli<'_>) -> usize {
    let size = |modulus: &MontyParams<BoxedUint>| modulus.modulus().as_ref().as_limbs().len();
    let first = moduli.first().map_or(0, |modulus| size(modulus));
    assert!(
        moduli.iter().all(|modulus| size(modulus) == first),
        "moduli of one batch are equally wide"
    );
    first
}

/// A public exponent of at least 1.
#[derive(Clone, Copy)]
pub struct Exponent<'a> {
    limbs: &'a [Limb],
    /// The index of its highest bit.
    top: u32,
    /// The index of its lowest bit that counts; those below are taken for 0.
    lowest: u32,
}

impl<'a> Exponent<'a> {
    /// The number 1.
    pub const ONE: Exponent<'static> = Exponent {
        limbs: &[Limb::ONE],
        top: 0,
        lowest: 0,
    };

    /// All of `exponent`.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn new(exponent: &'a BoxedUint) -> Self {
        let bits = exponent.bit_width_vartime();
        assert!(bits >= 1, "a public exponent is at least 1");
        Self {
            limbs: exponent.as_limbs(),
            top: bits - 1,
            lowest: 0,
        }
    }

    /// `odd - 1`.
    ///
    /// # Panics
    ///
    /// If `odd` is even or 1.
    #[must_use]
    pub fn one_less(odd: &'a BoxedUint) -> Self {
        let exponent = Self::new(odd);
        assert!(exponent.top >= 1 && exponent.limbs[0].0 & 1 == 1);
        Self {
            lowest: 1,
            ..exponent
        }
    }

    /// Whether it is 1.
    #[must_use]
    pub fn is_one(self) -> bool {
        self.top == 0
    }

    /// Its bits below the highest one, from the top, each with whether it is the last.
    pub fn lower_bits(self) -> impl Iterator<Item = (bool, bool)> {
        (0..self.top).rev().map(move |bit| {
            let limb = self.limbs[(bit / Limb::BITS) as usize].0;
            let is_set = (limb >> (bit % Limb::BITS)) & 1 == 1;
            (is_set && bit >= self.lowest, bit == 0)
        })
    }
}
