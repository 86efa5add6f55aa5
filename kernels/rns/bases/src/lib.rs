//! The two bases of the RNS kernels for each width, and all constants derived from them.
//!
//! `docs/rns.md` derives the arithmetic and the bounds; names follow that text.
//!
//! * [`Bases`] is a pair of bases.
//! * [`Constants`] holds the constants of the kernels.
//! * [`text`] writes the constants as a header.
//! * [`model`] computes the same as the kernels, word for word.
//!
//! Everything here is public: bases depend only on the width of a modulus.

mod bases;
mod constants;
pub mod model;
mod primes;
mod render;

pub use bases::{Bases, WIDTHS};
pub use constants::{Constants, Public};
pub use render::{file_name, text};
