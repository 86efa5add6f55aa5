//! The backend of all calls, and the division of long calls into pieces.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use batch_modexp::backend::{Auto, Kind};
use pyo3::prelude::*;

use crate::error;

/// The aimed time of a piece. After each piece a call checks for signals, such as that of Ctrl-C.
const PIECE_TIME: Duration = Duration::from_millis(200);

/// The work of the first piece for each thread, when its time is not known yet: 64 exponentiations
/// of 2048 bits, in cubes of limbs.
const FIRST_WORK: u64 = 64 * 32 * 32 * 32;

/// The backend of a process, and the requested number of threads.
struct Machine {
    process: u32,
    threads: Option<NonZeroUsize>,
    backend: Option<Arc<Auto>>,
}

/// Locked briefly, and only by threads that hold the interpreter's lock. No thread therefore holds
/// it while Python forks.
static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    process: 0,
    threads: None,
    backend: None,
});

fn of_this_process() -> MutexGuard<'static, Machine> {
    let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if machine.process != process::id() {
        // The child lacks the parent's threads, so its copy of the backend must not be dropped.
        std::mem::forget(machine.backend.take());
        machine.process = process::id();
    }
    machine
}

/// The backend of this process. A forked child makes its own, with its own threads.
pub(crate) fn shared(_: Python<'_>) -> PyResult<Arc<Auto>> {
    let mut machine = of_this_process();
    if let Some(backend) = &machine.backend {
        return Ok(backend.clone());
    }
    let backend = Auto::with(Kind::Cpu, machine.threads).map_err(error::plain)?;
    let backend = Arc::new(backend);
    machine.backend = Some(backend.clone());
    Ok(backend)
}

/// Sets the number of threads that calls compute on; None for one on each core.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, count: Option<usize>) -> PyResult<()> {
    let threads = match count.map(NonZeroUsize::new) {
        Some(None) => return Err(error::plain("the number of threads is 0; take at least 1")),
        threads => threads.flatten(),
    };
    {
        let mut machine = of_this_process();
        machine.threads = threads;
        machine.backend = None;
    }
    shared(py).map(|_| ())
}

/// The name of the SIMD kernels that compute, the number of threads, and why it is those.
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
/// It checks for signals between calls, so that Ctrl-C ends the work. `work` is that of an item, in
/// cubes of limbs. Later pieces are sized by the time of earlier ones.
pub(crate) fn in_pieces<T: Send>(
    py: Python<'_>,
    len: usize,
    work: u64,
    compute: impl Fn(Range<usize>) -> T + Sync,
    mut done: impl FnMut(usize, T) -> PyResult<()>,
) -> PyResult<()> {
    let threads = shared(py)?.threads();
    let mut size = threads * (FIRST_WORK / work.max(1)).clamp(1, 1 << 16) as usize;
    let mut start = 0;
    while start < len {
        let range = start..len.min(start + size);
        let began = Instant::now();
        let result = py.detach(|| compute(range.clone()));
        let time = began.elapsed().max(Duration::from_micros(1));
        done(start, result)?;
        py.check_signals()?;
        let scale = PIECE_TIME.as_secs_f64() / time.as_secs_f64();
        let next = (range.len() as f64 * scale.min(8.0)) as usize;
        // Whole vectors for each thread, unless items take long.
        let lanes = 64 * threads;
        size = match next {
            0 => 1,
            few if few < lanes => few,
            many => many / lanes * lanes,
        };
        start = range.end;
    }
    Ok(())
}
