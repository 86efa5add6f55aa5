//! Tests of the queue: results, the start of batches, and failures.

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
