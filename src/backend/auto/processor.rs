//! Products and powers of fixed bases, which always run on the processor.

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModMul, Error, ModMul, Serial};
use crypto_bigint::Unsigned;

use super::{Auto, Chosen};

/// Products run on the processor, even with GPUs, with the same engine as exponentiations there.
///
/// Copying numbers between host and device takes longer than multiplying them on the host.
impl<U> BatchModMul<U> for Auto
where
    U: Unsigned + Sync,
    Serial: BatchModMul<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.processor().batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.processor().batch_monty_mul(batch, out)
    }
}

impl Auto {
    /// The backend of the processor.
    fn processor<U>(&self) -> &dyn BatchModMul<U, Error = Error>
    where
        U: Unsigned + Sync,
        Serial: BatchModMul<U, Error = Error>,
    {
        match self.chosen() {
            Chosen::Serial(serial) => serial,
            Chosen::Cpu(cpu) => cpu,
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.host(),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.cuda().host(),
        }
    }
}

/// The engine of the processor, even with GPUs.
impl HasPowerEngine for Auto {
    fn power_engine(&self) -> &dyn PowerEngine {
        match self.chosen() {
            Chosen::Serial(serial) => serial,
            Chosen::Cpu(cpu) => cpu.power_engine(),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.host().power_engine(),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.cuda().host().power_engine(),
        }
    }
}
