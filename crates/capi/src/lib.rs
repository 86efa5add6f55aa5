//! The C interface: engines, keys, batches of signatures and of powers. `include/batch_modexp.h` documents each function.

mod border;
mod engine;
mod key;
mod powers;
mod signatures;
