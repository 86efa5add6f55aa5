//! Picks a backend at run time.

use alloc::string::String;
#[cfg(feature = "cuda")]
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use crypto_bigint::{BoxedUint, Uint};

use super::Serial;
use super::cpu::{Cpu, Engine};
#[cfg(feature = "cuda")]
use super::{Cuda, cuda::DeviceInfo};
use crate::{BatchModExp, Error, ModExp};

/// What a caller may ask [`Auto`] for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// The fastest that this machine offers.
    #[default]
    Auto,
    /// [`Serial`], on the calling thread.
    Serial,
    /// [`Parallel`](super::Parallel) threads of [`Serial`].
    Parallel,
    /// Threads of `Fma`, even where `Ifma` would be faster.
    Fma,
    /// Threads of `Ifma`.
    Ifma,
    /// [`Cuda`], on all devices.
    #[cfg(feature = "cuda")]
    Cuda,
}

/// The backend for users who do not want to choose: it looks at the machine, picks, and can say in
/// words what it picked and why.
///
/// ```
/// use batch_modexp::backend::{Auto, Kind};
///
/// let backend = Auto::new()?;
/// println!("{}: {}", backend.name(), backend.reason());
///
/// assert_eq!(Auto::with(Kind::Serial, None)?.name(), "serial");
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Debug)]
pub struct Auto {
    chosen: Chosen,
    reason: String,
}

#[derive(Debug)]
pub(crate) enum Chosen {
    Serial(Serial),
    Parallel(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

impl Auto {
    /// Picks the fastest backend that this machine offers.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with(Kind::Auto, None)
    }

    /// Takes the backend that `kind` names, on `threads` threads (`None`: as many as the process may
    /// use cores). [`Kind::Serial`] has one thread whatever `threads` says.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the processor lacks what `kind` needs, or [`Error::ThreadPool`] if the
    /// operating system refuses the threads. With [`Kind::Cuda`], those of [`Cuda::new`].
    pub fn with(kind: Kind, threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = gpu(kind, threads)? {
            let why = match kind {
                Kind::Cuda => "as asked",
                _ => "the fastest on this machine",
            };
            return Ok(Self::cuda(cuda, why));
        }
        let engine = match kind {
            Kind::Auto => Engine::fastest(),
            #[cfg(feature = "cuda")]
            Kind::Cuda => unreachable!("a backend or an error was returned"),
            Kind::Parallel => Engine::Serial,
            Kind::Fma => Engine::fma()?,
            Kind::Ifma => Engine::ifma()?,
            Kind::Serial => {
                return Ok(Self {
                    chosen: Chosen::Serial(Serial),
                    reason: String::from("as asked, on one thread"),
                });
            }
        };
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let count = threads.unwrap_or(cores);
        let what = match kind {
            Kind::Auto => "the fastest on this processor",
            _ => "as asked",
        };
        let reason = match (threads, count.get()) {
            (None, 1) => alloc::format!("{what}, one thread (one for each core)"),
            (None, _) => alloc::format!("{what}, {count} threads (one for each core)"),
            (Some(_), 1) => alloc::format!("{what}, one thread (as asked)"),
            (Some(_), _) => alloc::format!("{what}, {count} threads (as asked)"),
        };
        Ok(Self {
            chosen: Chosen::Parallel(Cpu::with_engine(engine, count)?),
            reason,
        })
    }

    /// Takes the GPUs with these numbers, as in [`DeviceInfo::ordinal`], with `threads` threads on the host
    /// (`None`: as many as the process may use cores).
    ///
    /// # Errors
    ///
    /// Those of [`Cuda::with_devices`].
    #[cfg(feature = "cuda")]
    pub fn on_devices(ordinals: &[usize], threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        let cuda = with_threads(Cuda::with_devices(ordinals)?, threads)?;
        Ok(Self::cuda(cuda, "as asked"))
    }

    #[cfg(feature = "cuda")]
    fn cuda(cuda: Cuda, why: &str) -> Self {
        let names: Vec<_> = cuda.devices().map(DeviceInfo::name).collect();
        let reason = alloc::format!("{why}, {}", names.join(", "));
        Self {
            chosen: Chosen::Cuda(cuda),
            reason,
        }
    }

    /// The name of the backend that was picked: `"serial"`, `"parallel"`, `"fma"`,
    /// `"ifma"` or `"cuda"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.chosen() {
            Chosen::Serial(_) => "serial",
            Chosen::Parallel(cpu) => match cpu.name() {
                "serial" if cpu.threads() > 1 => "parallel",
                name => name,
            },
            #[cfg(feature = "cuda")]
            Chosen::Cuda(_) => "cuda",
        }
    }

    /// Why it was picked, in a few words for a log or a terminal.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The number of threads that it computes on; for GPUs, that it prepares and checks their work on.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.chosen() {
            Chosen::Serial(_) => 1,
            Chosen::Parallel(cpu) => cpu.threads(),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.host_threads(),
        }
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }
}

