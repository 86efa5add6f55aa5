//! The RSA layer, compared with the `rsa` crate, num-bigint and the Wycheproof vectors.

mod any_scheme;
mod blind;
mod decryption;
mod encryption;
mod errors;
mod import;
mod key_generation;
mod keys;
mod mixed;
#[path = "../common/need.rs"]
mod need;
mod powers;
mod public_keys;
mod raw;
mod schemes;
#[path = "../common/simd.rs"]
mod simd;
mod verification;
mod wrong_backend;
mod wycheproof_vectors;
