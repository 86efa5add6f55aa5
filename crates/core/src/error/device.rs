//! Why there is no device, how a device can fail, and why measured times cannot be used: plain data, whatever the driver's interface.

use alloc::string::String;
use core::fmt;

use crate::Error;

/// Why no GPU can be used.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver library (`libcuda.so` or `nvcuda.dll`) is not installed.
    NoDriver,
    /// The driver is older than CUDA 11.0, or than 13.0 in a tree that builds cudarc for that or for a later one.
    DriverTooOld {
        /// The driver's CUDA version, 1000 times the major plus 10 times the minor.
        version: i32,
        /// The one that is needed, in the same form.
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
        /// The name of the newest of them.
        name: String,
        /// Its compute capability, major and minor.
        compute_capability: (i32, i32),
    },
    /// There is no usable device of this number.
    NoSuchDevice {
        /// The number that was asked for.
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
    /// Device or pinned host memory is used up. The backend has given back its buffers and can be used
    /// again, with a smaller batch for instance.
    OutOfMemory,
    /// The driver reported an error that concerns this call alone. The backend can be used again.
    Failed {
        /// The driver's name for the error.
        name: String,
    },
    /// The driver reported an error after which nothing works on this device until the process ends. While
    /// the backend has other devices they take over; when the last is lost, that call and all later ones
    /// return this.
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

/// Why a calibration cannot be used. What helps against each is to calibrate again.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CalibrationFault {
    /// The text is no calibration, or it was changed or cut off.
    Garbled {
        /// The number of the first line that is not as it should be, from 1; past the last one if something is missing.
        line: usize,
    },
    /// It is about the kernels of another version of the crate.
    OtherKernels,
    /// It knows nothing of a device: another chip, another number of multiprocessors, or another version of the driver.
    OtherDevice {
        /// The name of the device.
        name: String,
    },
    /// It is about another backend of the processor.
    OtherProcessor {
        /// The name of the backend that this machine has.
        backend: &'static str,
    },
    /// There is nothing to choose: the backend computes on the processor alone.
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
