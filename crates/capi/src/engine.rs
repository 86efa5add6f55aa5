//! Engines: objects of C that compute.

use std::num::NonZeroUsize;
use std::sync::Arc;

use batch_modexp::backend::{Auto, Cuda, Kind};

use crate::boundary::{Failure, argument, elements, failed, free, make};

/// The maximum number of threads of an engine.
const MOST_THREADS: usize = 1024;

/// `bme_engine` of the header. Queues share its backend.
pub(crate) struct Engine(pub(crate) Arc<Auto>);

/// The number of threads; `None` for one on each core.
fn checked_threads(threads: usize) -> Result<Option<NonZeroUsize>, Failure> {
    match threads {
        0..=MOST_THREADS => Ok(NonZeroUsize::new(threads)),
        _ => Err(argument("an engine has at most 1024 threads")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_new(threads: usize, out: *mut *mut Engine) -> i32 {
    let start = || {
        let auto = Auto::with(Kind::Cpu, checked_threads(threads)?);
        Ok(Engine(Arc::new(auto.map_err(failed)?)))
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, start) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_new_gpus(
    threads: usize,
    gpus: *const u32,
    count: usize,
    out: *mut *mut Engine,
) -> i32 {
    let start = || {
        let threads = checked_threads(threads)?;
        // SAFETY: the caller vouches for the numbers.
        let gpus = unsafe { elements(gpus, count) }?;
        let numbers: Vec<_> = gpus.iter().map(|&number| number as usize).collect();
        let cuda = match numbers.as_slice() {
            [] => Cuda::new(),
            numbers => Cuda::with_devices(numbers),
        };
        let cuda = cuda.map_err(failed)?;
        let cuda = match threads {
            Some(threads) => cuda.with_host_threads(threads).map_err(failed)?,
            None => cuda,
        };
        Ok(Engine(Arc::new(Auto::with_cuda(cuda))))
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, start) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_free(engine: *mut Engine) {
    // SAFETY: the caller vouches for it.
    unsafe { free(engine) }
}
