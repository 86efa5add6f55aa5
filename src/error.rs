//! The one error type of the crate.

use core::fmt;

/// What can go wrong, with what was wrong and what to do about it.
///
/// No variant carries a secret. Whenever a batch call returns an error, its whole output is zero.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// `exponent_bits` is larger than the width of the exponent of instance `index`.
    ExponentBits {
        /// Position of the instance in the batch.
        index: usize,
        /// The number of exponent bits that was asked for.
        exponent_bits: u32,
        /// Width of the exponent in bits.
        width: u32,
    },
    /// The base of instance `index` is wider than its modulus.
    ///
    /// Only possible with `BoxedUint`, whose width is known at run time.
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
    /// Only possible with `BoxedUint`, whose width is known at run time.
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
    /// The processor lacks instructions that the backend is made of.
    #[cfg(feature = "std")]
    Unsupported {
        /// The backend that was asked for.
        backend: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// The thread pool could not be started.
    #[cfg(feature = "std")]
    ThreadPool {
        /// The number of threads that was asked for.
        threads: usize,
    },
    /// A GPU was to be used in a child process that was forked after the backend was made: the CUDA driver
    /// works in the process that started it only.
    #[cfg(feature = "cuda")]
    Forked,
    /// There is no GPU that can be used.
    #[cfg(feature = "cuda")]
    CudaUnavailable(crate::backend::cuda::Unavailable),
    /// A GPU failed.
    #[cfg(feature = "cuda")]
    Cuda {
        /// The number of the device.
        device: usize,
        /// What happened, and whether the backend can be used again.
        fault: crate::backend::cuda::DeviceFault,
    },
    /// Running times that were measured before are not those of this machine, or cannot be read.
    #[cfg(feature = "cuda")]
    Calibration(crate::backend::cuda::CalibrationFault),
    /// The RSA modulus has a size that the signer does not support.
    #[cfg(feature = "sign")]
    KeySize {
        /// Length of the modulus in bits.
        bits: u32,
    },
    /// A private key cannot be used.
    #[cfg(feature = "sign")]
    Key(crate::rsa::KeyFault),
    /// The RSA modulus is too short for this hash function and padding scheme.
    #[cfg(feature = "sign")]
    KeyTooShort {
        /// Position of the message in the batch.
        index: usize,
        /// Length of the modulus in bits.
        bits: u32,
        /// The shortest modulus that would do, in bits.
        min_bits: u32,
    },
    /// The key may not sign by this scheme: it is of type id-RSASSA-PSS (RFC 4055, section 3.1).
    #[cfg(feature = "sign")]
    KeyRestricted {
        /// Position of the message in the batch.
        index: usize,
        /// What the key may sign by.
        restriction: crate::rsa::Restriction,
    },
    /// A prehashed message is not as long as the digest of the scheme's hash function.
    #[cfg(feature = "sign")]
    DigestLength {
        /// Position of the message in the batch.
        index: usize,
        /// Length of what was given, in bytes.
        len: usize,
        /// Length of a digest, in bytes.
        expected: usize,
    },
    /// A ciphertext or a raw block has the wrong length, or a value that is not below the modulus (RFC 8017,
    /// sections 5.1.2 and 5.2.1: "representative out of range") or that SP 800-56B refuses.
    #[cfg(feature = "sign")]
    BlockOutOfRange {
        /// Position of the block in the batch.
        index: usize,
        /// Length of what was given, in bytes.
        len: usize,
        /// Length of the modulus, in bytes. If it equals `len`, then the block is out of range as a number.
        expected: usize,
    },
    /// A ciphertext does not decrypt: its padding is not that of the scheme with this key, hash and label.
    #[cfg(feature = "sign")]
    Decryption {
        /// Position of the ciphertext in the batch.
        index: usize,
    },
    /// The random number generator failed.
    #[cfg(feature = "sign")]
    Rng,
    /// The result of a private operation did not pass its check and was discarded: the hardware, the
    /// backend or the key is faulty.
    #[cfg(feature = "sign")]
    Fault {
        /// Position of the operation in the batch.
        index: usize,
    },
}

impl Error {
    /// The same error for a batch in which the failed part starts at instance `start`.
    #[cfg(feature = "std")]
    pub(crate) fn in_batch_at(self, start: usize) -> Self {
        self.with_index(|index| start + index)
    }

