//! Engines: objects of C that compute.

use std::num::NonZeroUsize;
use std::sync::Arc;

use batch_modexp::backend::{Auto, Kind};

use crate::boundary::{argument, failed, free, make};

/// The maximum number of threads of an engine.
const MOST_THREADS: usize = 1024;

/// `bme_engine` of the header. Queues share its backend.
pub(crate) struct Engine(pub(crate) Arc<Auto>);

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_new(threads: usize, out: *mut *mut Engine) -> i32 {
    let start = || match threads {
        0..=MOST_THREADS => {
            let auto = Auto::with(Kind::Cpu, NonZeroUsize::new(threads));
            Ok(Engine(Arc::new(auto.map_err(failed)?)))
        }
        _ => Err(argument("an engine has at most 1024 threads")),
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, start) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_free(engine: *mut Engine) {
    // SAFETY: the caller vouches for it.
    unsafe { free(engine) }
}
