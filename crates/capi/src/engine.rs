//! Engines.

use batch_modexp::backend::Auto;

use crate::border::{failed, free, make};

/// `bme_engine` of the header.
pub(crate) type Engine = Auto;

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_new(out: *mut *mut Engine) -> i32 {
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, || Auto::new().map_err(failed)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_free(engine: *mut Engine) {
    // SAFETY: the caller vouches for it.
    unsafe { free(engine) }
}
