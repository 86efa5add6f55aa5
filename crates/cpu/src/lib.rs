//! The CPU backends of `batch-modexp`: SIMD lanes, words beside them, and threads.
//!
//! Programs use the crate `batch-modexp`, which exports the public part of this one under the same
//! names. Everything else is internal to this workspace and may change with any version.

#![no_std]
#![warn(
    unreachable_pub,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core
)]

extern crate alloc;
extern crate std;

#[cfg(target_arch = "x86_64")]
mod adx;
mod engine;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod fma;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(unused)
)]
mod lanes;
#[cfg(all(test, target_arch = "x86_64"))]
mod memcheck;
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "../../../tests/common/need.rs"]
mod need;
mod parallel;
#[cfg(all(test, target_arch = "x86_64"))]
mod sanitizer;
#[cfg(test)]
#[path = "../../../tests/common/simd.rs"]
mod simd;
#[cfg(test)]
mod tests;
#[cfg(all(test, target_arch = "x86_64"))]
#[path = "../../../tests/common/valgrind.rs"]
mod valgrind;
mod weighted_sums;

pub use engine::AnyEngine;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use fma::Fma;
#[cfg(target_arch = "x86_64")]
pub use ifma::Ifma;
pub use parallel::{Cpu, Parallel, Workers};
pub use weighted_sums::weighted_sums;

/// The folder of the workspace.
#[cfg(all(test, target_arch = "x86_64"))]
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The paths of the crate `batch-modexp`, for examples in the documentation.
#[doc(hidden)]
pub mod facade {
    pub use batch_modexp_core::facade::*;
    pub mod backend {
        pub use crate::*;
        pub use batch_modexp_core::Serial;
    }
}
