//! The processor, with the best instructions that it has and all its cores.

mod engine;

use core::fmt;
use core::num::NonZeroUsize;

use crypto_bigint::Unsigned;

pub(crate) use self::engine::Engine;
use super::{Parallel, Serial};
use crate::{BatchModExp, Error, ModExp};

/// Spreads a batch over threads, each of which computes with the best instructions that this processor
/// has: `Ifma`, else `Fma`, else [`Serial`].
///
/// Whatever [`Serial`] serves is served. Instances that would leave most lanes of a vector empty, and
/// moduli too wide for vectors, go to [`Serial`] where that is faster; which ones depends on the number
/// of instances and their widths alone.
///
/// ```
/// use batch_modexp::backend::Cpu;
///
/// let cpu = Cpu::new()?;
/// println!("{} on {} threads", cpu.name(), cpu.threads());
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub struct Cpu {
    threads: Threads,
}

/// The threads of a [`Cpu`].
pub(crate) enum Threads {
    /// The calling thread.
    Own(Engine),
    Pool(Parallel<Engine>),
}

impl Cpu {
    /// Computes on as many threads as the process may use cores.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with_threads(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Computes on `threads` threads; on the calling thread if it is one.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_threads(threads: NonZeroUsize) -> Result<Self, Error> {
        Self::with_engine(Engine::fastest(), threads)
    }

    pub(crate) fn with_engine(engine: Engine, threads: NonZeroUsize) -> Result<Self, Error> {
        let threads = match threads.get() {
            1 => Threads::Own(engine),
            _ => Threads::Pool(Parallel::with_threads(engine, threads)?),
        };
        Ok(Self { threads })
    }

    pub(crate) fn inner(&self) -> &Threads {
        &self.threads
    }

    /// What the threads compute with: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.inner() {
            Threads::Own(engine) => engine.name(),
            Threads::Pool(pool) => pool.inner().name(),
        }
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.inner() {
            Threads::Own(_) => 1,
            Threads::Pool(pool) => pool.threads(),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "rsa"))]
impl Cpu {
    /// The threads, for other work than exponentiations; `None` if it is the calling one.
    pub(crate) fn pool(&self) -> Option<&rayon::ThreadPool> {
        match &self.threads {
            Threads::Own(_) => None,
            Threads::Pool(pool) => pool.pool(),
        }
    }
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu")
            .field("name", &self.name())
            .field("threads", &self.threads())
            .finish()
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
        match self.inner() {
            Threads::Own(engine) => engine.batch_mod_exp(batch, exponent_bits, out),
            Threads::Pool(pool) => pool.batch_mod_exp(batch, exponent_bits, out),
        }
    }

    fn granularity(&self) -> usize {
        match self.inner() {
            Threads::Own(engine) => <_ as BatchModExp<U>>::granularity(engine),
            Threads::Pool(pool) => <_ as BatchModExp<U>>::granularity(pool),
        }
    }
}
