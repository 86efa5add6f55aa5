//! The kinds of work of a soak, and what each of their calls needs and counts.

use std::ops::AddAssign;
use std::sync::Arc;

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;

use crate::keys::Key;
use crate::{decryption, exponentiation, requests, signing};

/// What all threads work with.
pub(crate) struct Place {
    /// They take turns.
    pub(crate) backends: Vec<Arc<Auto>>,
    pub(crate) keys: Vec<Key>,
    /// Over the first of the backends.
    pub(crate) queue: BatchQueue,
    /// Instances or lanes of the largest batch.
    pub(crate) largest: usize,
    /// Whether results are spoilt before they are looked at.
    pub(crate) spoils: bool,
}

/// What calls have come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Instances, messages, ciphertexts or requests.
    pub(crate) lanes: u64,
    /// Results that were compared with another implementation's.
    pub(crate) checked: u64,
    /// Errors that had to be, and were the right ones.
    pub(crate) errors: u64,
    /// Requests that were taken back.
    pub(crate) cancelled: u64,
}

impl AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.lanes += other.lanes;
        self.checked += other.checked;
        self.errors += other.errors;
        self.cancelled += other.cancelled;
    }
}

/// What a call comes to, or what is wrong with it.
pub(crate) type Outcome = Result<Done, String>;

/// A kind of work.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Does it once, in a random shape.
    pub(crate) call: fn(&Place, &mut ChaCha20Rng) -> Outcome,
}

/// All there are, each as often as the others.
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

    /// A number of lanes from 1 to the largest, each order of magnitude as often as the others.
    pub(crate) fn size(&self, rng: &mut ChaCha20Rng) -> usize {
        let doublings = self.largest.ilog2() as usize + 1;
        let bound = 1 << (1 + below(rng, doublings));
        (1 + below(rng, bound)).min(self.largest)
    }
}

/// A number below `bound`, which is small: not quite uniform.
pub(crate) fn below(rng: &mut ChaCha20Rng, bound: usize) -> usize {
    rng.next_u32() as usize % bound
}

/// One of them.
pub(crate) fn pick<'a, T>(rng: &mut ChaCha20Rng, of: &'a [T]) -> &'a T {
    &of[below(rng, of.len())]
}

/// Fails with what `text` says unless `is_right`.
pub(crate) fn expect(is_right: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(text()),
    }
}
