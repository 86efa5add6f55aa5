//! Backends: everything that implements [`BatchModExp`](crate::BatchModExp) and
//! [`BatchModMul`](crate::BatchModMul).
//!
//! | backend | runs on | notes |
//! |---|---|---|
//! | [`Serial`] | any target, `no_std` too | one instance after the other; the reference for all others |
//! | `Parallel` | feature `std` | spreads a batch over threads of another backend |
//! | `Cuda` | feature `cuda` | NVIDIA GPUs |
//! | `Ifma` | feature `std`, x86-64 with AVX-512 IFMA or AVX-IFMA | eight or four instances at a time in radix 2^52 |
//! | `Fma` | feature `std`, x86-64 with AVX2 and FMA, or 64-bit Arm | four instances at a time in radix 2^51, in doubles |
//! | `Cpu` | feature `std` | the best of the above that the processor has, on all its cores |
//! | `Auto` | feature `std` | picks one of the above and says why |

#[cfg(feature = "std")]
pub(crate) mod auto;
#[cfg(feature = "cuda")]
pub mod cuda;

#[cfg(feature = "std")]
pub use auto::{Auto, Kind};
#[doc(inline)]
pub use batch_modexp_core::Serial;
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[doc(inline)]
pub use batch_modexp_cpu::Fma;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[doc(inline)]
pub use batch_modexp_cpu::Ifma;
#[cfg(feature = "std")]
#[doc(inline)]
pub use batch_modexp_cpu::{Cpu, Parallel};
#[cfg(feature = "cuda")]
pub use cuda::Cuda;

/// Doctests of the guide to powers.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../docs/powers.md")]
struct Guide;
