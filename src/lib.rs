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
#[cfg(all(
    test,
    feature = "std",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        feature = "cuda",
        feature = "rsa"
    )
))]
#[path = "../tests/common/need.rs"]
mod need;
#[cfg(feature = "queue")]
#[cfg_attr(docsrs, doc(cfg(feature = "queue")))]
pub mod queue;
#[cfg(feature = "rsa")]
pub mod rsa;
#[cfg(all(test, feature = "rsa", feature = "std", target_arch = "x86_64"))]
#[path = "../tests/common/valgrind.rs"]
mod valgrind;

#[doc(inline)]
pub use batch_modexp_core::{
    BatchFixedBaseExp, BatchModExp, BatchModExpEach, BatchModExpVartime, BatchModMul,
    BatchMultiExp, Error, FixedBase, ModExp, ModMul, ModMultiExp, PublicExponent, secret,
};

/// The root folder of the workspace.
#[cfg(all(test, feature = "rsa", feature = "std", target_arch = "x86_64"))]
const WORKSPACE: &str = env!("CARGO_MANIFEST_DIR");
