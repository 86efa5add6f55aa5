//! The RSA layer against the `rsa` crate, num-bigint and the Wycheproof vectors.
#![cfg(all(feature = "std", feature = "rsa", feature = "hazmat"))]

mod errors;
mod import;
mod keys;
mod raw;
mod schemes;
mod wrong_backend;
mod wycheproof_vectors;
