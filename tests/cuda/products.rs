//! Large batches of products.

use batch_modexp::backend::{Cpu, Cuda};
use batch_modexp::{BatchModMul, Error, ModMul};
use crypto_bigint::BoxedUint;
use num_bigint::BigUint;

use super::{Batch, assert_same, gpu};

/// The widths of all kernels, narrower ones with a separate radix, and one without a kernel.
const WIDTHS: [u32; 9] = [64, 128, 192, 256, 320, 384, 448, 512, 576];

impl Batch {
    /// The products of bases and exponents.
    fn mod_muls(&self) -> Vec<ModMul<'_, BoxedUint>> {
        self.instances
            .iter()
            .map(|(a, b, modulus)| ModMul::new(a, b, self.moduli[*modulus].as_ref()))
            .collect()
    }

    /// Reduces the bases below their moduli, as Montgomery forms are.
    fn with_reduced_bases(mut self) -> Self {
        for (base, _, modulus) in &mut self.instances {
            let modulus = self.moduli[*modulus].modulus().as_nz_ref();
            *base = base.rem(modulus);
        }
        self
    }

    fn multiply(&self, backend: &dyn BatchModMul<BoxedUint, Error = Error>) -> [Vec<BoxedUint>; 2] {
        let mut out = [self.zeros(), self.zeros()];
        let [ordinary, montgomery] = &mut out;
        let batch = self.mod_muls();
        backend.batch_mod_mul(&batch, ordinary).unwrap();
        backend.batch_monty_mul(&batch, montgomery).unwrap();
        out
    }

    #[track_caller]
    fn compare_products(&self, cuda: &Cuda) {
        let (device, host) = (self.multiply(cuda), self.multiply(&Cpu::new().unwrap()));
        for (device, host) in device.iter().zip(&host) {
            assert_same(device, host);
        }
    }
}

/// Enough products for several chunks on every device; some are compared with num-bigint.
#[test]
fn random_products_agree_with_the_host() {
    let Some((_memory, cuda)) = gpu() else { return };
    for width in WIDTHS {
        for moduli in [1, 500, 200_000] {
            let batch = Batch::random(width, 200_000, moduli).with_reduced_bases();
            batch.compare_products(&cuda);
            let [results, _] = batch.multiply(&cuda);
            let number = |x: &BoxedUint| BigUint::from_bytes_le(&x.to_le_bytes());
            for (x, result) in batch.mod_muls().iter().zip(&results).step_by(1000) {
                let modulus = number(x.params.modulus().as_ref());
                assert_eq!(number(result), number(x.a) * number(x.b) % modulus);
            }
        }
    }
}

/// Limbs of all ones, around multiples of 32 bits, in all combinations.
#[test]
fn products_of_adversarial_limbs() {
    let Some((_memory, cuda)) = gpu() else { return };
    let power = |bits: u32| BigUint::from(1u8) << bits;
    for width in WIDTHS {
        let ones = power(width) - 1u8;
        let mut values = vec![ones.clone(), &ones / 3u8, power(width - 1) + 1u8];
        for bits in (32..width).step_by(32) {
            values.extend([
                power(bits) - 1u8,
                power(bits) + 1u8,
                &ones - (power(bits) - 1u8),
                &ones - (power(32) - 1u8) * power(bits - 32),
            ]);
        }
        let moduli: Vec<_> = values
            .iter()
            .map(|value| value | BigUint::from(1u8))
            .collect();
        let mut operands = Vec::new();
        for a in &values {
            for b in &values {
                operands.extend(moduli.iter().map(|modulus| {
                    let [a, b] = [a, b].map(|x| {
                        if x < modulus {
                            x.clone()
                        } else {
                            modulus - 1u8
                        }
                    });
                    [a, b]
                }));
            }
        }
        Batch::new(width, &moduli, &operands).compare_products(&cuda);
    }
}

/// A device that is named several times computes several shares, for calls from several threads.
#[test]
fn shares_and_threads() {
    let Some((_memory, cuda)) = gpu() else { return };
    let first = cuda.devices().next().unwrap().ordinal();
    let several = Cuda::with_devices(&[first, first, first]).unwrap();
    let batch = Batch::random(256, 500_000, 3).with_reduced_bases();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| batch.compare_products(&several));
        }
    });
}
