//! RSA private and public operations on a backend.

#[cfg(feature = "std")]
mod auto;
#[cfg(feature = "cuda")]
mod cuda;
mod forward;
#[cfg(feature = "std")]
mod parallel;

use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::ops::Range;
use core::{fmt, ptr};

use batch_modexp_core::Serial;
use batch_modexp_core::engine::Engine;
pub use batch_modexp_core::engine::SecretPowers;
pub use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;

pub use super::batch::Items;
use super::batch::{Batch, Outputs, Positions, Source};
use super::error::Error;
use super::key::{KeyClass, KeyParts};
use super::private_op;
use super::random::Streams;

/// The most items that a thread computes at a time. More would not fit into a cache.
const ITEMS_AT_A_TIME: usize = 512;

/// A backend that computes RSA operations.
///
/// One that only exponentiates needs the first method. The others then compute on the calling
/// thread, secret exponentiations on the backend and everything else on its
/// [engine](Self::engine).
///
/// **A backend is not trusted.** An engine of this crate recombines, unblinds and checks its
/// powers. Every private result is raised to e and compared with the encoded message before it is
/// returned. One wrong half of a CRT signature reveals the key (Boneh, DeMillo and Lipton, 1997).
///
/// ```
/// use batch_modexp::rsa::backend::{RsaBackend, SecretPowers};
/// use batch_modexp::{Error, backend::Serial};
///
/// /// Prints how many exponentiations it computes.
/// struct Chatty(Serial);
///
/// impl RsaBackend for Chatty {
///     fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
///         println!("{} with {} bits", powers.moduli.len(), powers.exponent_bits);
///         self.0.exponentiate(powers)
///     }
/// }
/// ```
pub trait RsaBackend {
    /// Computes powers with secret exponents: modulo the p of all items, then the q of all items, or
    /// modulo n for keys without CRT values. Key generation also tests candidates for primes.
    ///
    /// Key generation calls this on every thread, so `Auto` with GPUs computes few powers on the
    /// calling one. A power that is wrong or not written fails its own item. Any thread may call
    /// this, and several at a time if the backend is shared.
    ///
    /// # Errors
    ///
    /// The backend's error, which fails the whole batch. With an
    /// [index](batch_modexp_core::Error::index) it fails only the items whose keys share all public
    /// numbers except n with these. The powers are then ignored.
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

    /// Computes all items. The results of private operations are checked before they are returned
    /// to callers; an item that is not computed fails with [`Error::Fault`].
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], or the backend's error if it fails as a whole. The error of a single item is
    /// stored in its place.
    fn compute(&self, items: Items<'_>) -> Result<(), Error> {
        items.compute_on(self)
    }

    /// The engine of this crate for the host's part: blinding, reduction modulo p and q,
    /// recombination, check, and public operations.
    ///
    /// By default that of [`Serial`]. A backend that wraps another one returns that one's engine.
    /// Any other backend can keep a [`Cpu`](crate::backend::Cpu) and return its engine, which is faster.
    fn engine(&self) -> HostEngine<'_> {
        HostEngine::default()
    }

    /// A single-threaded backend, and how many callers may usefully run it at once. Queues use it
    /// to compute small batches side by side.
    ///
    /// `None`, as provided, for backends that compute one batch after another, such as devices.
    fn per_thread(&self) -> Option<PerThread<'_>> {
        None
    }

    /// The threads of the processor beside the devices of a backend. Key generation divides its
    /// work among them, and only exponentiates on the devices.
    ///
    /// By default those of [`per_thread`](Self::per_thread).
    fn per_host_thread(&self) -> Option<PerThread<'_>> {
        self.per_thread()
    }
}

