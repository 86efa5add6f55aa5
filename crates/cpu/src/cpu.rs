//! All cores of the processor, with its best instructions.

use core::num::NonZeroUsize;

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::Unsigned;

use super::Parallel;
pub(crate) use crate::engine::AnyEngine;

/// Computes a batch on several threads with the best instructions of this processor: `Ifma`, else
/// `Fma`, else `Serial`. Moduli have at most 16,384 bits.
///
/// [`Serial`](batch_modexp_core::Serial) computes instances that would leave most lanes of a vector
/// empty, where that is faster. The choice depends only on the number of instances and their
/// widths.
///
/// A batch that is not worth splitting is computed on the calling thread.
///
/// In a forked child it computes on the calling thread, like [`Parallel`].
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::backend::Cpu;
///
/// let cpu = Cpu::new()?;
/// println!("{} on {} threads", cpu.name(), cpu.threads());
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Debug)]
pub struct Cpu(Parallel<AnyEngine>);

impl Cpu {
    /// Starts one thread for each core that the process may use, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with_threads(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Starts `threads` threads, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_threads(threads: NonZeroUsize) -> Result<Self, Error> {
        Self::with_engine(AnyEngine::fastest(), threads)
    }

    #[doc(hidden)]
    pub fn with_engine(engine: AnyEngine, threads: NonZeroUsize) -> Result<Self, Error> {
        Parallel::with_threads(engine, threads).map(Self)
    }

    /// The backend that spreads batches over threads.
    #[doc(hidden)]
    #[must_use]
    pub fn parallel(&self) -> &Parallel<AnyEngine> {
        &self.0
    }

    /// The engine of the threads: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.inner().name()
    }

    /// The number of threads; 1 in a child process that was forked later.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.0.threads()
    }
}

impl<U> BatchModExp<U> for Cpu
where
    U: Unsigned + Sync,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        self.0.batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        <_ as BatchModExp<U>>::granularity(&self.0)
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        <_ as BatchModExp<U>>::relative_time(&self.0, bits, count)
    }
}

/// `Serial` computes narrow products and small batches where it is faster. The choice depends on
/// the widths, the number of instances, and which of them share a modulus. It follows measurements
/// on one processor of each kind.
impl<U> BatchModMul<U> for Cpu
where
    U: Unsigned + Sync,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.0.batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.0.batch_monty_mul(batch, out)
    }
}

impl HasPowerEngine for Cpu {
    fn power_engine(&self) -> &dyn PowerEngine {
        &self.0
    }
}
