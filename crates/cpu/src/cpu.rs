//! The processor, with the best instructions that it has and all its cores.

use core::num::NonZeroUsize;

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul, Serial};
use crypto_bigint::Unsigned;

use super::Parallel;
pub(crate) use crate::engine::AnyEngine;

/// Spreads a batch over threads, each of which computes with the best instructions that this processor
/// has: `Ifma`, else `Fma`, else [`Serial`].
///
/// Whatever [`Serial`] serves is served. Instances that would leave most lanes of a vector empty, and
/// moduli too wide for vectors, go to [`Serial`] where that is faster; which ones depends on the number
/// of instances and their widths alone.
///
/// What is not worth cutting is computed on the calling thread.
///
/// In a child process that `fork` made it works on the calling thread, like [`Parallel`].
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
    /// Computes on as many threads as the process may use cores.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with_threads(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Computes on `threads` threads, the one that calls among them.
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

    /// The threads, or the calling one.
    #[doc(hidden)]
    #[must_use]
    pub fn inner(&self) -> &Parallel<AnyEngine> {
        &self.0
    }

    /// What the threads compute with: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner().inner().name()
    }

    /// The number of threads; 1 in a child process that was forked after this was made.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.inner().threads()
    }
}

impl<U> BatchModExp<U> for Cpu
where
    U: Unsigned + Sync,
    Serial: BatchModExp<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        self.inner().batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        <_ as BatchModExp<U>>::granularity(self.inner())
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        <_ as BatchModExp<U>>::relative_time(self.inner(), bits, count)
    }
}

/// What [`Serial`] computes faster, it computes: narrow products, and few of them. Which ones depends on the widths and the
/// number of instances and on which of them share a modulus, by measurements of one processor of each kind.
impl<U> BatchModMul<U> for Cpu
where
    U: Unsigned + Sync,
    Serial: BatchModMul<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.inner().batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.inner().batch_monty_mul(batch, out)
    }
}

impl HasPowerEngine for Cpu {
    fn power_engine(&self) -> &dyn PowerEngine {
        self.inner()
    }
}
