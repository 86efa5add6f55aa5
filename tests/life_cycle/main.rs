//! Backends used from many threads, dropped at work, short of memory, and in several processes at
//! once. See `tests/fork.rs` for forked children, and `tests/queue/shutdown.rs` for the end of a
//! queue.
#![allow(unsafe_code)]

mod drops;
#[cfg(target_os = "linux")]
mod memory;
#[path = "../common/need.rs"]
mod need;
mod processes;
mod threads;
mod work;

/// Whether this machine has a usable GPU; without the feature `cuda` it has none.
fn gpu() -> bool {
    #[cfg(feature = "cuda")]
    let found = batch_modexp::backend::Cuda::probe().map(|_| ());
    #[cfg(not(feature = "cuda"))]
    let found = Err::<(), _>("the feature cuda is off");
    need::available("cuda", found).is_some()
}
