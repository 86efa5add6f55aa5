//! Chooses a backend at run time, and on machines with GPUs the side for each batch.

#[cfg(feature = "cuda")]
pub(crate) mod both;
#[cfg(feature = "cuda")]
pub(crate) mod cost;
#[cfg(feature = "cuda")]
mod gpus;

use alloc::string::String;
use core::num::NonZeroUsize;
#[cfg(feature = "cuda")]
use std::sync::OnceLock;

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use batch_modexp_cpu::{AnyEngine, Cpu};
use crypto_bigint::Unsigned;

#[cfg(feature = "cuda")]
use self::both::Both;
#[cfg(feature = "cuda")]
use super::Cuda;

/// Reasons for a choice.
const AS_ASKED: &str = "as asked";
const FASTEST: &str = "the fastest on this processor";
#[cfg(feature = "cuda")]
const FASTEST_OF_ALL: &str = "the fastest on this machine";

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
    /// [`Serial`](super::Serial), on the calling thread.
    Serial,
    /// [`Parallel`](super::Parallel) with [`Serial`](super::Serial) on each thread.
    Parallel,
    /// `Fma` on all threads, even where `Ifma` would be faster.
    Fma,
    /// `Ifma` on all threads.
    Ifma,
    /// [`Cuda`], on all devices, including those with slow double precision.
    #[cfg(feature = "cuda")]
    Cuda,
}

impl Kind {
    /// The kinds that never use a GPU, for tests and measurements.
    #[doc(hidden)]
    pub const ON_CPU: &'static [Self] = &[
        Self::Cpu,
        Self::Serial,
        Self::Parallel,
        Self::Fma,
        Self::Ifma,
    ];
}

/// A backend that chooses for the machine it runs on, and explains its choice.
///
/// Secrets stay in the memory of the host unless the caller allows GPUs.
/// [`with_gpus`](Self::with_gpus) and the constructors that name GPUs allow them;
/// [`new`](Self::new) never uses one.
///
/// GPUs may fail. Once the last one is lost, the processor computes, including the call in which
/// the loss occurs. The same holds in a forked child, where GPUs cannot be used.
/// [`name`](Self::name) and [`reason`](Self::reason) report it. After another error of a GPU, the
/// processor computes the batch, and after several the next thousands like it. GPUs that were asked
/// for by name return such errors.
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
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Both(Both),
}

impl Chosen {
    /// The backend of the processor.
    fn cpu(&self) -> &Cpu {
        match self {
            Self::Cpu(cpu) => cpu,
            #[cfg(feature = "cuda")]
            Self::Both(both) => both.cuda.host(),
        }
    }

    /// The GPUs, if there are any.
    #[cfg(feature = "cuda")]
    fn gpus(&self) -> Option<&Cuda> {
        match self {
            Self::Both(both) => Some(&both.cuda),
            Self::Cpu(_) => None,
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
    /// It takes all GPUs with fast double precision, without those that do not start. If none is
    /// left, or without the feature `cuda`, it takes the processor, and [`reason`](Self::reason)
    /// says why.
    ///
    /// With GPUs, each batch goes to the side that should finish sooner. The estimate comes from a
    /// model, which measured times of batches of the same width and size correct. The first batches
    /// near the [break-even](Self::break_even) may therefore go to the slower side.
    ///
    /// The caller thereby allows secrets to leave the host. Keys and operands of every batch pass
    /// through the memory of the devices, which is wiped after each call. SECURITY.md has the whole
    /// list.
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
        let mut no_gpu = String::new();
        let (engine, why) = match kind {
            Kind::Cpu => (AnyEngine::fastest(), FASTEST),
            Kind::GpuOrCpu => {
                #[cfg(feature = "cuda")]
                match gpus::fast_ones(threads)? {
                    Ok(cuda) => return Ok(Self::with_both(cuda, false, FASTEST_OF_ALL)),
                    Err(reason) => no_gpu = alloc::format!("no GPU ({reason}); "),
                }
                #[cfg(not(feature = "cuda"))]
                no_gpu.push_str("no GPU without the feature `cuda`; ");
                (AnyEngine::fastest(), FASTEST)
            }
            Kind::Serial => {
                let cpu = Cpu::with_engine(AnyEngine::Serial, NonZeroUsize::MIN)?;
                return Ok(Self::new_with(
                    Chosen::Cpu(cpu),
                    "as asked, on one thread".into(),
                ));
            }
            Kind::Parallel => (AnyEngine::Serial, AS_ASKED),
            Kind::Fma => (AnyEngine::fma()?, AS_ASKED),
            Kind::Ifma => (AnyEngine::ifma()?, AS_ASKED),
            #[cfg(feature = "cuda")]
            Kind::Cuda => {
                let cuda = Cuda::open(&Cuda::probe()?, threads)?;
                return Ok(Self::with_both(cuda, true, AS_ASKED));
            }
        };
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let count = threads.unwrap_or(cores);
        let why_as_many = threads.map_or("one for each core", |_| AS_ASKED);
        let threads = count_of(count.get());
        let reason = alloc::format!("{no_gpu}{why}, {threads} ({why_as_many})");
        let cpu = Cpu::with_engine(engine, count)?;
        Ok(Self::new_with(Chosen::Cpu(cpu), reason))
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
            Chosen::Cpu(_) => {
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
            Chosen::Cpu(cpu) => name_of(cpu),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) if !both.cuda.is_over() => "cuda",
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => name_of(both.cuda.host()),
        }
    }

    /// The reason for the choice, in a few words for a log or a terminal.
    #[must_use]
    pub fn reason(&self) -> &str {
        #[cfg(feature = "cuda")]
        if let Some(cuda) = self.chosen.gpus().filter(|cuda| cuda.is_over()) {
            let why = || gpus::why_without_gpu(cuda.lost(), cuda.host_threads());
            return self.without_gpu.get_or_init(why);
        }
        &self.reason
    }

    /// The number of threads. With GPUs: the host threads that prepare and check their work.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.chosen.cpu().threads()
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }
}

fn name_of(cpu: &Cpu) -> &'static str {
    match cpu.name() {
        "serial" if cpu.threads() > 1 => "parallel",
        name => name,
    }
}

/// A number of threads in words.
fn count_of(threads: usize) -> String {
    match threads {
        1 => "one thread".into(),
        _ => alloc::format!("{threads} threads"),
    }
}

impl<U> BatchModExp<U> for Auto
where
    U: Unsigned + Sync + Send,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        match self.chosen() {
            Chosen::Cpu(cpu) => cpu.batch_mod_exp(batch, exponent_bits, out),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.batch_mod_exp(batch, exponent_bits, out),
        }
    }

    fn granularity(&self) -> usize {
        <_ as BatchModExp<U>>::granularity(self.chosen.cpu())
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        <_ as BatchModExp<U>>::relative_time(self.chosen.cpu(), bits, count)
    }
}

/// Products run on the processor, even with GPUs, with the same engine as exponentiations there.
///
/// Copying numbers between host and device takes longer than multiplying them on the host.
impl<U> BatchModMul<U> for Auto
where
    U: Unsigned + Sync,
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.chosen.cpu().batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.chosen.cpu().batch_monty_mul(batch, out)
    }
}

/// The engine of the processor, even with GPUs.
impl HasPowerEngine for Auto {
    fn power_engine(&self) -> &dyn PowerEngine {
        self.chosen.cpu().power_engine()
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests;
