//! Backends from many threads, given up at work, short of memory, and in several processes at once. What a forked child does
//! is in `tests/fork.rs`, the end of a queue in `tests/queue/shutdown.rs`.
#![allow(unsafe_code)]

mod drops;
#[cfg(target_os = "linux")]
mod memory;
#[path = "../common/need.rs"]
mod need;
mod processes;
mod threads;
mod work;

/// Whether this machine has a GPU that can be used; without the feature `cuda` it has none.
fn gpu() -> bool {
    #[cfg(feature = "cuda")]
    let found = batch_modexp::backend::Cuda::probe().map(|_| ());
    #[cfg(not(feature = "cuda"))]
    let found = Err::<(), _>("the feature cuda is off");
    need::available("cuda", found).is_some()
}
