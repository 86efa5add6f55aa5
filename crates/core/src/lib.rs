//! The common base of all backends of `batch-modexp`: traits, errors of the arithmetic, buffers for
//! secrets, windows, Montgomery arithmetic, and [`Serial`], the reference for every other backend.
//!
//! Programs use the crate `batch-modexp`, which exports the public part of this one under the same
//! names. Everything else is internal to this workspace and may change with any version.

#![no_std]
#![forbid(unsafe_code)]
#![warn(
    unreachable_pub,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod batch;
mod buckets;
pub mod engine;
mod error;
pub mod fixed_base;
pub mod limbs;
pub mod monty;
pub mod powers;
pub mod public_exponent;
pub mod secret;
mod serial;
mod traits;
pub mod weighted_sums;
pub mod width;
pub mod window;

pub use error::{CalibrationFault, DeviceFault, Error, Unavailable};
pub use public_exponent::PublicExponent;
pub use serial::Serial;
pub use traits::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModExpEach, BatchModExpVartime,
    BatchModMul, BatchMultiExp, FixedBase, FixedBaseVartime, ModExp, ModMul, ModMultiExp,
    MultiExpVartime, gathered,
};

/// The paths of the crate `batch-modexp`, for examples in the documentation.
#[doc(hidden)]
pub mod facade {
    pub use crate::{
        BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModExpEach,
        BatchModExpVartime, BatchModMul, BatchMultiExp, Error, FixedBase, FixedBaseVartime, ModExp,
        ModMul, ModMultiExp, MultiExpVartime, PublicExponent, secret,
    };
    pub mod backend {
        pub use crate::Serial;
    }
}
