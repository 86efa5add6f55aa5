//! Chooses a backend at run time, and on machines with GPUs the side for each batch.

#[cfg(feature = "cuda")]
pub(crate) mod both;
#[cfg(feature = "cuda")]
pub(crate) mod cost;
mod mul;
mod powers;

use alloc::string::String;
#[cfg(feature = "cuda")]
use alloc::vec::Vec;
use core::num::NonZeroUsize;
#[cfg(feature = "cuda")]
use std::sync::OnceLock;

use batch_modexp_core::{BatchModExp, Error, ModExp, Serial};
use batch_modexp_cpu::{AnyEngine, Cpu};
use crypto_bigint::Unsigned;

#[cfg(feature = "cuda")]
use self::both::Both;
#[cfg(feature = "cuda")]
use super::{
    Cuda,
    cuda::{Calibration, CalibrationFault, DeviceInfo, LostDevice, plan},
};

/// The backends that a caller may ask [`Auto`] for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// [`Cpu`], with the fastest engine that the processor supports. Never a GPU.
    #[default]
    Cpu,
    /// All GPUs with fast double precision, for the batches that they finish sooner. Without such a
    /// GPU the same as [`Kind::Cpu`].
    ///
    /// Keys and operands reach the memory of the devices (see [`Auto::with_gpus`]).
    GpuOrCpu,
    /// [`Serial`], on the calling thread.
    Serial,
    /// [`Parallel`](super::Parallel) with [`Serial`] on each thread.
    Parallel,
    /// `Fma` on all threads, even where `Ifma` would be faster.
    Fma,
    /// `Ifma` on all threads.
    Ifma,
    /// [`Cuda`], on all devices, including those with slow double precision.
    #[cfg(feature = "cuda")]
    Cuda,
}

/// A backend that chooses for the machine it runs on, and explains its choice.
///
/// Secrets stay in the memory of the host unless the caller allows GPUs.
/// [`with_gpus`](Self::with_gpus) and the constructors that name GPUs allow them;
/// [`new`](Self::new) never uses one.
///
/// GPUs may fail. Once the last one is lost, the processor computes, including the call in which
/// the loss occurs. The same holds in a forked child, where GPUs cannot be used.
/// [`name`](Self::name) and [`reason`](Self::reason) report it.
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
    /// The reason for using the processor in place of the GPUs, once they are over.
    #[cfg(feature = "cuda")]
    without_gpu: OnceLock<String>,
}

#[derive(Debug)]
pub(crate) enum Chosen {
    Serial(Serial),
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
    /// GPUs and the processor. Each batch goes to the side that should finish sooner.
    #[cfg(feature = "cuda")]
    Both(Both),
}

impl Chosen {
    /// The GPUs, if there are any.
    #[cfg(feature = "cuda")]
    fn gpus(&self) -> Option<&Cuda> {
        match self {
            Self::Cuda(cuda) => Some(cuda),
            Self::Both(both) => Some(both.cuda()),
            Self::Serial(_) | Self::Cpu(_) => None,
        }
    }
}

