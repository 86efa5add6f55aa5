//! Batches of exponentiations of all shapes on every CPU backend, compared with num-bigint.

use batch_modexp::{BatchModExp, BatchModExpEach as _, Error, ModExp};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};
use num_bigint::BigUint;

use super::input::Input;
use super::keys::backends;

/// The widest modulus in words of 64 bits: wider than one tile of `Ifma` or `Fma`.
const MAX_WORDS: usize = 20;

struct Instance {
    base: BigUint,
    exponent: BigUint,
    /// The width in bits.
    exponent_width: u32,
    base_width: u32,
    /// The index in the list of moduli.
    modulus: usize,
    /// The exponent bits, in a batch with separate lengths.
    exponent_bits: u32,
}

struct Batch {
    /// Odd moduli, with their widths in bits.
    moduli: Vec<(BigUint, u32)>,
    instances: Vec<Instance>,
    /// The exponent bits of all instances, or `None` for separate lengths.
    exponent_bits: Option<u32>,
}

pub fn run(data: &[u8]) {
    let batch = Batch::read(&mut Input::new(data));
    for (name, backend) in backends() {
        batch.check(name, &**backend);
    }
}

/// Runs an input on one backend.
pub fn run_on(backend: &dyn BatchModExp<BoxedUint, Error = Error>, data: &[u8]) {
    Batch::read(&mut Input::new(data)).check("this backend", backend);
}

impl Batch {
    fn read(input: &mut Input<'_>) -> Self {
        let shape = input.octet();
        // Few batches may have bad instances: such a batch fails as a whole.
        let may_fail = shape & 0x70 == 0x70;
        // Few batches are wide: their time grows with the cube of the width.
        let most = match shape & 7 {
            0 => MAX_WORDS,
            1 | 2 => 8,
            _ => 3,
        };
        let moduli: Vec<_> = (0..=input.below(4))
            .map(|_| {
                let words = 1 + input.below(most);
                let mut modulus = input.number(words);
                modulus.set_bit(0, true);
                (modulus, 64 * words as u32)
            })
            .collect();
        let longest = if most == MAX_WORDS { 300 } else { 700 };
        let instances: Vec<_> = (0..input.below(20))
            .map(|_| {
                let modulus = input.below(moduli.len());
                let width = moduli[modulus].1;
                let kind = input.octet();
                let base_words = match kind & 15 {
                    0 if may_fail => width as usize / 64 + 1,
                    1 => 1,
                    _ => width as usize / 64,
                };
                let exponent_words = match kind >> 4 {
                    0 => 1 + input.below(11),
                    1 => 1,
                    _ => (width as usize / 64).min(5),
                };
                let exponent_width = 64 * exponent_words as u32;
                let mut base = input.number(base_words);
                if kind >> 4 == 15 {
                    // The modulus and its neighbours.
                    let modulus = &moduli[modulus].0;
                    base = (modulus + 1u8 - input.below(3))
                        % (BigUint::from(1u8) << (64 * base_words));
                }
                let most = exponent_width.min(longest);
                Instance {
                    base,
                    base_width: 64 * base_words as u32,
                    exponent: input.number(exponent_words),
                    exponent_width,
                    modulus,
                    exponent_bits: u32::from(input.u16()) % (most + 1 + u32::from(may_fail)),
                }
            })
            .collect();
        let narrowest = instances.iter().map(|x| x.exponent_width).min();
        let most = narrowest.unwrap_or(0).min(longest);
        let shared = u32::from(input.u16()) % (most + 1 + u32::from(may_fail));
        Self {
            moduli,
            instances,
            exponent_bits: (shape & 8 == 0).then_some(shared),
        }
    }

    fn bits(&self, instance: &Instance) -> u32 {
        self.exponent_bits.unwrap_or(instance.exponent_bits)
    }

    fn is_valid(&self) -> bool {
        self.instances
            .iter()
            .all(|x| x.base_width <= self.moduli[x.modulus].1 && self.bits(x) <= x.exponent_width)
    }

    fn check(&self, name: &str, backend: &dyn BatchModExp<BoxedUint, Error = Error>) {
        let params: Vec<_> = self
            .moduli
            .iter()
            .map(|(n, width)| BoxedMontyParams::new(Odd::new(boxed(n, *width)).unwrap()))
            .collect();
        let values: Vec<_> = self
            .instances
            .iter()
            .map(|x| {
                (
                    boxed(&x.base, x.base_width),
                    boxed(&x.exponent, x.exponent_width),
                )
            })
            .collect();
        let batch: Vec<_> = values
            .iter()
            .zip(&self.instances)
            .map(|((base, exponent), x)| ModExp::new(base, exponent, params[x.modulus].as_ref()))
            .collect();
        // The old content must not matter.
        let mut out = vec![BoxedUint::max(128); batch.len()];
        let result = match self.exponent_bits {
            Some(bits) => backend.batch_mod_exp(&batch, bits, &mut out),
            None => {
                let bits: Vec<_> = self.instances.iter().map(|x| x.exponent_bits).collect();
                backend.batch_mod_exp_each(&batch, &bits, &mut out)
            }
        };
        if !self.is_valid() {
            self.check_error(name, &result.unwrap_err());
            assert!(
                out.iter().all(|value| value.is_zero().to_bool()),
                "{name}: no zeros"
            );
            return;
        }
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (i, (value, x)) in out.iter().zip(&self.instances).enumerate() {
            let (modulus, width) = &self.moduli[x.modulus];
            let bits = self.bits(x);
            let exponent = &x.exponent % (BigUint::from(1u8) << bits);
            let expected = x.base.modpow(&exponent, modulus);
            assert_eq!(big(value), expected, "{name}: instance {i}, {bits} bits");
            assert_eq!(value.bits_precision(), *width, "{name}: instance {i}");
        }
    }

    /// Checks that an error names an instance that has it.
    fn check_error(&self, name: &str, error: &Error) {
        let is_right = match *error {
            Error::BaseWidth {
                index,
                bits,
                modulus_bits,
            } => {
                let x = &self.instances[index];
                (bits, modulus_bits) == (x.base_width, self.moduli[x.modulus].1)
                    && bits > modulus_bits
            }
            Error::ExponentBits {
                index,
                exponent_bits,
                width,
            } => {
                let x = &self.instances[index];
                (exponent_bits, width) == (self.bits(x), x.exponent_width) && exponent_bits > width
            }
            _ => false,
        };
        assert!(is_right, "{name}: {error}");
    }
}

pub fn boxed(value: &BigUint, width: u32) -> BoxedUint {
    BoxedUint::from_le_slice(&value.to_bytes_le(), width).unwrap()
}

pub fn big(value: &BoxedUint) -> BigUint {
    let limbs = value.as_limbs().iter().rev();
    limbs.fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
}
