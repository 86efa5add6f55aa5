//! The RSA private operation: the second trait of a backend, and everything around the exponentiations.
//!
//! From the bottom up: `op` is what goes in and comes out, `group` sorts a batch by the keys' public shapes,
//! `blinding` and `crt` do arithmetic on a group, `host` puts them together, `backends` and `cuda` are the
//! implementations, and `check` stands above all of them.

mod backends;
mod blinding;
pub(super) mod check;
mod crt;
#[cfg(feature = "cuda")]
mod cuda;
mod group;
mod host;
mod op;
mod threads;

use crypto_bigint::BoxedUint;

pub use self::op::{Candidates, Checked, PrivateOp};
pub use self::threads::HostThreads;
use crate::{BatchModExp, Error};

/// A backend that computes RSA private operations.
///
/// The provided methods do everything around the exponentiations on the host, on the calling thread, so for
/// most backends an empty `impl` is enough. A backend that can keep the whole operation on its device
/// overrides [`private_op`](Self::private_op).
///
/// **What it returns is unchecked.** [`BatchSigner`](super::BatchSigner) and `hazmat::rsasp1` raise every
/// candidate to e and compare before they let it out, whatever the backend is; whoever calls `private_op`
/// directly must do the same. One wrong half of a CRT signature gives away the key (Boneh, DeMillo and
/// Lipton, 1997).
pub trait RsaPrivateOp: BatchModExp<BoxedUint, Error = Error> {
    /// Computes `representative ^ d mod n` for every element of `batch`, in its order: *candidates*, which
    /// nobody has checked yet.
    ///
    /// Everything about a key is secret but n and e; representatives, blinds and candidates are secret. The
    /// lengths and the order of the keys in the batch are public.
    ///
    /// What is wrong with a single lane stands in its place, with its position in `batch` where the error
    /// names one; the others are not affected.
    ///
    /// # Errors
    ///
    /// If the backend fails as a whole, or [`Error::Rng`] if a `blind` has no inverse modulo n, which is
    /// as likely as guessing a prime factor unless the random number generator is broken.
    ///
    /// # Panics
    ///
    /// If a representative or `blind` is not as wide as its modulus.
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        host::private_op(self, batch)
    }

    /// The threads on which the results of this backend are checked; as a rule those that it computes on. It
    /// only lends them: what they compute with is not the backend's choice.
    fn check_threads(&self) -> HostThreads<'_> {
        HostThreads::calling_thread()
    }
}