    /// The same error for a batch in which the instance at fault has another index.
    pub(crate) fn with_index(mut self, in_batch: impl FnOnce(usize) -> usize) -> Self {
        if let Some(index) = self.index_mut() {
            *index = in_batch(*index);
        }
        self
    }

    /// The same error of the instance at `position`; `None` if it is not about one instance.
    #[cfg(feature = "sign")]
    pub(crate) fn of_instance(&self, position: usize) -> Option<Self> {
        let mut error = self.clone();
        *error.index_mut()? = position;
        Some(error)
    }

    /// Which instance of the batch it is about.
    fn index_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::ExponentBits { index, .. }
            | Self::BaseWidth { index, .. }
            | Self::FactorWidth { index, .. }
            | Self::ModulusWidth { index, .. } => Some(index),
            #[cfg(feature = "sign")]
            Self::KeyTooShort { index, .. }
            | Self::KeyRestricted { index, .. }
            | Self::DigestLength { index, .. }
            | Self::BlockOutOfRange { index, .. }
            | Self::Decryption { index }
            | Self::Fault { index } => Some(index),
            // Of the features that this is compiled with, some have no other errors.
            #[allow(unreachable_patterns)]
            _ => None,
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
                "instance {index}: exponent_bits is {exponent_bits}, but the exponent has only {width} bits"
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
                "instance {index}: the modulus is {bits} bits wide, this backend supports at most {max_bits}"
            ),
            #[cfg(feature = "std")]
            Self::Unsupported { backend, needs } => write!(
                f,
                "the backend {backend} needs {needs}, which this machine lacks; ask for another or for `Auto`"
            ),
            #[cfg(feature = "std")]
            Self::ThreadPool { threads } => {
                write!(f, "could not start {threads} threads; ask for fewer")
            }
            #[cfg(feature = "cuda")]
            Self::Forked => f.write_str(
                "a GPU cannot be used in a forked child; make the backend after the fork, \
                 in a process whose parent has not used CUDA",
            ),
            #[cfg(feature = "cuda")]
            Self::CudaUnavailable(reason) => write!(f, "no GPU can be used: {reason}"),
            #[cfg(feature = "cuda")]
            Self::Cuda { device, fault } => write!(f, "CUDA device {device}: {fault}"),
            #[cfg(feature = "cuda")]
            Self::Calibration(fault) => write!(f, "the calibration cannot be used: {fault}"),
            #[cfg(feature = "sign")]
            Self::KeySize { bits } => write!(
                f,
                "the RSA modulus has {bits} bits; supported are {} to {} bits",
                crate::rsa::MIN_BITS,
                crate::rsa::MAX_BITS
            ),
            #[cfg(feature = "sign")]
            Self::Key(fault) => write!(f, "the private key cannot be used: {fault}"),
            #[cfg(feature = "sign")]
            Self::KeyTooShort {
                index,
                bits,
                min_bits,
            } => write!(
                f,
                "message {index}: the RSA modulus has {bits} bits, this hash and padding need {min_bits}; \
                 use a longer key or a shorter hash"
            ),
            #[cfg(feature = "sign")]
            Self::KeyRestricted { index, restriction } => write!(
                f,
                "message {index}: the key may only sign by {restriction}; use that scheme or another key"
            ),
            #[cfg(feature = "sign")]
            Self::DigestLength {
                index,
                len,
                expected,
            } => write!(
                f,
                "message {index}: the prehashed message has {len} bytes, a digest of this hash has {expected}"
            ),
            #[cfg(feature = "sign")]
            Self::BlockOutOfRange {
                index,
                len,
                expected,
            } if len == expected => {
                write!(
                    f,
                    "block {index}: as a number it is out of range for the modulus"
                )
            }
            #[cfg(feature = "sign")]
            Self::BlockOutOfRange {
                index,
                len,
                expected,
            } => write!(
                f,
                "block {index}: it has {len} bytes, the modulus has {expected}"
            ),
            #[cfg(feature = "sign")]
            Self::Decryption { index } => write!(
                f,
                "ciphertext {index}: it was not encrypted for this key with this hash and label"
            ),
            #[cfg(feature = "sign")]
            Self::Rng => f.write_str("the random number generator failed"),
            #[cfg(feature = "sign")]
            Self::Fault { index } => write!(
                f,
                "lane {index}: the result of a private operation failed its check and was discarded; \
                 suspect the hardware or the key"
            ),
        }
    }
}

impl core::error::Error for Error {}
