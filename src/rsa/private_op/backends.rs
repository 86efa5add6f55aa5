//! The private operation on the backends of the host.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::{Helpers, HostEngine, PerThread, PrivateOps, RsaPrivateOp};
use crate::backend::Serial;
use crate::rsa::Error;

impl RsaPrivateOp for Serial {
    fn engine(&self) -> HostEngine<'_> {
        HostEngine(self)
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for &B {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }

    fn engine(&self) -> HostEngine<'_> {
        (**self).engine()
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        (**self).per_thread()
    }

    fn helpers(&self) -> Helpers<'_> {
        (**self).helpers()
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Arc<B> {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }

    fn engine(&self) -> HostEngine<'_> {
        (**self).engine()
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        (**self).per_thread()
    }

    fn helpers(&self) -> Helpers<'_> {
        (**self).helpers()
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Box<B> {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }

    fn engine(&self) -> HostEngine<'_> {
        (**self).engine()
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        (**self).per_thread()
    }

    fn helpers(&self) -> Helpers<'_> {
        (**self).helpers()
    }
}

#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl RsaPrivateOp for crate::backend::Fma {
    fn engine(&self) -> HostEngine<'_> {
        HostEngine(self)
    }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
impl RsaPrivateOp for crate::backend::Ifma {
    fn engine(&self) -> HostEngine<'_> {
        HostEngine(self)
    }
}

#[cfg(feature = "std")]
mod threads {
    use alloc::vec::Vec;
    use core::num::NonZeroUsize;

    use crypto_bigint::BoxedUint;

    use super::super::LANES_AT_A_TIME;
    #[cfg(feature = "cuda")]
    use super::super::group::KeyClass;
    use super::*;
    use crate::BatchModExp;
    use crate::backend::auto::Chosen;
    #[cfg(feature = "cuda")]
    use crate::backend::auto::{
        both::Both,
        cost::{Shape, Side},
    };
    use crate::backend::cpu::AnyEngine;
    use crate::backend::parallel::each_share;
    use crate::backend::{Auto, Cpu, Parallel};
    use crate::rsa::KeyHandle;

    impl RsaPrivateOp for AnyEngine {
        fn engine(&self) -> HostEngine<'_> {
            HostEngine(self)
        }
    }

    /// Each thread takes its share through the whole operation, from the representatives to the check, not only
    /// through the exponentiations.
    impl<B: RsaPrivateOp + Sync> RsaPrivateOp for Parallel<B> {
        fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
            let Some(pool) = self.pool_here() else {
                return self.inner().private_op(ops);
            };
            // As few shares as there are threads, if they are not too long: a share prepares each of its moduli once. And as
            // many lanes as the backend computes exponentiations at a time, or fewer, if so the last thread ends sooner.
            let at_a_time = BatchModExp::<BoxedUint>::granularity(self.inner());
            let at_a_time = at_a_time.div_ceil(ops.exponentiations());
            let most = ops.len().div_ceil(self.threads());
            let most = most.clamp(1, LANES_AT_A_TIME).next_multiple_of(at_a_time);
            let (bits, exponentiations) = (ops.exponentiation_bits(), ops.exponentiations());
            let share = self.share(ops.len(), most, |lanes| {
                let count = lanes * exponentiations;
                BatchModExp::<BoxedUint>::relative_time(self.inner(), bits, count)
            });
            if share >= ops.len() {
                return self.inner().private_op(ops);
            }
            let shares: Vec<_> = ops.chunks(share).collect();
            let work = |ops: PrivateOps<'_>| self.inner().private_op(ops);
            each_share(pool, shares.into_iter(), work)
        }

        fn engine(&self) -> HostEngine<'_> {
            self.inner().engine()
        }

        fn per_thread(&self) -> Option<PerThread<'_>> {
            let threads = NonZeroUsize::new(self.threads())?;
            Some(PerThread {
                backend: self.inner(),
                threads,
            })
        }
    }

    impl RsaPrivateOp for Cpu {
        fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
            self.inner().private_op(ops)
        }

        fn engine(&self) -> HostEngine<'_> {
            self.inner().engine()
        }

        fn per_thread(&self) -> Option<PerThread<'_>> {
            self.inner().per_thread()
        }
    }

    /// A private operation is two exponentiations modulo primes, or one modulo n.
    #[cfg(feature = "cuda")]
    impl RsaPrivateOp for Both {
        fn private_op(&self, mut ops: PrivateOps<'_>) -> Result<(), Error> {
            let shape = shape(&ops.batch.class);
            let count = ops.exponentiations() * ops.len();
            self.run(shape, count, &mut ops, |ops, side| match side {
                Side::Cpu => self.cuda().host().private_op(ops.again()),
                Side::Gpu => self.cuda().private_op(ops.again()),
            })
        }

        fn engine(&self) -> HostEngine<'_> {
            self.cuda().engine()
        }

        fn helpers(&self) -> Helpers<'_> {
            self.cuda().helpers()
        }
    }

    #[cfg(feature = "cuda")]
    fn shape(class: &KeyClass) -> Shape {
        Shape {
            kind: "private operation",
            bits: class.prime.map_or(class.n_width, |prime| prime.width),
            product_bits: class.prime.map(|_| class.n_width),
            exponent_bits: class.prime.map_or(class.n_width, |prime| prime.bits),
        }
    }

    impl Auto {
        /// The smallest batch of private operations with keys like `key` that goes to the GPUs, as
        /// [`break_even`](Self::break_even) has it for exponentiations.
        #[must_use]
        pub fn rsa_break_even(&self, key: &KeyHandle) -> Option<usize> {
            match self.chosen() {
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => {
                    let class = KeyClass::of(key.parts());
                    let exponentiations = class.exponentiations();
                    let count = both.break_even(shape(&class))?;
                    Some(count.div_ceil(exponentiations))
                }
                #[cfg(feature = "cuda")]
                Chosen::Cuda(_) => None,
                Chosen::Serial(_) | Chosen::Cpu(_) => {
                    let _ = key;
                    None
                }
            }
        }
    }

    impl RsaPrivateOp for Auto {
        fn private_op(&self, #[allow(unused_mut)] mut ops: PrivateOps<'_>) -> Result<(), Error> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.private_op(ops),
                Chosen::Cpu(cpu) => cpu.private_op(ops),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => match cuda.private_op(ops.again()) {
                    Err(_) if cuda.is_over() => cuda.host().private_op(ops),
                    result => result,
                },
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.private_op(ops),
            }
        }

        fn engine(&self) -> HostEngine<'_> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.engine(),
                Chosen::Cpu(cpu) => cpu.engine(),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => cuda.engine(),
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.engine(),
            }
        }

        fn per_thread(&self) -> Option<PerThread<'_>> {
            match self.chosen() {
                Chosen::Serial(_) => None,
                Chosen::Cpu(cpu) => cpu.per_thread(),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(_) | Chosen::Both(_) => None,
            }
        }

        fn helpers(&self) -> Helpers<'_> {
            match self.chosen() {
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => cuda.helpers(),
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.helpers(),
                Chosen::Serial(_) | Chosen::Cpu(_) => Helpers::default(),
            }
        }
    }
}
