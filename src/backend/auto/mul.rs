//! Products, which never go to a GPU.

use crypto_bigint::Unsigned;

use super::{Auto, Chosen};
use crate::backend::Serial;
use crate::{BatchModMul, Error, ModMul};

/// Products are computed on the processor, by whatever computes exponentiations there, also with GPUs: a product of
/// numbers that lie in the memory of the host takes about as long as to copy them to a device and back.
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
    /// What computes on the processor.
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
