//! The backend of all calls, and the division of long calls into pieces.

use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use batch_modexp::backend::{Auto, Cuda, Kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error;

/// The aimed time of a piece. After each piece a call checks for signals, such as that of Ctrl-C.
const PIECE_TIME: Duration = Duration::from_millis(200);

/// The same with GPUs. An H200 takes 587 ms for any batch of 8192-bit powers that does not fill it.
/// If the aim were less, such pieces would shrink until the processor computed them.
const GPU_PIECE_TIME: Duration = Duration::from_millis(650);

/// The work of the first piece for each thread, when its time is not known yet: 64 exponentiations
/// of 2048 bits, in cubes of limbs.
const FIRST_WORK: u64 = 64 * 32 * 32 * 32;

/// The least work of an item, in the same unit: the conversion takes time too.
const LEAST_WORK: u64 = 32;

/// The GPUs that a caller asks for.
#[derive(Clone)]
pub(crate) enum Gpus {
    /// All or none.
    All(bool),
    /// Those with these numbers.
    These(Vec<usize>),
}

impl<'py> FromPyObject<'_, 'py> for Gpus {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(all) = object.extract() {
            return Ok(Self::All(all));
        }
        object.extract().map(Self::These).map_err(|_| {
            PyTypeError::new_err("gpus: True, False or a list of the numbers of GPUs is needed")
        })
    }
}

/// No GPUs.
pub(crate) const NO_GPUS: Gpus = Gpus::All(false);

/// The backend of a process, and what was requested of it.
struct Machine {
    process: u32,
    threads: Option<NonZeroUsize>,
    gpus: Gpus,
    backend: Option<Arc<Auto>>,
}

/// Locked briefly, and only by threads that hold the interpreter's lock. No thread therefore holds
/// it while Python forks.
static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    process: 0,
    threads: None,
    gpus: NO_GPUS,
    backend: None,
});

/// The process that has started GPUs, or 0. Its forked children cannot.
static GPU_PROCESS: AtomicU32 = AtomicU32::new(0);

fn of_this_process() -> MutexGuard<'static, Machine> {
    let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if machine.process != process::id() {
        // The child lacks the parent's threads, so its copy of the backend must not be dropped.
        mem::forget(machine.backend.take());
        machine.gpus = NO_GPUS;
        machine.process = process::id();
    }
    machine
}

/// The backend of this process. A forked child makes its own, with its own threads and no GPUs.
pub(crate) fn shared(_: Python<'_>) -> PyResult<Arc<Auto>> {
    let mut machine = of_this_process();
    if let Some(backend) = &machine.backend {
        return Ok(backend.clone());
    }
    // GPUs have been started by `restart`.
    let backend = Auto::with(Kind::Cpu, machine.threads).map_err(error::plain)?;
    let backend = Arc::new(backend);
    machine.backend = Some(backend.clone());
    Ok(backend)
}

/// Starts a backend.
pub(crate) fn start(threads: Option<NonZeroUsize>, gpus: &Gpus) -> PyResult<Auto> {
    let cuda = match gpus {
        Gpus::All(false) => return Auto::with(Kind::Cpu, threads).map_err(error::plain),
        Gpus::These(numbers) if numbers.is_empty() => {
            return Err(error::plain("the list of GPUs is empty; take False"));
        }
        Gpus::All(true) => None,
        Gpus::These(numbers) => Some(numbers),
    };
    if ![0, process::id()].contains(&GPU_PROCESS.load(Ordering::Relaxed)) {
        return Err(error::plain(
            "the parent process uses GPUs, and CUDA does not survive a fork; start the child with \
             \"spawn\", or ask for GPUs only in children",
        ));
    }
    let cuda = cuda.map_or_else(Cuda::new, |numbers| Cuda::with_devices(numbers));
    let cuda = cuda.map_err(error::plain)?;
    GPU_PROCESS.store(process::id(), Ordering::Relaxed);
    let cuda = match threads {
        Some(threads) => cuda.with_host_threads(threads).map_err(error::plain)?,
        None => cuda,
    };
    Ok(Auto::with_cuda(cuda))
}

