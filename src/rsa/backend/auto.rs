//! The choice between processor and GPUs for RSA operations.

use super::RsaBackend;
#[cfg(feature = "cuda")]
use super::{HostEngine, Items, ModulusRef, PerThread, SecretPowers};
use crate::backend::Auto;
use crate::backend::auto::Chosen;
#[cfg(feature = "cuda")]
use crate::backend::auto::{
    both::Both,
    cost::{Shape, Side},
};
use crate::rsa::KeyHandle;
#[cfg(feature = "cuda")]
use crate::rsa::error::Error;
#[cfg(feature = "cuda")]
use crate::rsa::key::KeyClass;

#[cfg(feature = "cuda")]
impl RsaBackend for Both {
    // Key generation calls this on all threads.
    fn exponentiate(&self, mut powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        let shape = Shape {
            kind: "exponentiation of a thread",
            bits: powers.moduli.first().map_or(0, ModulusRef::width),
            product_bits: None,
            exponent_bits: powers.exponent_bits,
        };
        let count = powers.moduli.len();
        let thread = self.cuda.host().parallel().inner();
        self.run_beside_others(shape, count, &mut powers, |powers, side| match side {
            Side::Cpu => thread.exponentiate(powers.reborrow()),
            Side::Gpu => self.cuda.exponentiate(powers.reborrow()),
        })
    }

    fn compute(&self, mut items: Items<'_>) -> Result<(), Error> {
        let count = items.exponentiations() * items.len();
        let class = &items.batch.class;
        let shape = match class.is_private {
            true => shape(class),
            false => Shape {
                kind: "public operation",
                bits: class.n_width,
                product_bits: None,
                exponent_bits: class.exponent().bits(),
            },
        };
        self.run(shape, count, &mut items, |items, side| match side {
            Side::Cpu => self.cuda.host().compute(items.reborrow()),
            Side::Gpu => self.cuda.compute(items.reborrow()),
        })
    }

    fn engine(&self) -> HostEngine<'_> {
        self.cuda.engine()
    }

    fn per_host_thread(&self) -> Option<PerThread<'_>> {
        self.cuda.per_host_thread()
    }
}

/// A private operation is two exponentiations modulo primes, or one modulo n.
#[cfg(feature = "cuda")]
fn shape(class: &KeyClass<'_>) -> Shape {
    Shape {
        kind: "private operation",
        bits: class.prime.map_or(class.n_width, |prime| prime.width),
        product_bits: class.prime.map(|_| class.n_width),
        exponent_bits: class.prime.map_or(class.n_width, |prime| prime.bits),
    }
}

impl Auto {
    /// The smallest batch of private operations with keys like `key` that goes to the GPUs. See
    /// [`break_even`](Self::break_even) for exponentiations.
    #[must_use]
    pub fn rsa_break_even(&self, key: &KeyHandle) -> Option<usize> {
        match self.chosen() {
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => {
                let class = KeyClass::of(key.parts());
                let exponentiations = class.exponentiations();
                let count = both.break_even(shape(&class))?;
                Some(count.div_ceil(exponentiations))
            }
            Chosen::Cpu(_) => {
                let _ = key;
                None
            }
        }
    }
}

impl Chosen {
    pub(super) fn backend(&self) -> &dyn RsaBackend {
        match self {
            Self::Cpu(cpu) => cpu,
            #[cfg(feature = "cuda")]
            Self::Both(both) => both,
        }
    }
}
