//! The backends with SIMD lanes, in one list for all tests and measurements.

/// Calls a macro for each backend that the target can have, with its name, its type in
/// `batch_modexp::backend`, and further arguments. The type has a constructor `new`, which returns
/// `None` if the processor lacks the instructions. The name is also one of `need.rs`.
macro_rules! each_simd_backend {
    ($with:ident $($arguments:tt)*) => {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        $with!(fma: Fma $($arguments)*);
        #[cfg(target_arch = "x86_64")]
        $with!(ifma: Ifma $($arguments)*);
    };
}
pub(crate) use each_simd_backend;