impl Auto {
    /// Chooses the fastest engine of the processor, with one thread for each core that the process
    /// may use. Never a GPU.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with(Kind::Cpu, None)
    }

    /// Chooses the fastest backends of this machine, GPUs included.
    ///
    /// It takes all GPUs with fast double precision. If there are none, if one does not start, or
    /// without the feature `cuda`, it takes the processor, and [`reason`](Self::reason) says so.
    ///
    /// With GPUs, each batch goes to the side that should finish sooner. The estimate comes from a
    /// model, which measured times of batches of the same width and size correct. The first batches
    /// near the [break-even](Self::break_even) may therefore go to the slower side.
    ///
    /// The caller thereby allows secrets to leave the host. The operands of every batch pass
    /// through the memory of the devices. An RSA key with two primes stays there until its last
    /// handle is dropped, until `KeyHandle::evict`, or until the backend is dropped. SECURITY.md
    /// has the whole list.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_gpus() -> Result<Self, Error> {
        Self::with(Kind::GpuOrCpu, None)
    }

    /// Uses the backend that `kind` names, on `threads` threads (`None`: one for each core that the
    /// process may use). [`Kind::Serial`] ignores `threads` and has one thread.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the processor lacks the instructions for `kind`, or
    /// [`Error::ThreadPool`] if the operating system refuses the threads. With `Kind::Cuda`, also
    /// the errors of `Cuda::new`.
    pub fn with(kind: Kind, threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = gpu(kind, threads)? {
            return Ok(match kind {
                Kind::Cuda => Self::cuda(cuda, "as asked"),
                _ => Self::both(cuda, "the fastest on this machine"),
            });
        }
        let engine = match kind {
            Kind::Cpu | Kind::GpuOrCpu => AnyEngine::fastest(),
            #[cfg(feature = "cuda")]
            Kind::Cuda => unreachable!("a backend or an error was returned"),
            Kind::Parallel => AnyEngine::Serial,
            Kind::Fma => AnyEngine::fma()?,
            Kind::Ifma => AnyEngine::ifma()?,
            Kind::Serial => {
                let reason = String::from("as asked, on one thread");
                return Ok(Self::new_with(Chosen::Serial(Serial), reason));
            }
        };
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let count = threads.unwrap_or(cores);
        let what = match kind {
            Kind::GpuOrCpu if !cfg!(feature = "cuda") => {
                "no GPU without the feature `cuda`; the fastest on this processor"
            }
            Kind::Cpu | Kind::GpuOrCpu => "the fastest on this processor",
            Kind::Serial | Kind::Parallel | Kind::Fma | Kind::Ifma => "as asked",
            #[cfg(feature = "cuda")]
            Kind::Cuda => "as asked",
        };
        let reason = match (threads, count.get()) {
            (None, 1) => alloc::format!("{what}, one thread (one for each core)"),
            (None, _) => alloc::format!("{what}, {count} threads (one for each core)"),
            (Some(_), 1) => alloc::format!("{what}, one thread (as asked)"),
            (Some(_), _) => alloc::format!("{what}, {count} threads (as asked)"),
        };
        let cpu = Cpu::with_engine(engine, count)?;
        Ok(Self::new_with(Chosen::Cpu(cpu), reason))
    }

    /// Uses the GPUs with these numbers, as in [`DeviceInfo::ordinal`], and `threads` threads on
    /// the host (`None`: one for each core that the process may use).
    ///
    /// # Errors
    ///
    /// The errors of [`Cuda::with_devices`].
    #[cfg(feature = "cuda")]
    pub fn on_devices(ordinals: &[usize], threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        let cuda = with_threads(Cuda::with_devices(ordinals)?, threads)?;
        Ok(Self::cuda(cuda, "as asked"))
    }

    /// Uses these GPUs, whatever their double precision, together with the processor, on the GPUs'
    /// host threads.
    ///
    /// Each batch goes to the side that should finish sooner, as with
    /// [`with_gpus`](Self::with_gpus). Use it on chips that have not been measured, if a
    /// [calibration](Self::calibrate) shows that they are faster.
    ///
    /// The caller thereby allows secrets to leave the host.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn with_cuda(cuda: Cuda) -> Self {
        Self::both(cuda, "as asked")
    }

    /// Measures GPUs and processor for moduli of these widths, in bits, and then chooses by the
    /// results.
    ///
    /// The measurements decide both the kernel and the side. See [`Cuda::calibrate`]. GPUs that
    /// were asked for by name are measured without the processor.
    ///
    /// # Errors
    ///
    /// The errors of [`Cuda::calibrate`], and [`CalibrationFault::NoGpu`] without GPUs.
    #[cfg(feature = "cuda")]
    pub fn calibrate(&mut self, widths: &[u32]) -> Result<Calibration, Error> {
        match &mut self.chosen {
            Chosen::Cuda(cuda) => cuda.calibrate(widths),
            Chosen::Both(both) => both.calibrate(widths),
            Chosen::Serial(_) | Chosen::Cpu(_) => Err(CalibrationFault::NoGpu.into()),
        }
    }

    /// Applies earlier measurements. A calibration by [`Cuda::calibrate`] does not cover the
    /// processor; its widths are then measured on first use.
    ///
    /// # Errors
    ///
    /// [`Error::Calibration`] if the calibration is for other GPUs or another backend of the
    /// processor, or if there are no GPUs.
    #[cfg(feature = "cuda")]
    pub fn with_calibration(mut self, calibration: &Calibration) -> Result<Self, Error> {
        match &mut self.chosen {
            Chosen::Cuda(cuda) => cuda.apply(calibration)?,
            Chosen::Both(both) => both.apply(calibration)?,
            Chosen::Serial(_) | Chosen::Cpu(_) => return Err(CalibrationFault::NoGpu.into()),
        }
        Ok(self)
    }

    #[cfg(feature = "cuda")]
    fn cuda(cuda: Cuda, why: &str) -> Self {
        let names: Vec<_> = cuda.devices().map(DeviceInfo::name).collect();
        let reason = alloc::format!("{why}, {}", names.join(", "));
        Self::new_with(Chosen::Cuda(cuda), reason)
    }

    #[cfg(feature = "cuda")]
    fn both(cuda: Cuda, why: &str) -> Self {
        let names: Vec<_> = cuda.devices().map(DeviceInfo::name).collect();
        let reason = alloc::format!(
            "{why}, {}; small batches on the processor, {}",
            names.join(", "),
            name_of(cuda.host())
        );
        Self::new_with(Chosen::Both(Both::new(cuda)), reason)
    }

    /// The smallest batch of exponentiations that goes to the GPUs, by the current estimate.
    ///
    /// `bits` is the width of the moduli, and `exponent_bits` that of the exponents. The estimate
    /// changes with the measured times of batches. `None` if every batch stays on one side: without
    /// GPUs, with GPUs that were asked for by name, or without a kernel for the width.
    ///
    /// Measures the processor for some milliseconds when a width is first asked for or used.
    #[must_use]
    pub fn break_even(&self, bits: u32, exponent_bits: u32) -> Option<usize> {
        match &self.chosen {
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.break_even(cost::Shape {
                kind: "exponentiation",
                bits,
                product_bits: None,
                exponent_bits,
            }),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(_) => None,
            Chosen::Serial(_) | Chosen::Cpu(_) => {
                let _ = (bits, exponent_bits);
                None
            }
        }
    }

    fn new_with(chosen: Chosen, reason: String) -> Self {
        Self {
            chosen,
            reason,
            #[cfg(feature = "cuda")]
            without_gpu: OnceLock::new(),
        }
    }

    /// The name of the backend that computes: `"serial"`, `"parallel"`, `"fma"`, `"ifma"` or
    /// `"cuda"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.chosen() {
            Chosen::Serial(_) => "serial",
            Chosen::Cpu(cpu) => name_of(cpu),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => name_with_gpus(cuda),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => name_with_gpus(both.cuda()),
        }
    }

    /// The reason for the choice, in a few words for a log or a terminal.
    #[must_use]
    pub fn reason(&self) -> &str {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = self.chosen.gpus().filter(|cuda| cuda.is_over()) {
            return self.without_gpu.get_or_init(|| {
                let lost: Vec<_> = cuda.lost().collect();
                why_without_gpu(&lost, cuda.host_threads())
            });
        }
        &self.reason
    }

    /// The number of threads. With GPUs: the host threads that prepare and check their work.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.chosen() {
            Chosen::Serial(_) => 1,
            Chosen::Cpu(cpu) => cpu.threads(),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.host_threads(),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.cuda().host_threads(),
        }
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }
}

