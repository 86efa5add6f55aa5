//! Looks for secrets in memory that has been given back: freed heap blocks, and the stack of a thread that
//! has ended.
#![cfg(all(feature = "std", feature = "rsa", unix))]
#![allow(unsafe_code)]

mod freed;
mod heap;
mod import;
mod needles;
mod stack;

#[global_allocator]
static ALLOCATOR: freed::Watching = freed::Watching;
