//! The engine of one thread, chosen at run time, and the work that [`Serial`] does faster.

use alloc::vec::Vec;

use batch_modexp_core::batch::{Form, batch_mod_exp};
use batch_modexp_core::engine::{Comparison, Engine, Moduli, SecretPowers};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul, PublicExponent, Serial};
use crypto_bigint::{Choice, Limb, Unsigned};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::Fma;
#[cfg(target_arch = "x86_64")]
use crate::Ifma;
use crate::lanes::{SimdEngine, products};

/// One of the engines, chosen at run time. The SIMD engines pass to [`Serial`] the work that it
/// does faster.
#[derive(Clone, Copy, Debug)]
pub enum AnyEngine {
    /// The portable reference.
    Serial,
    /// Fused multiply-add of doubles.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Fma(Fma),
    /// AVX-512 IFMA or AVX-IFMA.
    #[cfg(target_arch = "x86_64")]
    Ifma(Ifma),
}

impl AnyEngine {
    /// The best engine of this processor.
    #[must_use]
    pub fn fastest() -> Self {
        Self::all().next().unwrap_or(Self::Serial)
    }

    /// The engines of this processor, the fastest first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::each().flatten()
    }

    /// Every engine, the fastest first, or why this processor lacks it.
    pub fn each() -> impl Iterator<Item = Result<Self, Error>> {
        [Self::ifma(), Self::fma(), Ok(Self::Serial)].into_iter()
    }

    /// Fused multiply-add of doubles.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the processor lacks the instructions.
    pub fn fma() -> Result<Self, Error> {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Some(fma) = Fma::new() {
            return Ok(Self::Fma(fma));
        }
        Err(Error::Unsupported {
            backend: "fma",
            needs: "an x86-64 processor with AVX2 and FMA, or a 64-bit Arm",
        })
    }

    /// AVX-512 IFMA or AVX-IFMA.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the processor lacks the instructions.
    pub fn ifma() -> Result<Self, Error> {
        #[cfg(target_arch = "x86_64")]
        if let Some(ifma) = Ifma::new() {
            return Ok(Self::Ifma(ifma));
        }
        Err(Error::Unsupported {
            backend: "ifma",
            needs: "an x86-64 processor with AVX-512 F and IFMA, or with AVX-IFMA",
        })
    }

    /// The engine's name, for users.
    #[must_use]
    pub fn name(self) -> &'static str {
        Engine::name(&self)
    }

    /// The engine inside, if it has lanes.
    fn simd(&self) -> Option<&dyn SimdEngine> {
        match self {
            Self::Serial => None,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Fma(fma) => Some(fma.simd()),
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => Some(ifma.simd()),
        }
    }

    /// The engine inside.
    fn engine(&self) -> &dyn Engine {
        self.simd().map_or(&Serial, |simd| simd)
    }

    /// The engine for products modulo each of `moduli`: see
    /// [`Profile::products_on_serial`](crate::lanes::Profile::products_on_serial).
    fn for_products(&self, moduli: Moduli<'_>, is_one: bool) -> &dyn Engine {
        let (bits, count) = (moduli.first().map_or(0, ModulusRef::width), moduli.len());
        match self.simd() {
            Some(simd) if !simd.profile().products_on_serial(bits, count, is_one) => simd,
            _ => &Serial,
        }
    }
}

/// Requests on flat numbers, on the engine itself or on [`Serial`] where that is faster.
impl Engine for AnyEngine {
    fn name(&self) -> &'static str {
        self.engine().name()
    }

    fn trial_division_bound(&self) -> u32 {
        self.engine().trial_division_bound()
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let Some(simd) = self.simd() else {
            return Serial.run_pow(powers);
        };
        let count = powers.moduli.len();
        let bits = powers.moduli.first().map_or(0, ModulusRef::width);
        let on_serial = simd.profile().on_serial(bits, count);
        let (in_lanes, on_serial) = powers.split_at(count - on_serial);
        simd.run_pow(in_lanes);
        Serial.run_pow(on_serial);
    }

    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        self.for_products(moduli, true)
            .run_products(moduli, factors, out);
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        self.for_products(moduli, false)
            .run_public_powers(moduli, exponent, bases, out);
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        self.for_products(moduli, true)
            .run_remainders(moduli, numbers, out);
    }

    fn run_powers_agree(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        self.engine().run_powers_agree(comparison)
    }
}

