//! The RSA private operation: the second trait of a backend, and everything around the exponentiations.
//!
//! From the top down:
//!
//! * `backends` and `cuda` implement the trait. `helpers` are threads for what is done once for a batch.
//! * `ops` sorts a batch by the keys' public shapes (`group`), cuts it into parts, and opens them as a `chunk`.
//! * `host` computes the candidates of a chunk, with the arithmetic of `crt` and `blinding`.
//! * `opened` makes the numbers of lanes (`random`, `blinding`) and takes candidates through the `check` to their `places`.
//! * `batch` holds what all parts share. `host_engine` is the engine for everything but the exponentiations.

mod backends;
mod batch;
mod blinding;
mod check;
mod chunk;
mod crt;
#[cfg(feature = "cuda")]
mod cuda;
mod group;
mod helpers;
mod host;
mod host_engine;
mod opened;
mod ops;
mod places;
mod random;

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;

use crypto_bigint::BoxedUint;

pub(super) use self::batch::Source;
pub use self::chunk::Chunk;
#[doc(hidden)]
pub use self::helpers::Helpers;
pub use self::host_engine::HostEngine;
pub use self::ops::PrivateOps;
pub(super) use self::ops::{Keys, private_ops};
pub(super) use self::random::{Randomness, Streams};
use crate::BatchModExp;
use crate::rsa::Error;
use crate::secret::Secret;

/// The results of a batch of private operations that have passed their check, each wiped on drop and with
/// its own verdict; or the reason why the whole batch failed.
pub type Checked<T> = Result<Vec<Result<Secret<T>, Error>>, Error>;

/// How many lanes a thread takes through all stages at a time. More would not stay in a cache.
const LANES_AT_A_TIME: usize = 512;

/// A backend that computes RSA private operations.
///
/// The provided method does everything around the exponentiations on the calling thread, so for most backends an
/// empty `impl` is enough. A backend that can keep the whole operation on its device, or has threads for it,
/// overrides it.
///
/// **A backend is not trusted.** It gets numbers by [opening](PrivateOps::open) lanes and gives candidates back
/// by [delivering](Chunk::deliver) them; there every candidate is raised to e and compared before it goes on to
/// the caller, whatever the backend is. One wrong half of a CRT signature gives away the key (Boneh, DeMillo
/// and Lipton, 1997).
///
/// ```
/// use batch_modexp::rsa::{PrivateOps, RsaPrivateOp};
/// use batch_modexp::{BatchModExp, Error, ModExp, backend::Serial};
/// use crypto_bigint::BoxedUint;
///
/// /// Says how many lanes go by.
/// struct Chatty(Serial);
///
/// impl BatchModExp<BoxedUint> for Chatty {
///     type Error = Error;
///
///     fn batch_mod_exp(
///         &self,
///         batch: &[ModExp<'_, BoxedUint>],
///         exponent_bits: u32,
///         out: &mut [BoxedUint],
///     ) -> Result<(), Error> {
///         self.0.batch_mod_exp(batch, exponent_bits, out)
///     }
/// }
///
/// impl RsaPrivateOp for Chatty {
///     fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
///         for ops in ops.chunks(100) {
///             println!("{} lanes", ops.len());
///             let chunk = ops.open()?;
///             let candidates = chunk.candidates(&self.0)?;
///             chunk.deliver(&candidates)?;
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait RsaPrivateOp: BatchModExp<BoxedUint, Error = crate::Error> {
    /// Computes `representative ^ d mod n` for all lanes of `ops`, and delivers the candidates.
    ///
    /// Everything about a key is secret but n and e; representatives, blinds and candidates are secret. The
    /// lengths and the order of the keys are public.
    ///
    /// # Errors
    ///
    /// If the backend fails as a whole, or [`Error::Rng`].
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        ops.compute_on(self, LANES_AT_A_TIME)
    }

    /// The engine of this crate that computes everything on the host but the exponentiations: blinding, the reduction
    /// modulo p and q, the recombination and the check.
    ///
    /// By default that of [`Serial`](crate::backend::Serial). A backend that wraps another one returns that one's engine;
    /// any other can keep a [`Cpu`](crate::backend::Cpu) and return its engine, which is faster.
    fn engine(&self) -> HostEngine<'_> {
        HostEngine::default()
    }

    /// What computes on the calling thread alone, and on how many threads at the same time that is of use: for who has threads
    /// of their own and many small batches, as a queue has, and need not wait for each other then.
    ///
    /// `None`, as provided, for a backend that takes one batch after the other: a device, or one that has not said so.
    fn per_thread(&self) -> Option<PerThread<'_>> {
        None
    }

    /// Threads of the backend's for what is done once for a whole batch, if it computes so fast that this counts. They must not be busy for
    /// long with other batches, since the call waits for them.
    #[doc(hidden)]
    fn helpers(&self) -> Helpers<'_> {
        Helpers::default()
    }
}

/// A backend for as many threads as call it: see [`RsaPrivateOp::per_thread`].
#[derive(Clone, Copy)]
pub struct PerThread<'a> {
    /// Computes on the calling thread.
    pub backend: &'a (dyn RsaPrivateOp + Sync),
    /// More calls at the same time than this take time from each other.
    pub threads: NonZeroUsize,
}

impl fmt::Debug for PerThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
