//! Errors of the arithmetic and of the devices that compute.

mod device;

use core::fmt;

pub use device::{CalibrationFault, DeviceFault, Unavailable};

/// An error of a batch, with its cause and a remedy.
///
/// No variant carries a secret. If a batch call returns an error, its whole output is zero.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// `exponent_bits` is larger than the width of the exponent of instance `index`.
    ExponentBits {
        /// Position of the instance in the batch.
        index: usize,
        /// The requested number of exponent bits.
        exponent_bits: u32,
        /// Width of the exponent in bits.
        width: u32,
    },
    /// The base of instance `index` is wider than its modulus.
    ///
    /// Only possible with `BoxedUint`, whose width is known at run time only.
    BaseWidth {
        /// Position of the instance in the batch.
        index: usize,
        /// Width of the base in bits.
        bits: u32,
        /// Width of the modulus in bits.
        modulus_bits: u32,
    },
    /// A factor of instance `index` of a batch of products is wider than its modulus.
    ///
    /// Only possible with `BoxedUint`, whose width is known at run time only.
    FactorWidth {
        /// Position of the instance in the batch.
        index: usize,
        /// Width of the factor in bits.
        bits: u32,
        /// Width of the modulus in bits.
        modulus_bits: u32,
    },
    /// The modulus of instance `index` is wider than the backend supports.
    ModulusWidth {
        /// Position of the instance in the batch.
        index: usize,
        /// Width of the modulus in bits.
        bits: u32,
        /// The largest width that this backend supports, in bits.
        max_bits: u32,
    },
    /// Product of powers `index` does not have one term for each length of exponents.
    Terms {
        /// Position of the instance in the batch.
        index: usize,
        /// The number of its terms.
        terms: usize,
        /// The number of lengths.
        lengths: usize,
    },
    /// A table of a fixed base does not serve exponents of this length. A table for signed
    /// exponents serves its own length only.
    TableExponentBits {
        /// The requested number of exponent bits.
        exponent_bits: u32,
        /// The exponent bits of the table.
        table_bits: u32,
    },
    /// The smallest table of powers takes more memory than the caller allows.
    TableBytes {
        /// The size of that table in octets.
        bytes: usize,
        /// The limit in octets.
        max_bytes: usize,
    },
    /// A backend of another kind made the table of powers, in another representation.
    TableOfOtherBackend,
    /// The product of a base and its given inverse is not 1.
    NotInverse,
    /// The processor lacks instructions that the backend needs.
    Unsupported {
        /// The requested backend.
        backend: &'static str,
        /// The required instructions.
        needs: &'static str,
    },
    /// The thread pool could not be started.
    ThreadPool {
        /// The requested number of threads.
        threads: usize,
    },
    /// A forked child used a GPU of a backend that its parent made. The CUDA driver works only in
    /// the process that started it.
    Forked,
    /// No GPU can be used.
    CudaUnavailable(Unavailable),
    /// A GPU failed.
    Cuda {
        /// The number of the device.
        device: usize,
        /// The fault; it tells whether the backend remains usable.
        fault: DeviceFault,
    },
    /// Loaded running times are not those of this machine, or cannot be read.
    Calibration(CalibrationFault),
}

impl Error {
    /// Converts an error of a part that starts at instance `start` to an error of the whole batch.
    #[must_use]
    pub fn in_batch_at(self, start: usize) -> Self {
        self.with_index(|index| start + index)
    }

    /// Replaces the index of the instance at fault.
    pub fn with_index(mut self, in_batch: impl FnOnce(usize) -> usize) -> Self {
        if let Some(index) = self.index_mut() {
            *index = in_batch(*index);
        }
        self
    }

    /// The index of the instance at fault, if the error is about one instance: the first such
    /// instance that was found.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.clone().index_mut().copied()
    }

    fn index_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::ExponentBits { index, .. }
            | Self::BaseWidth { index, .. }
            | Self::FactorWidth { index, .. }
            | Self::ModulusWidth { index, .. }
            | Self::Terms { index, .. } => Some(index),
            Self::TableExponentBits { .. } | Self::TableBytes { .. } => None,
            Self::TableOfOtherBackend | Self::NotInverse => None,
            Self::Unsupported { .. } | Self::ThreadPool { .. } => None,
            Self::Forked | Self::CudaUnavailable(_) | Self::Cuda { .. } | Self::Calibration(_) => {
                None
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExponentBits {
                index,
                exponent_bits,
                width,
            } => write!(
                f,
                "instance {index}: exponent_bits is {exponent_bits}, but the exponent is only {width} bits wide; \
                 widen the exponent or lower exponent_bits"
            ),
            Self::BaseWidth {
                index,
                bits,
                modulus_bits,
            } => write!(
                f,
                "instance {index}: the base is {bits} bits wide, the modulus only {modulus_bits}; \
                 reduce the base or widen the modulus"
            ),
            Self::FactorWidth {
                index,
                bits,
                modulus_bits,
            } => write!(
                f,
                "instance {index}: a factor is {bits} bits wide, the modulus only {modulus_bits}; \
                 reduce the factor or widen the modulus"
            ),
            Self::ModulusWidth {
                index,
                bits,
                max_bits,
            } => write!(
                f,
                "instance {index}: the modulus is {bits} bits wide, this backend supports at most {max_bits}; \
                 narrow it, or use a backend for wider ones"
            ),
            Self::Terms {
                index,
                terms,
                lengths,
            } => write!(
                f,
                "instance {index} has {terms} terms, but the number of exponent lengths is {lengths}; \
                 pass one length for each term"
            ),
            Self::TableExponentBits {
                exponent_bits,
                table_bits,
            } => write!(
                f,
                "exponent_bits is {exponent_bits}, but the table is for {table_bits}; a table serves shorter exponents too, \
                 a signed one only its own length"
            ),
            Self::TableBytes { bytes, max_bytes } => write!(
                f,
                "the smallest table takes {bytes} octets, more than the {max_bytes} that are allowed; raise max_bytes"
            ),
            Self::TableOfOtherBackend => f.write_str(
                "the table was made by a backend of another kind; make it with the one that computes",
            ),
            Self::NotInverse => f.write_str(
                "the base times the given inverse is not 1; if the base has no inverse, no signed table can be made",
            ),
            Self::Unsupported { backend, needs } => write!(
                f,
                "the backend {backend} needs {needs}, which this machine lacks; ask for another or for `Auto`"
            ),
            Self::ThreadPool { threads } => {
                write!(f, "could not start {threads} threads; ask for fewer")
            }
            Self::Forked => f.write_str(
                "a GPU cannot be used in a forked child; make the backend after the fork, \
                 in a process whose parent has not used CUDA",
            ),
            Self::CudaUnavailable(reason) => write!(f, "no GPU can be used: {reason}"),
            Self::Cuda { device, fault } => write!(f, "CUDA device {device}: {fault}"),
            Self::Calibration(fault) => write!(f, "the calibration cannot be used: {fault}"),
        }
    }
}

impl core::error::Error for Error {}
