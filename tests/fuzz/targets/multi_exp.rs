//! Products of powers with public exponents on every CPU backend, compared with num-bigint.

use batch_modexp::Error;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::BigUint;

use super::input::Input;
use super::keys::{Backend, backends};
use super::mod_exp::{big, boxed};

/// The widest modulus in words of 64 bits.
const MAX_WORDS: usize = 4;

/// The widest exponents in words of 64 bits.
const MAX_EXPONENT_WORDS: usize = 3;

/// The most terms of an input. They are repeated, because an input with hundreds is slow to change.
const MAX_TERMS: usize = 12;

struct Term {
    base: BigUint,
    /// The width in bits.
    base_width: u32,
    exponent: BigUint,
    /// The width in bits.
    exponent_width: u32,
}

struct Product {
    /// An odd number.
    modulus: BigUint,
    /// The width in bits.
    width: u32,
    terms: Vec<Term>,
}

/// Returns the product or the error.
pub fn run(data: &[u8]) -> Result<BigUint, Error> {
    let product = Product::read(&mut Input::new(data));
    let expected = product.expected();
    for (name, backend) in backends() {
        assert_eq!(product.compute(&**backend), expected, "{name}");
    }
    expected
}

impl Product {
    fn read(input: &mut Input<'_>) -> Self {
        let shape = input.octet();
        // Few products may have bad terms: they have no result.
        let may_fail = shape & 0x70 == 0x70;
        // Few products have many terms.
        let repetitions = match shape & 7 {
            0 => 1 + input.below(32),
            _ => 1,
        };
        let words = 1 + input.below(MAX_WORDS);
        let mut modulus = input.number(words);
        modulus.set_bit(0, true);
        let count = input.below(MAX_TERMS + 1);
        let mut terms = Vec::new();
        for _ in 0..count {
            let kind = input.octet();
            let base_words = match kind & 15 {
                0 if may_fail => words + 1,
                1 => 1,
                _ => words,
            };
            let mut base = input.number(base_words);
            if kind & 15 == 15 {
                // The modulus and its neighbours.
                base = (&modulus + 1u8 - input.below(3)) % (BigUint::from(1u8) << (64 * words));
            }
            let exponent_words = 1 + usize::from(kind >> 4) % MAX_EXPONENT_WORDS;
            let mut exponent = input.number(exponent_words);
            // Shorter ones, of any length.
            if kind & 0x80 != 0 {
                exponent >>= input.octet();
            }
            terms.push(Term {
                base,
                base_width: 64 * base_words as u32,
                exponent,
                exponent_width: 64 * exponent_words as u32,
            });
        }
        for i in 0..count * (repetitions - 1) {
            let Term {
                ref base,
                base_width,
                ref exponent,
                exponent_width,
            } = terms[i];
            // Another power of the same base.
            let term = Term {
                base: base.clone(),
                base_width,
                exponent: (exponent ^ BigUint::from(i)) % (BigUint::from(1u8) << exponent_width),
                exponent_width,
            };
            terms.push(term);
        }
        Self {
            modulus,
            width: 64 * words as u32,
            terms,
        }
    }

    /// The right product, or the index of a base that is too wide.
    fn expected(&self) -> Result<BigUint, Error> {
        let is_bad = |term: &Term| term.base_width > self.width;
        if let Some(index) = self.terms.iter().position(is_bad) {
            return Err(Error::BaseWidth {
                index,
                bits: self.terms[index].base_width,
                modulus_bits: self.width,
            });
        }
        let powers = self
            .terms
            .iter()
            .map(|term| term.base.modpow(&term.exponent, &self.modulus));
        let one = BigUint::from(1u8) % &self.modulus;
        Ok(powers.fold(one, |product, power| product * power % &self.modulus))
    }

    fn compute(&self, backend: &dyn Backend) -> Result<BigUint, Error> {
        let params = BoxedMontyParams::new(Odd::new(boxed(&self.modulus, self.width)).unwrap());
        let numbers: Vec<_> = self
            .terms
            .iter()
            .map(|x| {
                (
                    boxed(&x.base, x.base_width),
                    boxed(&x.exponent, x.exponent_width),
                )
            })
            .collect();
        let terms: Vec<(&BoxedUint, &BoxedUint)> = numbers.iter().map(|(b, e)| (b, e)).collect();
        let product = backend.multi_exp(&terms, &params)?;
        assert_eq!(product.bits_precision(), self.width);
        Ok(big(&product))
    }
}
