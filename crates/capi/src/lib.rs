//! The C interface: engines, keys, batches and queues. `include/batch_modexp.h` documents each
//! function.

mod boundary;
mod callbacks;
mod encryption;
mod engine;
mod generate;
mod key;
mod numbers;
mod public_key;
mod queue;
mod schemes;
mod signatures;
