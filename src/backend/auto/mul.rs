//! Products, which never go to a GPU.

use batch_modexp_core::{BatchModMul, Error, ModMul, Serial};
use crypto_bigint::Unsigned;

use super::{Auto, Chosen};

/// Products are computed on the processor, by whatever computes exponentiations there, also with GPUs: to copy numbers from the
/// memory of the host to a device and back takes longer than to multiply them here. Beside an H200 16 threads
/// were faster at every width, 128 to 512 bits, and in batches of 4,096 to 1,048,576 (`docs/performance.md`, "Products").
/// `Cuda` multiplies for whoever asks it to.
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
