//! Uses cudarc beside this crate.

use batch_modexp::backend::Cuda;
use cudarc::driver::{CudaContext, DriverError};

/// The first device, for both.
pub fn both() -> Result<Option<Cuda>, DriverError> {
    let _context = CudaContext::new(0)?;
    Ok(Cuda::with_devices(&[0]).ok())
}
