//! The RSA private operation, the second trait of a backend.

use alloc::vec::Vec;

use crypto_bigint::BoxedUint;

use super::host::{self, NoFaults};
use super::key::KeyHandle;
use crate::secret::Secret;
use crate::{BatchModExp, Error};

/// One RSA private operation: `block ^ d mod n`, RSASP1 of RFC 8017, section 5.2.1.
///
/// A backend reads it. To make one is raw RSA, and needs the feature `hazmat`.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct PrivateOp<'a> {
    pub(super) key: &'a KeyHandle,
    pub(super) block: &'a BoxedUint,
    pub(super) blind: Option<&'a BoxedUint>,
}

impl<'a> PrivateOp<'a> {
    /// The private operation of `key` on `block`, a number below n and as wide as n. `blind` is a fresh
    /// random number below n and as wide as n to blind the base with, or `None` for no blinding.
    #[cfg(feature = "hazmat")]
    #[must_use]
    pub fn new(key: &'a KeyHandle, block: &'a BoxedUint, blind: Option<&'a BoxedUint>) -> Self {
        Self { key, block, blind }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a KeyHandle {
        self.key
    }

    /// The message representative, below n and as wide as n.
    #[must_use]
    pub fn block(&self) -> &'a BoxedUint {
        self.block
    }

    /// A fresh random number below n and as wide as n to blind the base with, or `None` for no blinding.
    #[must_use]
    pub fn blind(&self) -> Option<&'a BoxedUint> {
        self.blind
    }
}

/// The results of a batch of private operations, each wiped on drop and with its own verdict; or the
/// reason why the whole batch failed.
pub type Checked<T> = Result<Vec<Result<Secret<T>, Error>>, Error>;

/// A backend that computes RSA private operations.
///
/// The provided method does everything around the exponentiations on the host, so for most backends an
/// empty `impl` is enough. A backend that can keep the whole operation on its device overrides it.
pub trait RsaPrivateOp: BatchModExp<BoxedUint, Error = Error> {
    /// Computes `block ^ d mod n` for every element of `batch`, and for each checks that the result to
    /// the power of e is `block` before it hands it out.
    ///
    /// Everything about a key is secret but n and e; blocks, blinds and results are secret. The lengths
    /// and the order of the keys in the batch are public.
    ///
    /// The results are in the order of `batch`. One that does not pass its check is
    /// [`Error::Fault`] in its place, and its value is wiped; the others are not affected.
    ///
    /// # Errors
    ///
    /// If the backend fails as a whole, or [`Error::Rng`] if a `blind` has no inverse modulo n, which is
    /// as likely as guessing a prime factor unless the random number generator is broken.
    ///
    /// # Panics
    ///
    /// If a `block` or `blind` is not as wide as its modulus.
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Checked<BoxedUint> {
        host::private_op(self, batch, &mut NoFaults)
    }
}

impl RsaPrivateOp for crate::backend::Serial {}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for &B {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Checked<BoxedUint> {
        (**self).private_op(batch)
    }
}

#[cfg(feature = "std")]
mod threads {
    use super::*;
    use crate::backend::{Auto, Chosen, Parallel};

    /// Each thread takes its share through the whole operation, not only through the exponentiations.
    impl<B: RsaPrivateOp + Sync> RsaPrivateOp for Parallel<B> {
        fn private_op(&self, batch: &[PrivateOp<'_>]) -> Checked<BoxedUint> {
            let shares = self.map_shares(batch, |share| self.inner().private_op(share))?;
            Ok(shares.into_iter().flatten().collect())
        }
    }

    impl RsaPrivateOp for Auto {
        fn private_op(&self, batch: &[PrivateOp<'_>]) -> Checked<BoxedUint> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.private_op(batch),
                Chosen::Cpu(cpu) => cpu.private_op(batch),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => match cuda.private_op(batch) {
                    Err(_) if cuda.is_over() => cuda.host().private_op(batch),
                    results => results,
                },
            }
        }
    }
}
