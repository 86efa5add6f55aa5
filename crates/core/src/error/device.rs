//! Faults of devices and of calibrations, as plain data without types of the driver.

use alloc::string::String;
use core::fmt;

use crate::Error;

/// Why no GPU can be used.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver library (`libcuda.so` or `nvcuda.dll`) is not installed.
    NoDriver,
    /// The driver is older than CUDA 11.0, or than 13.0 in a build whose cudarc requires 13.0 or
    /// later.
    DriverTooOld {
        /// The driver's CUDA version: 1000 times the major plus 10 times the minor.
        version: i32,
        /// The required version, in the same form.
        needed: i32,
    },
    /// The driver is there but could not start.
    DriverFailed {
        /// The driver's name for the error.
        name: String,
    },
    /// The driver sees no device.
    NoDevice,
    /// All devices are older than compute capability 7.0.
    DeviceTooOld {
        /// The name of the newest device.
        name: String,
        /// Its compute capability, major and minor.
        compute_capability: (i32, i32),
    },
    /// No usable device has this number.
    NoSuchDevice {
        /// The requested number.
        ordinal: usize,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver => f.write_str("no NVIDIA driver library was found; install the driver"),
            Self::DriverTooOld { version, needed } => write!(
                f,
                "the NVIDIA driver knows CUDA {}.{}, but {}.{} is needed; install a newer driver",
                version / 1000,
                version % 1000 / 10,
                needed / 1000,
                needed % 1000 / 10
            ),
            Self::DriverFailed { name } => write!(f, "the NVIDIA driver does not start: {name}"),
            Self::NoDevice => f.write_str("an NVIDIA driver is installed, but it sees no device"),
            Self::DeviceTooOld {
                name,
                compute_capability: (major, minor),
            } => write!(
                f,
                "{name} has compute capability {major}.{minor}, but 7.0 (Volta) is needed"
            ),
            Self::NoSuchDevice { ordinal } => {
                write!(f, "there is no usable CUDA device number {ordinal}")
            }
        }
    }
}

impl core::error::Error for Unavailable {}

impl From<Unavailable> for Error {
    fn from(reason: Unavailable) -> Self {
        Self::CudaUnavailable(reason)
    }
}

/// How a device failed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DeviceFault {
    /// Device memory or pinned host memory is used up. The backend has freed its buffers and
    /// remains usable, for instance with a smaller batch.
    OutOfMemory,
    /// The driver reported an error of this call only. The backend remains usable.
    Failed {
        /// The driver's name for the error.
        name: String,
    },
    /// The driver reported an error that disables this device until the process ends. Other devices
    /// of the backend take over. After the last one is lost, this call and all later ones return
    /// this error.
    Lost {
        /// The driver's name for the error.
        name: String,
    },
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("out of memory; use smaller batches"),
            Self::Failed { name } => write!(f, "{name}"),
            Self::Lost { name } => write!(
                f,
                "{name}; the device cannot be used any more by this process, which should start anew"
            ),
        }
    }
}

/// Why a calibration cannot be used. The remedy is always to calibrate again.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CalibrationFault {
    /// The text is not a calibration, or it was changed or truncated.
    Garbled {
        /// The number of the first bad line, from 1. If lines are missing, the number after the
        /// last line.
        line: usize,
    },
    /// The calibration is for the kernels of another version of the crate.
    OtherKernels,
    /// The calibration lacks a device: another chip, another number of multiprocessors, or another
    /// version of the driver.
    OtherDevice {
        /// The name of the device.
        name: String,
    },
    /// The calibration is for another CPU backend.
    OtherProcessor {
        /// The CPU backend of this machine.
        backend: &'static str,
    },
    /// The backend computes on the processor only, so it has no choice to calibrate.
    NoGpu,
}

impl fmt::Display for CalibrationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbled { line } => write!(
                f,
                "line {line} is not that of a calibration, or was changed"
            ),
            Self::OtherKernels => {
                f.write_str("it is about the kernels of another version; calibrate again")
            }
            Self::OtherDevice { name } => write!(
                f,
                "it is not about {name} with this driver; calibrate again on this machine"
            ),
            Self::OtherProcessor { backend } => write!(
                f,
                "it is not about the processor backend {backend}; calibrate again on this machine"
            ),
            Self::NoGpu => f.write_str("without a GPU there is nothing to choose"),
        }
    }
}

impl core::error::Error for CalibrationFault {}

impl From<CalibrationFault> for Error {
    fn from(fault: CalibrationFault) -> Self {
        Self::Calibration(fault)
    }
}
