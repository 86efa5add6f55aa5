//! The main job, as a user runs it.
#![cfg(all(feature = "std", feature = "rsa"))]

mod behaviour;
mod errors;
#[path = "../common/need.rs"]
mod need;
mod openssl;
mod program;
