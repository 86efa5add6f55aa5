//! A user's crate that uses cudarc beside this crate.

use batch_modexp::backend::Cuda;
use cudarc::driver::{CudaContext, DriverError};

/// Opens the first device with both crates.
pub fn both() -> Result<Option<Cuda>, DriverError> {
    let _context = CudaContext::new(0)?;
    Ok(Cuda::with_devices(&[0]).ok())
}
