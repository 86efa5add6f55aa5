//! Nothing of its own: that the dependency compiles is what there is to see.

pub use batch_modexp::rsa::KeyHandle;
