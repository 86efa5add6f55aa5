//! Tests that search for secrets in returned memory: freed heap blocks, and the stack of an ended
//! thread. The allocator that they need also counts allocations.
#![cfg(unix)]
#![allow(unsafe_code)]

mod allocations;
mod blind;
mod freed;
mod generation;
mod heap;
mod import;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "../common/need.rs"]
mod need;
mod needles;
#[path = "../common/simd.rs"]
mod simd;
mod stack;

#[global_allocator]
static ALLOCATOR: freed::Watching = freed::Watching;
