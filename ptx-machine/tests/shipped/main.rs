//! The PTX of `kernels/`, run without a GPU while the machine follows its secrets.
//!
//! Every shipped entry point computes what `num_bigint` computes, while bases, exponents, moduli and
//! everything that follows from them are tainted: a branch, an address, a shuffle lane or a running time
//! that depends on one of them fails the test, as does an access outside the documented buffers, a read
//! of memory that was never written, and a secret left in scratch or shared memory.
//! `controls.rs` shows that the machine notices.

mod harness;
mod manifest;
mod modexp;
mod mul;
mod rsa;
