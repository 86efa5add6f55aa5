//! The driver's errors as faults of a device.

use alloc::string::String;

use batch_modexp_core::DeviceFault;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// Treats an error as one of this call alone. The next use of the device shows whether it is lost.
pub(super) fn fault_of(error: DriverError) -> DeviceFault {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceFault::OutOfMemory,
        _ => DeviceFault::Failed {
            name: name_of(error),
        },
    }
}

/// The driver's name for an error, such as `CUDA_ERROR_LAUNCH_FAILED`. The driver must be loaded.
pub(super) fn name_of(error: DriverError) -> String {
    match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => alloc::format!("CUDA error {}", error.0 as u32),
    }
}
