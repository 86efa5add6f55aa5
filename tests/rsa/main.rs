//! The RSA layer against the `rsa` crate, num-bigint and the Wycheproof vectors.

mod decryption;
mod errors;
mod import;
mod keys;
mod mixed;
mod raw;
mod schemes;
mod wrong_backend;
mod wycheproof_vectors;
