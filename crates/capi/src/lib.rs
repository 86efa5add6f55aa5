//! The C interface: engines, private keys and batches of signatures. `include/batch_modexp.h` documents each function.

mod border;
mod key;
mod sign;
