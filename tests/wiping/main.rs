//! Looks for secrets in memory that has been given back: freed heap blocks, and the stack of a thread that
//! has ended.
#![cfg(unix)]
#![allow(unsafe_code)]

mod blind;
mod freed;
mod heap;
mod import;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "../common/need.rs"]
mod need;
mod needles;
mod stack;

#[global_allocator]
static ALLOCATOR: freed::Watching = freed::Watching;
