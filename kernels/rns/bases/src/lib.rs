//! The two bases of the RNS kernels for each width, and all constants that follow from them.
//!
//! `docs/rns.md` derives the arithmetic and the bounds; the names here are those of that text. [`Bases`] is a pair of
//! bases, [`Constants`] is what the kernels need of it, [`text`] writes that as a header, and [`model`] computes
//! what the kernels compute, word for word.
//!
//! Everything here is public: bases depend on the width of a modulus alone.

mod bases;
mod constants;
pub mod model;
mod primes;
mod render;

pub use bases::{Bases, WIDTHS};
pub use constants::{Constants, Public};
pub use render::{file_name, text};
