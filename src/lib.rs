#![no_std]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(
    unreachable_pub,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod backend;
#[cfg(feature = "sign")]
mod engine;
mod error;
mod monty;
#[cfg(all(
    test,
    feature = "std",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        feature = "cuda",
        feature = "sign"
    )
))]
#[path = "../tests/common/need.rs"]
mod need;
#[cfg(feature = "queue")]
#[cfg_attr(docsrs, doc(cfg(feature = "queue")))]
pub mod queue;
#[cfg(feature = "sign")]
mod requests;
#[cfg(feature = "sign")]
pub mod rsa;
pub mod secret;
mod traits;
mod width;
pub mod window;

pub use error::Error;
pub use traits::{BatchModExp, BatchModExpEach, BatchModMul, ModExp, ModMul};