#[cfg(feature = "cuda")]
fn name_with_gpus(cuda: &Cuda) -> &'static str {
    match cuda.is_over() {
        true => name_of(cuda.host()),
        false => "cuda",
    }
}

fn name_of(cpu: &Cpu) -> &'static str {
    match cpu.name() {
        "serial" if cpu.threads() > 1 => "parallel",
        name => name,
    }
}

/// The reason for using the processor in place of GPUs: all are lost, or this is a forked child.
#[cfg(feature = "cuda")]
fn why_without_gpu(lost: &[LostDevice], threads: usize) -> String {
    let lost = lost
        .iter()
        .map(|LostDevice { ordinal, error }| alloc::format!("device {ordinal}: {error}"));
    let lost: Vec<_> = lost.collect();
    let what = match lost.as_slice() {
        [] => String::from("GPUs cannot be used in a forked child"),
        lost => alloc::format!("all GPUs are lost ({})", lost.join(", ")),
    };
    match threads {
        1 => alloc::format!("{what}, one thread"),
        _ => alloc::format!("{what}, {threads} threads"),
    }
}

impl<U> BatchModExp<U> for Auto
where
    U: Unsigned + Sync + Send,
    Serial: BatchModExp<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        match self.chosen() {
            Chosen::Serial(serial) => serial.batch_mod_exp(batch, exponent_bits, out),
            Chosen::Cpu(cpu) => cpu.batch_mod_exp(batch, exponent_bits, out),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => match cuda.batch_mod_exp(batch, exponent_bits, out) {
                Err(_) if cuda.is_over() => cuda.host().batch_mod_exp(batch, exponent_bits, out),
                result => result,
            },
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.batch_mod_exp(batch, exponent_bits, out),
        }
    }

    fn granularity(&self) -> usize {
        match self.chosen() {
            Chosen::Serial(_) => 1,
            Chosen::Cpu(cpu) => <_ as BatchModExp<U>>::granularity(cpu),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => <_ as BatchModExp<U>>::granularity(cuda),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => <_ as BatchModExp<U>>::granularity(both),
        }
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        match self.chosen() {
            Chosen::Serial(_) => count as u64,
            Chosen::Cpu(cpu) => <_ as BatchModExp<U>>::relative_time(cpu, bits, count),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => <_ as BatchModExp<U>>::relative_time(cuda, bits, count),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => <_ as BatchModExp<U>>::relative_time(both, bits, count),
        }
    }
}

/// The GPUs, if they were asked for or are faster than the processor.
#[cfg(feature = "cuda")]
fn gpu(kind: Kind, threads: Option<NonZeroUsize>) -> Result<Option<Cuda>, Error> {
    let cuda = match kind {
        Kind::Cuda => Cuda::new()?,
        Kind::GpuOrCpu => {
            let fast: Vec<_> = Cuda::probe()
                .unwrap_or_default()
                .iter()
                .filter(|device| plan::is_fast(device))
                .map(DeviceInfo::ordinal)
                .collect();
            // A device that is present but does not start is no error here: the processor computes.
            match Cuda::with_devices(&fast) {
                Ok(cuda) => cuda,
                Err(_) => return Ok(None),
            }
        }
        Kind::Cpu | Kind::Serial | Kind::Parallel | Kind::Fma | Kind::Ifma => return Ok(None),
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

#[cfg(all(test, feature = "cuda"))]
mod tests;
