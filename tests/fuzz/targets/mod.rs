//! The bodies of the fuzz targets. Each takes any octets and turns them into calls. It panics if an
//! answer differs from that of num-bigint or of the `rsa` crate. `fuzz/` includes this folder by
//! its path and runs the targets under libFuzzer.

pub mod decryption;
pub mod input;
pub mod key_components;
pub mod key_import;
pub mod keys;
pub mod mod_exp;
pub mod multi_exp;
pub mod queue;
pub mod rsasp1;
pub mod sign_batch;
