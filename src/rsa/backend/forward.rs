//! Backends that compute with an engine or by another backend: SIMD, `Cpu` and `Auto`, pointers.

use alloc::boxed::Box;
use alloc::sync::Arc;

#[cfg(feature = "std")]
use batch_modexp_core::engine::Engine;
#[cfg(feature = "std")]
use batch_modexp_cpu::Cpu;

use super::{HostEngine, Items, PerThread, RsaBackend, SecretPowers};
#[cfg(feature = "std")]
use crate::backend::Auto;
use crate::rsa::error::Error;

/// As [`Serial`], for engines with SIMD.
#[cfg(feature = "std")]
macro_rules! on_engine {
    ($backend:ty, $self:ident => $engine:expr) => {
        impl RsaBackend for $backend {
            fn exponentiate(
                &$self,
                powers: SecretPowers<'_>,
            ) -> Result<(), batch_modexp_core::Error> {
                $engine.pow(powers);
                Ok(())
            }

            fn engine(&$self) -> HostEngine<'_> {
                HostEngine($engine)
            }
        }
    };
}

#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
on_engine!(batch_modexp_cpu::Fma, self => self.engine());
#[cfg(all(feature = "std", target_arch = "x86_64"))]
on_engine!(batch_modexp_cpu::Ifma, self => self.engine());
#[cfg(feature = "std")]
on_engine!(batch_modexp_cpu::AnyEngine, self => self);

/// Implements a backend by another one, such as a pointer by what it points to.
macro_rules! forward {
    ([$($generics:tt)*] $backend:ty, $self:ident => $to:expr) => {
        impl<$($generics)*> RsaBackend for $backend {
            fn exponentiate(
                &$self,
                powers: SecretPowers<'_>,
            ) -> Result<(), batch_modexp_core::Error> {
                $to.exponentiate(powers)
            }

            fn compute(
                &$self,
                items: Items<'_>,
            ) -> Result<(), Error> {
                $to.compute(items)
            }

            fn engine(&$self) -> HostEngine<'_> {
                $to.engine()
            }

            fn per_thread(&$self) -> Option<PerThread<'_>> {
                $to.per_thread()
            }

            fn per_host_thread(&$self) -> Option<PerThread<'_>> {
                $to.per_host_thread()
            }
        }
    };
}

forward!([B: RsaBackend + ?Sized] &B, self => (**self));
forward!([B: RsaBackend + ?Sized] Arc<B>, self => (**self));
forward!([B: RsaBackend + ?Sized] Box<B>, self => (**self));

#[cfg(feature = "std")]
forward!([] Cpu, self => self.parallel());
#[cfg(feature = "std")]
forward!([] Auto, self => self.chosen().backend());
