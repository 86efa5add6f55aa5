//! An empty user's crate: it shows that the dependency compiles.

pub use batch_modexp::rsa::KeyHandle;
