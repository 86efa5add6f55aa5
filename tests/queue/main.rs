//! The queue: what it signs, when a batch begins, and what happens when things go wrong.

mod backends;
mod callers;
mod cancellation;
mod failures;
mod fairness;
#[path = "../rsa/keys.rs"]
#[allow(dead_code)]
mod keys;
mod policy;
mod shutdown;
mod signatures;
mod stress;
mod threads;
mod traits;
mod wakers;
