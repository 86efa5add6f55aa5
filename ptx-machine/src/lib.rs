//! Runs CUDA kernels from their PTX, without a GPU, and tracks secrets through them bit by bit.
//!
//! The caller declares which buffers are secret. The machine computes the same as the kernel, warp
//! by warp. Beside each value it keeps a mask of the bits that may depend on a secret: the *taint*.
//!
//! It stops with a [`Fault`] when a secret reaches something observable: a branch, an address, the
//! lane of a shuffle, or an instruction whose time depends on its operands. It also stops when the
//! kernel leaves its buffers, reads memory that was not written, or lets two warps race for shared
//! memory.
//!
//! ```
//! use ptx_machine::{Argument, Fault, Global, Launch, Module, RunError};
//!
//! let ptx = ".version 7.0
//! .target sm_70
//! .address_size 64
//! .visible .entry look_up(.param .u64 table, .param .u64 digits)
//! {
//!     .reg .b32 %r<3>;
//!     .reg .b64 %rd<8>;
//!     ld.param.u64 %rd1, [table];
//!     ld.param.u64 %rd2, [digits];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd3, %r1, 4;
//!     add.s64 %rd4, %rd2, %rd3;
//!     ld.global.u32 %r2, [%rd4];
//!     mul.wide.u32 %rd5, %r2, 4;
//!     add.s64 %rd6, %rd1, %rd5;
//!     ld.global.u32 %r2, [%rd6];
//!     ret;
//! }";
//! let module = Module::parse(ptx)?;
//! let program = module.entry("look_up").unwrap().decode()?;
//!
//! let mut global = Global::default();
//! let table = global.with_bytes(vec![7; 64], false);
//! let digits = global.with_bytes(vec![0; 128], true);
//! let arguments = [Argument::Pointer(table), Argument::Pointer(digits)];
//! let Err(RunError::Stop(stop)) = program.run(&Launch::new(1, 32), &arguments, &mut global) else {
//!     panic!("the table is gathered by a secret digit");
//! };
//! assert!(matches!(stop.fault, Fault::SecretAddress { .. }));
//! assert_eq!(stop.text, "ld.global.u32 %r2, [%rd6]");
//! # Ok::<(), ptx_machine::PtxError>(())
//! ```
//!
//! The crate's README explains what the machine can show, its rules, and the supported instructions
//! ([`SUPPORTED`]). The input must be PTX that NVIDIA's assembler accepts. Many errors in it are
//! detected and reported as typed errors, but not all. Nothing panics.

mod copies;
mod decode;
mod error;
mod fault;
mod float;
mod launch;
mod memory;
mod module;
mod program;
mod race;
mod supported;
mod taint;
mod warp;

pub use error::{LaunchError, Problem, PtxError, RunError};
pub use fault::{Fault, Location, Stop};
pub use launch::{Argument, Launch, Outcome};
pub use memory::{Buffer, Global, Pointer};
pub use module::{Entry, Module, Parameter, Threads};
pub use program::Program;
pub use supported::{Family, Form, SUPPORTED};
