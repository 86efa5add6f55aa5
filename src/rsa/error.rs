//! Errors of keys, messages and RSA operations.

use core::fmt;

use super::key::fault::KeyFault;
use super::key::restriction::Restriction;
use super::{MAX_BITS, MIN_BITS};

/// Why a message, signature, ciphertext or key was refused, and what to do about it.
///
/// No variant carries a secret. A call that returns an error returns no results. An item of a batch
/// that fails alone has its error in its place.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The size of the modulus is not supported.
    KeySize {
        /// Length of the modulus in bits.
        bits: u32,
    },
    /// A private key cannot be used.
    Key(KeyFault),
    /// A public key cannot be used.
    PublicKey(KeyFault),
    /// Keys of this length cannot be generated: lengths are multiples of 128 bits.
    GeneratedKeySize {
        /// The requested length in bits.
        bits: u32,
    },
    /// Keys with this public exponent cannot be generated: it must be odd and above 2^16 (FIPS
    /// 186-5, section 5.4).
    GeneratedExponent {
        /// The requested exponent.
        e: u32,
    },
    /// The modulus is too short for this hash function and padding scheme.
    KeyTooShort {
        /// Position of the message in the batch.
        index: usize,
        /// Length of the modulus in bits.
        bits: u32,
        /// The shortest sufficient modulus, in bits.
        min_bits: u32,
    },
    /// The key may not sign by this scheme: it is of type id-RSASSA-PSS (RFC 4055, section 3.1).
    KeyRestricted {
        /// Position of the message in the batch.
        index: usize,
        /// The schemes that the key may sign by.
        restriction: Restriction,
    },
    /// A prehashed message is not as long as the digest of the scheme's hash function.
    DigestLength {
        /// Position of the message in the batch.
        index: usize,
        /// Length of the given digest, in bytes.
        len: usize,
        /// Length of a digest, in bytes.
        expected: usize,
    },
    /// A signature, ciphertext or raw block has the wrong length or value. The value is not below
    /// the modulus (RFC 8017, sections 5.1.2 and 5.2.1: "representative out of range"), or SP
    /// 800-56B refuses it.
    BlockOutOfRange {
        /// Position of the block in the batch.
        index: usize,
        /// Length of the given block, in bytes.
        len: usize,
        /// Length of the modulus, in bytes. If it equals `len`, the value of the block is out of
        /// range.
        expected: usize,
    },
    /// A message is too long to be encrypted under this key by this scheme.
    MessageTooLong {
        /// Position of the message in the batch.
        index: usize,
        /// Length of the given message, in bytes.
        len: usize,
        /// The longest message that can be encrypted, in bytes.
        max_len: usize,
    },
    /// A signature is well-formed, but not valid for this message, scheme and key.
    Verification {
        /// Position of the signature in the batch.
        index: usize,
    },
    /// A ciphertext does not decrypt: its padding does not match the scheme with this key, hash and
    /// label.
    Decryption {
        /// Position of the ciphertext in the batch.
        index: usize,
    },
    /// The random number generator failed, or its output cannot be random.
    Rng,
    /// A message cannot be blinded: its encoding or the random blind shares a factor with the
    /// modulus (RFC 9474, section 4.2). This does not happen with a sound key.
    Blinding,
    /// The result of a private operation did not pass its check and was discarded: the hardware,
    /// the backend or the key is faulty.
    Fault {
        /// Position of the operation in the batch.
        index: usize,
    },
    /// The backend failed.
    Backend(batch_modexp_core::Error),
}

impl Error {
    /// The position in the batch of the message, block or instance with the error, if it concerns
    /// one.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Backend(error) => error.index(),
            error => error.clone().index_mut().copied(),
        }
    }

    /// The same error at another `position`, if it concerns an item.
    pub(crate) fn at(mut self, position: usize) -> Self {
        if let Self::Backend(error) = self {
            return Self::Backend(error.with_index(|_| position));
        }
        if let Some(index) = self.index_mut() {
            *index = position;
        }
        self
    }

    fn index_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::KeyTooShort { index, .. }
            | Self::KeyRestricted { index, .. }
            | Self::DigestLength { index, .. }
            | Self::BlockOutOfRange { index, .. }
            | Self::MessageTooLong { index, .. }
            | Self::Verification { index }
            | Self::Decryption { index }
            | Self::Fault { index } => Some(index),
            Self::KeySize { .. }
            | Self::Key(_)
            | Self::PublicKey(_)
            | Self::GeneratedKeySize { .. }
            | Self::GeneratedExponent { .. }
            | Self::Rng
            | Self::Blinding
            | Self::Backend(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeySize { bits } => write!(
                f,
                "the RSA modulus has {bits} bits; supported are {} to {} bits",
                MIN_BITS, MAX_BITS
            ),
            Self::Key(fault) => write!(f, "the private key cannot be used: {fault}"),
            Self::GeneratedKeySize { bits } => write!(
                f,
                "keys of {bits} bits cannot be generated; take a multiple of 128 from {MIN_BITS} to {MAX_BITS}"
            ),
            Self::GeneratedExponent { e } => write!(
                f,
                "keys with the public exponent {e} cannot be generated; take an odd number above 65536"
            ),
            Self::PublicKey(fault) => write!(f, "the public key cannot be used: {fault}"),
            Self::KeyTooShort {
                index,
                bits,
                min_bits,
            } => write!(
                f,
                "message {index}: the RSA modulus has {bits} bits, this hash and padding need {min_bits}; \
                 use a longer key or a shorter hash"
            ),
            Self::KeyRestricted { index, restriction } => write!(
                f,
                "message {index}: the key may only sign by {restriction}; use that scheme or another key"
            ),
            Self::DigestLength {
                index,
                len,
                expected,
            } => write!(
                f,
                "message {index}: the prehashed message has {len} bytes, a digest of this hash has {expected}"
            ),
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
            Self::BlockOutOfRange {
                index,
                len,
                expected,
            } => write!(
                f,
                "block {index}: it has {len} bytes, the modulus has {expected}"
            ),
            Self::MessageTooLong {
                index,
                len,
                max_len,
            } => write!(
                f,
                "message {index}: it has {len} bytes, and at most {max_len} can be encrypted under this key; \
                 encrypt a key for a symmetric cipher"
            ),
            Self::Verification { index } => write!(
                f,
                "signature {index}: it is not one of this message by this scheme under this key"
            ),
            Self::Decryption { index } => write!(
                f,
                "ciphertext {index}: it was not encrypted for this key with this hash and label"
            ),
            Self::Rng => f.write_str("the random number generator failed"),
            Self::Blinding => f.write_str(
                "the message cannot be blinded: the modulus of the public key has small factors; get another key",
            ),
            Self::Fault { index } => write!(
                f,
                "item {index}: the result of a private operation failed its check and was discarded; \
                 suspect the hardware or the key"
            ),
            Self::Backend(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Backend(error) => Some(error),
            _ => None,
        }
    }
}

impl From<batch_modexp_core::Error> for Error {
    fn from(error: batch_modexp_core::Error) -> Self {
        Self::Backend(error)
    }
}
