//! The main job, as a user runs it.
#![cfg(all(feature = "std", feature = "rsa"))]

mod behaviour;
mod errors;
mod openssl;
mod program;
