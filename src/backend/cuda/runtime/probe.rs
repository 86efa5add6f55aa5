//! Looks for a driver and devices, step by step, without calling into a library that may be
//! missing. The properties of devices, and the driver's errors as faults.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::{DeviceFault, Unavailable};
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use cudarc::driver::{DriverError, result};

/// CUDA 11.0, the first driver for PTX 7.0.
const MIN_CUDA_VERSION: i32 = match sys::CUDA_VERSION {
    // cudarc then takes the times of events from a function that older drivers lack.
    13_000.. => 13_000,
    _ => 11_000,
};
/// Volta, the target of the PTX, and the first chip with `__syncwarp`.
const MIN_COMPUTE_CAPABILITY: (i32, i32) = (7, 0);

/// A GPU that this crate can use. If it belongs to a calibrated backend, it includes the measured
/// times.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceInfo {
    ordinal: usize,
    name: String,
    compute_capability: (i32, i32),
    multiprocessors: u32,
    /// The clock of the multiprocessors in kHz.
    pub(crate) clock_khz: u32,
    memory_bytes: usize,
    single_to_double: u32,
    /// The most shared memory that a block may ask for, in bytes.
    pub(crate) shared_bytes_per_block: u32,
    /// The CUDA version of the driver, 1000 times the major and 10 times the minor number.
    pub(crate) cuda_version: i32,
    /// The measured times of this device. `None` before a calibration.
    pub(crate) costs: Option<Arc<Costs>>,
}

impl DeviceInfo {
    /// The device's number, from 0, in the order of the driver's list, which `CUDA_VISIBLE_DEVICES`
    /// affects.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The device's name, such as `NVIDIA H200`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compute capability, major and minor.
    #[must_use]
    pub fn compute_capability(&self) -> (i32, i32) {
        self.compute_capability
    }

    /// The number of multiprocessors.
    #[must_use]
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The size of its memory in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The ratio of single- to double-precision throughput: 2 on chips for data centers, and 32 or
    /// 64 on chips for games, where the kernels of this crate are slow.
    #[must_use]
    pub fn single_to_double(&self) -> u32 {
        self.single_to_double
    }

    /// Whether the device is faster than a processor with many cores.
    ///
    /// Chips for data centers have half as many double-precision units as single-precision ones.
    /// Others have 1/32 or fewer. They have not been measured; callers can name them.
    pub(crate) fn is_fast(&self) -> bool {
        self.single_to_double <= 4
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.compute_capability;
        write!(
            f,
            "device {}: {}, compute capability {major}.{minor}, {} multiprocessors, {} MiB",
            self.ordinal,
            self.name,
            self.multiprocessors,
            self.memory_bytes >> 20
        )
    }
}

/// The measured running times of one device, which replace the estimates for similar chips. Public,
/// like everything that they depend on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Costs {
    /// Nanoseconds of a call beyond its kernels: copies, launches, waiting. `None` if no kernel was
    /// measured.
    pub(crate) call_ns: Option<u64>,
    /// Costs by kernel, for kernels that compute one exponentiation for each instance.
    ///
    /// Kernels for other operations on numbers of equal width, in equally many lanes, do the same
    /// arithmetic and take as long.
    pub(crate) kernels: BTreeMap<KernelKey, BlockTimes>,
}

/// Kernels with the same arithmetic, for different operations.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct KernelKey {
    pub(crate) family: &'static str,
    /// The width of the class in bits.
    pub(crate) bits: u32,
    pub(crate) variant: &'static str,
}

/// The times of a block with exponents as long as its numbers, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BlockTimes {
    /// The time of a block that has a multiprocessor to itself.
    pub(crate) alone_ns: u64,
    /// The time of each block when a multiprocessor is full of them.
    pub(crate) shared_ns: u64,
}

