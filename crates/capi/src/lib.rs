//! The C interface: engines, keys and batches. `include/batch_modexp.h` documents each
//! function.

mod border;
mod encryption;
mod engine;
mod generate;
mod key;
mod numbers;
mod public_key;
mod schemes;
mod signatures;
