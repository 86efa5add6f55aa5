//! What it takes to compute on GPUs, whatever is computed: devices, their buffers and kernels, records that
//! stay on them, and the way of a batch through all of them at once.
//!
//! Nothing here knows arithmetic. Work comes as a [`Job`](pipeline::Job), which says in whole words what a chunk
//! of it needs; kernels come as [`Image`](module::Image)s; launches are made by families, who vouch for them,
//! and are checked against the buffers here.

pub(crate) mod buffer;
pub(crate) mod costs;
pub(crate) mod device;
mod driver;
pub(crate) mod error;
pub(crate) mod launch;
// Nothing else has so many places.
#[cfg_attr(not(feature = "rsa"), allow(dead_code))]
pub(crate) mod layout;
pub(crate) mod module;
pub(crate) mod pipeline;
mod pool;
pub(crate) mod probe;
mod process;
pub(crate) mod ptx;
// Nothing else keeps records yet.
#[cfg_attr(not(feature = "rsa"), allow(dead_code))]
pub(crate) mod records;
mod shares;
pub(crate) mod slot;
#[cfg(all(test, feature = "rsa"))]
pub(crate) mod strike;
