//! The bodies of the fuzz targets: each takes any octets, makes calls of them, and panics if an answer is not that of
//! num-bigint or of the `rsa` crate. `fuzz/` runs them under libFuzzer, which includes this folder by its path.

pub mod decryption;
pub mod input;
pub mod key_components;
pub mod key_import;
pub mod keys;
pub mod mod_exp;
pub mod queue;
pub mod rsasp1;
pub mod sign_batch;
