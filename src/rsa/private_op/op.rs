//! What goes into a private operation and what comes out.

use alloc::vec::Vec;

use crypto_bigint::BoxedUint;

use crate::Error;
use crate::rsa::KeyHandle;
use crate::secret::Secret;

/// One RSA private operation: `representative ^ d mod n`, RSASP1 of RFC 8017, section 5.2.1.
///
/// A backend reads it. To make one is raw RSA, and needs the feature `hazmat`.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct PrivateOp<'a> {
    pub(super) key: &'a KeyHandle,
    pub(super) representative: &'a BoxedUint,
    pub(super) blind: Option<&'a BoxedUint>,
}

impl<'a> PrivateOp<'a> {
    /// The private operation of `key` on the message representative `block`, a number below n and as wide as
    /// n. `blind` is a fresh random number below n and as wide as n to blind the base with, or `None` for no
    /// blinding.
    #[cfg(feature = "hazmat")]
    #[must_use]
    pub fn new(key: &'a KeyHandle, block: &'a BoxedUint, blind: Option<&'a BoxedUint>) -> Self {
        Self {
            key,
            representative: block,
            blind,
        }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a KeyHandle {
        self.key
    }

    /// The message representative, below n and as wide as n.
    #[must_use]
    pub fn block(&self) -> &'a BoxedUint {
        self.representative
    }

    /// A fresh random number below n and as wide as n to blind the base with, or `None` for no blinding.
    #[must_use]
    pub fn blind(&self) -> Option<&'a BoxedUint> {
        self.blind
    }
}

/// What a backend makes of a batch of private operations: for each lane a candidate, wiped on drop, or what
/// is wrong with it; or the reason why the whole batch failed. Nothing has been checked yet.
pub type Candidates = Result<Vec<Result<Secret<BoxedUint>, Error>>, Error>;

/// The results of a batch of private operations that have passed their check, each wiped on drop and with
/// its own verdict; or the reason why the whole batch failed.
pub type Checked<T> = Result<Vec<Result<Secret<T>, Error>>, Error>;
