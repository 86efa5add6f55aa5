//! Tests of the PTX of `kernels/`, which runs without a GPU while the machine tracks secrets.
//!
//! Every shipped entry point must compute the same as `num_bigint`. Bases, exponents, moduli and
//! everything derived from them are tainted. A test fails if a branch, an address, a shuffle lane
//! or a running time depends on one of them. It also fails after an access outside the documented
//! buffers, a read of unwritten memory, or a secret left in scratch or shared memory. `controls.rs`
//! shows that the machine notices.

mod fixed;
mod harness;
mod manifest;
mod modexp;
mod rsa;
