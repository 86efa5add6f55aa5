//! The kinds of work in a soak, with their inputs and counts.

use std::ops::AddAssign;
use std::sync::Arc;

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;

use crate::keys::Key;
use crate::{decryption, exponentiation, requests, signing};

/// The state that all threads share.
pub(crate) struct Place {
    /// Used in turn.
    pub(crate) backends: Vec<Arc<Auto>>,
    pub(crate) keys: Vec<Key>,
    /// A queue in front of the first backend.
    pub(crate) queue: BatchQueue,
    /// Instances or items of the largest batch.
    pub(crate) largest: usize,
    /// Whether results are changed before they are checked.
    pub(crate) corrupts: bool,
}

/// Counts of the work done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Instances, messages, ciphertexts or requests.
    pub(crate) items: u64,
    /// Results that were compared with another implementation's.
    pub(crate) checked: u64,
    /// Expected errors.
    pub(crate) errors: u64,
    /// Cancelled requests.
    pub(crate) cancelled: u64,
}

impl AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.checked += other.checked;
        self.errors += other.errors;
        self.cancelled += other.cancelled;
    }
}

/// The counts of a call, or what was wrong.
pub(crate) type Outcome = Result<Done, String>;

/// A kind of work.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Does the work once, in a random shape.
    pub(crate) call: fn(&Place, &mut ChaCha20Rng) -> Outcome,
}

/// All kinds, equally frequent.
pub(crate) const KINDS: [Kind; 7] = [
    Kind {
        name: "exponentiations of mixed widths",
        call: exponentiation::mixed_widths,
    },
    Kind {
        name: "exponentiations of one width",
        call: exponentiation::one_width,
    },
    Kind {
        name: "batches that must fail",
        call: exponentiation::bad_input,
    },
    Kind {
        name: "batches of signatures",
        call: signing::signatures,
    },
    Kind {
        name: "batches of ciphertexts",
        call: decryption::ciphertexts,
    },
    Kind {
        name: "requests to a queue",
        call: requests::requests,
    },
    Kind {
        name: "queues and keys that come and go",
        call: requests::short_lives,
    },
];

impl Place {
    pub(crate) fn backend(&self, rng: &mut ChaCha20Rng) -> &Auto {
        pick::<Arc<Auto>>(rng, &self.backends)
    }

    /// A random number of items from 1 to the largest, with all orders of magnitude equally
    /// frequent.
    pub(crate) fn size(&self, rng: &mut ChaCha20Rng) -> usize {
        let doublings = self.largest.ilog2() as usize + 1;
        let bound = 1 << (1 + below(rng, doublings));
        (1 + below(rng, bound)).min(self.largest)
    }
}

/// A random number below `bound`, which is small; not quite uniform.
pub(crate) fn below(rng: &mut ChaCha20Rng, bound: usize) -> usize {
    rng.next_u32() as usize % bound
}

/// Picks a random element.
pub(crate) fn pick<'a, T>(rng: &mut ChaCha20Rng, of: &'a [T]) -> &'a T {
    &of[below(rng, of.len())]
}

/// Fails with `text` unless `is_right`.
pub(crate) fn expect(is_right: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(text()),
    }
}