/// See [`Cuda::probe`](crate::backend::Cuda::probe).
pub(crate) fn devices() -> Result<Vec<DeviceInfo>, Unavailable> {
    if !is_driver_present() {
        return Err(Unavailable::NoDriver);
    }
    // From here on the library is present, so its functions, including the names of errors, can be
    // called.
    let failed = |error| Unavailable::DriverFailed {
        name: name_of(error),
    };
    let version = driver_version().map_err(failed)?;
    if version < MIN_CUDA_VERSION {
        let needed = MIN_CUDA_VERSION;
        return Err(Unavailable::DriverTooOld { version, needed });
    }
    result::init().map_err(|error| match error.0 {
        CUresult::CUDA_ERROR_NO_DEVICE => Unavailable::NoDevice,
        _ => failed(error),
    })?;
    let count = result::device::get_count().map_err(failed)?;
    let all: Vec<_> = (0..count)
        .map(|ordinal| describe(ordinal, version))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let newest = all
        .iter()
        .max_by_key(|device| device.compute_capability)
        .ok_or(Unavailable::NoDevice)?;
    if newest.compute_capability < MIN_COMPUTE_CAPABILITY {
        return Err(Unavailable::DeviceTooOld {
            name: newest.name.clone(),
            compute_capability: newest.compute_capability,
        });
    }
    let new_enough = |device: &DeviceInfo| device.compute_capability >= MIN_COMPUTE_CAPABILITY;
    Ok(all.into_iter().filter(new_enough).collect())
}

fn is_driver_present() -> bool {
    // cudarc's own function, if there is one, takes precedence over the one outside.
    #[allow(unused_imports, clippy::wildcard_imports)]
    use sys::*;
    // SAFETY: this loads the driver's library, whose initialisers are the vendor's.
    unsafe { is_culib_present() }
}

/// A substitute for cudarc's function of this name, which exists only if cudarc loads the driver's
/// library at run time. With `dynamic-linking` or `static-linking`, no program starts without the
/// library.
///
/// # Safety
///
/// No requirements. cudarc's function is `unsafe`, so this is too.
#[allow(dead_code)]
unsafe fn is_culib_present() -> bool {
    true
}

fn driver_version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the library is present, and `version` is a valid place for the answer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(version)
}

fn describe(ordinal: i32, cuda_version: i32) -> Result<DeviceInfo, DriverError> {
    use CUdevice_attribute as Is;
    let device = result::device::get(ordinal)?;
    // SAFETY: the driver is initialised, and `device` comes from it.
    let get = |which| unsafe { result::device::get_attribute(device, which) };
    Ok(DeviceInfo {
        ordinal: ordinal as usize,
        name: result::device::get_name(device)?,
        compute_capability: (
            get(Is::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(Is::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: get(Is::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        clock_khz: get(Is::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? as u32,
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device)? },
        single_to_double: get(Is::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?
            as u32,
        shared_bytes_per_block: get(Is::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            as u32,
        cuda_version,
        costs: None,
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    impl DeviceInfo {
        /// An invented device.
        pub(crate) fn imaginary(multiprocessors: u32, shared_bytes_per_block: u32) -> Self {
            Self {
                ordinal: 0,
                name: String::new(),
                compute_capability: (9, 0),
                multiprocessors,
                clock_khz: 1_000_000,
                memory_bytes: 1 << 30,
                single_to_double: 2,
                shared_bytes_per_block,
                cuda_version: 13_000,
                costs: None,
            }
        }

        /// The same device with another driver.
        pub(crate) fn with_cuda_version(self, cuda_version: i32) -> Self {
            Self {
                cuda_version,
                ..self
            }
        }

        /// The same device with another compute capability.
        pub(crate) fn with_compute_capability(self, compute_capability: (i32, i32)) -> Self {
            Self {
                compute_capability,
                ..self
            }
        }

        /// The same device with these measured times.
        pub(crate) fn with_costs(mut self, costs: Costs) -> Self {
            self.costs = Some(Arc::new(costs));
            self
        }

        /// The same device with as few double-precision units as chips for games.
        pub(crate) fn with_few_doubles(self) -> Self {
            Self {
                single_to_double: 64,
                ..self
            }
        }
    }

    /// On any machine the result is a list or a reason, never a panic.
    #[test]
    fn probing_is_safe_anywhere() {
        match devices() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(reason) => {
                std::println!("no GPU: {reason}");
                assert!(!alloc::format!("{reason}").is_empty());
            }
        }
    }
}