impl HasPowerEngine for AnyEngine {
    fn power_engine(&self) -> &dyn PowerEngine {
        self.simd().map_or(&Serial, |simd| simd)
    }
}

impl<U: Unsigned> BatchModExp<U> for AnyEngine {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self, batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        self.simd().map_or(1, |simd| simd.profile().lanes)
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        match self.simd() {
            Some(simd) => simd.profile().relative_time(bits, count),
            None => count as u64,
        }
    }
}

impl<U: Unsigned> BatchModMul<U> for AnyEngine {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(self, Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(self, Form::Montgomery, batch, out)
    }
}

/// Computes runs of equally wide moduli in lanes if they are long enough, else on [`Serial`].
fn multiply<U: Unsigned>(
    engine: &AnyEngine,
    form: Form,
    batch: &[ModMul<'_, U>],
    out: &mut [U],
) -> Result<(), Error> {
    products::batch_mod_mul(batch, out, |run| {
        let moduli = run.batch.iter().map(|instance| instance.params);
        let fewest = engine
            .simd()
            .map_or(&[][..], |simd| simd.profile().products);
        match (engine.simd(), form) {
            (Some(simd), _) if products::is_faster(fewest, form, moduli) => {
                simd.multiply(form, run);
                Ok(())
            }
            (_, Form::Ordinary) => Serial.batch_mod_mul(run.batch, run.out),
            (_, Form::Montgomery) => Serial.batch_monty_mul(run.batch, run.out),
        }
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use crypto_bigint::modular::BoxedMontyParams;
    use crypto_bigint::{BoxedUint, Odd};

    use super::*;

    #[test]
    fn few_products_are_computed_one_by_one() {
        let chosen = |engine: &AnyEngine, bits, count, once| {
            let params = BoxedMontyParams::new(Odd::new(BoxedUint::max(bits)).unwrap());
            engine
                .for_products(&vec![ModulusRef::of(params.as_ref()); count], once)
                .name()
        };
        for engine in AnyEngine::all().filter(|engine| engine.simd().is_some()) {
            let name = engine.name();
            for bits in [512, 1024] {
                assert_eq!(chosen(&engine, bits, 2, false), name);
                assert_eq!(chosen(&engine, bits, 16, true), name);
                let is_eight = BatchModExp::<BoxedUint>::granularity(&engine) == 8;
                let few = [
                    (chosen(&engine, bits, 1, false), is_eight),
                    (chosen(&engine, bits, 15, true), is_eight && bits == 1024),
                ];
                for (chosen, in_lanes) in few {
                    assert_eq!(
                        chosen,
                        if in_lanes { name } else { "serial" },
                        "{bits} bits"
                    );
                }
            }
        }
    }

    /// Whether this many instances use lanes, by the table of `Fma`.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn goes_to_lanes(bits: u32, count: usize, form: Form, moduli: usize) -> bool {
        let modulus = BoxedUint::max(bits);
        let params = || BoxedMontyParams::new(Odd::new(modulus.clone()).unwrap());
        let params: Vec<_> = (0..moduli).map(|_| params()).collect();
        let batch: Vec<_> = (0..count)
            .map(|i| ModMul::new(&modulus, &modulus, params[i * moduli / count].as_ref()))
            .collect();
        products::is_faster(
            crate::fma::PROFILE.products,
            form,
            batch.iter().map(|instance| instance.params),
        )
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn the_choice_follows_from_public_numbers() {
        use Form::{Montgomery, Ordinary};
        for (bits, count, form, moduli, expected) in [
            (448, 1000, Ordinary, 1, false),
            (512, 255, Ordinary, 1, false),
            (512, 256, Ordinary, 1, true),
            (512, 256, Montgomery, 1, false),
            (960, 256, Ordinary, 16, true),
            (960, 256, Ordinary, 256, false),
            (2048, 4, Ordinary, 1, true),
            (2048, 7, Ordinary, 7, false),
            (2048, 8, Montgomery, 8, true),
            (16_384, 3, Ordinary, 1, true),
        ] {
            let actual = goes_to_lanes(bits, count, form, moduli);
            assert_eq!(
                actual, expected,
                "{count} of {bits} bits, {form:?}, {moduli}"
            );
        }
    }
}