/// Starts a backend for later calls. If it does not start, the last one stays.
fn restart(py: Python<'_>, threads: Option<NonZeroUsize>, gpus: Gpus) -> PyResult<()> {
    let backend = py.detach(|| start(threads, &gpus))?;
    let machine = Machine {
        process: process::id(),
        threads,
        gpus,
        backend: Some(Arc::new(backend)),
    };
    let last = mem::replace(&mut *of_this_process(), machine);
    py.detach(|| drop(last));
    Ok(())
}

/// Checks a number of threads.
pub(crate) fn checked_threads(count: Option<usize>) -> PyResult<Option<NonZeroUsize>> {
    match count.map(NonZeroUsize::new) {
        Some(None) => Err(error::plain("the number of threads is 0; take at least 1")),
        threads => Ok(threads.flatten()),
    }
}

/// Sets the number of threads that calls compute on; None for one on each core.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, count: Option<usize>) -> PyResult<()> {
    let threads = checked_threads(count)?;
    let gpus = of_this_process().gpus.clone();
    restart(py, threads, gpus)
}

/// Lets later calls use NVIDIA GPUs for the batches that they finish sooner: True for all GPUs, a
/// list for those with these numbers, False for none. Keys and operands reach their memory.
#[pyfunction]
pub(crate) fn set_gpus(py: Python<'_>, gpus: Gpus) -> PyResult<()> {
    let threads = of_this_process().threads;
    restart(py, threads, gpus)
}

/// The name of the SIMD kernels that compute, or "cuda" with GPUs; the number of threads; and why
/// it is those.
#[pyfunction]
pub(crate) fn backend(py: Python<'_>) -> PyResult<(&'static str, usize, String)> {
    let backend = shared(py)?;
    let reason = backend.reason().to_owned();
    Ok((backend.name(), backend.threads(), reason))
}

/// Checks for signals at each item with a round index, for loops that convert items from or to
/// Python.
pub(crate) fn check_signals_at(py: Python<'_>, index: usize) -> PyResult<()> {
    match index % 4096 {
        0 => py.check_signals(),
        _ => Ok(()),
    }
}

/// Calls `compute` for consecutive ranges of `0..len`, without the interpreter's lock.
///
/// It checks for signals between calls, so that Ctrl-C ends the work. `work` is that of the item at
/// an index, in cubes of limbs. The work of later pieces follows from the time of earlier ones.
pub(crate) fn in_pieces<T: Send>(
    py: Python<'_>,
    len: usize,
    work: impl Fn(usize) -> u64,
    compute: impl Fn(Range<usize>) -> T + Sync,
    mut done: impl FnMut(usize, T) -> PyResult<()>,
) -> PyResult<()> {
    let backend = shared(py)?;
    let threads = backend.threads();
    let (aim, lanes) = match backend.name() {
        "cuda" => (GPU_PIECE_TIME, 1),
        _ => (PIECE_TIME, 64 * threads),
    };
    let mut work_of_piece = threads as u64 * FIRST_WORK;
    // The time of an item is not quite proportional to its work.
    let mut most = usize::MAX;
    let mut start = 0;
    while start < len {
        let mut rest = work_of_piece;
        let fits = |&i: &usize| match rest.checked_sub(work(i).max(LEAST_WORK)) {
            Some(less) => {
                rest = less;
                true
            }
            None => false,
        };
        let size = match (start..len).take(most).take_while(fits).count() {
            0 => 1,
            // Whole vectors for each thread, unless items take long.
            many if many >= lanes && many < len - start => many / lanes * lanes,
            few => few,
        };
        let range = start..start + size;
        let began = Instant::now();
        let result = py.detach(|| compute(range.clone()));
        done(start, result)?;
        let time = began.elapsed().max(Duration::from_micros(1));
        py.check_signals()?;
        let scale = aim.as_secs_f64() / time.as_secs_f64();
        let work: u64 = range.clone().map(|i| work(i).max(LEAST_WORK)).sum();
        work_of_piece = (work as f64 * scale.min(8.0)) as u64;
        most = range.len().saturating_mul(8).max(lanes);
        start = range.end;
    }
    Ok(())
}