/// Computes one operation for each of `count` items: private or public ones, as the keys of the
/// source are. Returns the outputs that `source` makes of the results; those of private operations
/// have passed their check.
///
/// Sorts items by key class, and has `backend` compute each class. `is_blinded` blinds the bases of
/// private operations and requires `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn compute_by_class<B: RsaBackend + ?Sized>(
    backend: &B,
    count: usize,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Secret<Outputs>, Error> {
    let keys: Vec<&KeyParts> = (0..count).map(|position| source.key(position)).collect();
    let lens = keys.iter().map(|key| source.output_len(key));
    let mut outputs = Outputs::new(count, lens.max().unwrap_or(0));
    let (positions, classes) = sort(&keys);
    let lists = positions.map(|list| [list.clone(), list]);
    let keys = match &lists {
        None => keys,
        Some([list, _]) => list.iter().map(|&position| keys[position]).collect(),
    };
    for (class, range) in classes {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: match &lists {
                None => Positions::From([range.start; 2]),
                Some(lists) => Positions::Lists(lists.each_ref().map(|list| &list[range.clone()])),
            },
            source,
            streams,
            is_blinded,
        };
        let mut items = outputs.items(batch, range);
        match backend.compute(items.reborrow()) {
            // A backend's error about one item concerns its width. All numbers of a class are
            // equally wide, so every item of the class gets it, unless it has an error of its own.
            Err(error) if error.index().is_some() => {
                for item in 0..items.len() {
                    if items.error(item).is_none() {
                        items.fail(item, error.clone());
                    }
                }
            }
            result => result?,
        }
    }
    if let Some(lists) = lists {
        outputs.put_in_order(lists);
    }
    Ok(outputs)
}

/// The positions of sorted items, unless their order is the caller's, and the range of each class.
type Sorted<'a> = (Option<Vec<usize>>, Vec<(KeyClass<'a>, Range<usize>)>);

/// Sorts items by key.
///
/// Items of one key are adjacent, because a backend prepares each modulus once for a run. Lists for
/// large batches with one key would take longer than all else that is done here.
fn sort<'a>(keys: &[&'a KeyParts]) -> Sorted<'a> {
    // Sorts runs of items with one key, of which there are often few.
    let mut end = 0;
    let runs = keys.chunk_by(|a, b| ptr::eq(*a, *b)).map(|run| {
        let start = end;
        end += run.len();
        (KeyClass::of(run[0]), ptr::from_ref(run[0]), start, end)
    });
    let mut runs: Vec<_> = runs.collect();
    if let [(class, _, start, end)] = runs[..] {
        return (None, Vec::from([(class, start..end)]));
    }
    runs.sort_unstable();

    let mut positions = Vec::with_capacity(keys.len());
    let mut classes = Vec::new();
    for runs in runs.chunk_by(|a, b| a.0 == b.0) {
        let first = positions.len();
        positions.extend(runs.iter().flat_map(|&(_, _, start, end)| start..end));
        classes.push((runs[0].0, first..positions.len()));
    }
    (Some(positions), classes)
}

impl Items<'_> {
    /// Computes all items on the calling thread: secret exponentiations on `backend`, everything
    /// else on its [engine](RsaBackend::engine).
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], and the errors of `backend`.
    pub fn compute_on<B: RsaBackend + ?Sized>(self, backend: &B) -> Result<(), Error> {
        let engine = backend.engine().0;
        let exponentiate = |powers: SecretPowers<'_>| backend.exponentiate(powers);
        self.chunks(ITEMS_AT_A_TIME)
            .try_for_each(|items| private_op::compute_items(engine, &exponentiate, items))
    }
}

/// Items are [computed](RsaBackend::compute) on the calling thread.
impl RsaBackend for Serial {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        self.pow(powers);
        Ok(())
    }
}

/// An engine of this crate: see [`RsaBackend::engine`].
///
/// Only this crate can construct one, so that the code of a backend's author never checks results.
#[derive(Clone, Copy)]
pub struct HostEngine<'a>(pub(super) &'a dyn Engine);

impl HostEngine<'_> {
    /// Name of the engine: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
}

/// [`Serial`], which runs on every processor.
impl Default for HostEngine<'_> {
    fn default() -> Self {
        Self(&Serial)
    }
}

impl fmt::Debug for HostEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostEngine").field(&self.name()).finish()
    }
}

/// A single-threaded backend for several callers: see [`RsaBackend::per_thread`].
#[derive(Clone, Copy)]
pub struct PerThread<'a> {
    /// Computes on the calling thread.
    pub backend: &'a (dyn RsaBackend + Sync),
    /// The largest useful number of concurrent calls; more slow each other down.
    pub threads: NonZeroUsize,
    /// The number of exponentiations that a call computes at the same time, at least 1.
    pub granularity: usize,
}

impl fmt::Debug for PerThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