impl<const LIMBS: usize> BatchModExp<Uint<LIMBS>> for Auto {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, Uint<LIMBS>>],
        exponent_bits: u32,
        out: &mut [Uint<LIMBS>],
    ) -> Result<(), Error> {
        match self.chosen() {
            Chosen::Serial(serial) => serial.batch_mod_exp(batch, exponent_bits, out),
            Chosen::Parallel(cpu) => cpu.batch_mod_exp(batch, exponent_bits, out),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.batch_mod_exp(batch, exponent_bits, out),
        }
    }

    fn granularity(&self) -> usize {
        match self.chosen() {
            Chosen::Serial(_) => 1,
            Chosen::Parallel(cpu) => <_ as BatchModExp<Uint<LIMBS>>>::granularity(cpu),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => <_ as BatchModExp<Uint<LIMBS>>>::granularity(cuda),
        }
    }
}

impl BatchModExp<BoxedUint> for Auto {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        match self.chosen() {
            Chosen::Serial(serial) => serial.batch_mod_exp(batch, exponent_bits, out),
            Chosen::Parallel(cpu) => cpu.batch_mod_exp(batch, exponent_bits, out),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.batch_mod_exp(batch, exponent_bits, out),
        }
    }

    fn granularity(&self) -> usize {
        match self.chosen() {
            Chosen::Serial(_) => 1,
            Chosen::Parallel(cpu) => <_ as BatchModExp<BoxedUint>>::granularity(cpu),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => <_ as BatchModExp<BoxedUint>>::granularity(cuda),
        }
    }
}

/// The GPUs, if they were asked for or are worth using.
#[cfg(feature = "cuda")]
fn gpu(kind: Kind, threads: Option<NonZeroUsize>) -> Result<Option<Cuda>, Error> {
    let cuda = match kind {
        Kind::Cuda => Cuda::new()?,
        Kind::Auto => {
            let fast: Vec<_> = Cuda::probe()
                .unwrap_or_default()
                .iter()
                .filter(|device| device.single_to_double() <= FAST_DOUBLES)
                .map(DeviceInfo::ordinal)
                .collect();
            // A device that is there but does not start is no reason to fail: there is the host.
            match Cuda::with_devices(&fast) {
                Ok(cuda) => cuda,
                Err(_) => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    with_threads(cuda, threads).map(Some)
}

#[cfg(feature = "cuda")]
fn with_threads(cuda: Cuda, threads: Option<NonZeroUsize>) -> Result<Cuda, Error> {
    match threads {
        Some(threads) => cuda.with_host_threads(threads),
        None => Ok(cuda),
    }
}

/// The largest [`DeviceInfo::single_to_double`] of chips that are faster than a processor with many cores:
/// those for data centers have 2, others 32 or more.
#[cfg(feature = "cuda")]
const FAST_DOUBLES: u32 = 4;
