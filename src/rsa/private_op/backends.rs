//! The private operation on the backends of the host.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::RsaPrivateOp;
use super::op::{Candidates, PrivateOp};
use super::threads::HostThreads;
use crate::backend::Serial;

impl RsaPrivateOp for Serial {}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for &B {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        (**self).private_op(batch)
    }

    fn check_threads(&self) -> HostThreads<'_> {
        (**self).check_threads()
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Arc<B> {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        (**self).private_op(batch)
    }

    fn check_threads(&self) -> HostThreads<'_> {
        (**self).check_threads()
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Box<B> {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        (**self).private_op(batch)
    }

    fn check_threads(&self) -> HostThreads<'_> {
        (**self).check_threads()
    }
}

#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl RsaPrivateOp for crate::backend::Fma {}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
impl RsaPrivateOp for crate::backend::Ifma {}

#[cfg(feature = "std")]
mod threads {
    use super::super::group::number_errors;
    use super::*;
    use crate::backend::auto::Chosen;
    use crate::backend::cpu::Engine;
    use crate::backend::{Auto, Cpu, Parallel};
    use alloc::vec::Vec;

    impl RsaPrivateOp for Engine {}

    /// Each thread takes its share through the whole operation, not only through the exponentiations.
    impl<B: RsaPrivateOp + Sync> RsaPrivateOp for Parallel<B> {
        fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
            let inner = self.inner();
            let op = |share: &[PrivateOp<'_>]| inner.private_op(share);
            let threads = HostThreads::of(self.pool_here());
            let shares = threads.map_shares(batch, inner.granularity(), op)?;
            let mut results: Vec<_> = shares.into_iter().flatten().collect();
            number_errors(&mut results);
            Ok(results)
        }

        fn check_threads(&self) -> HostThreads<'_> {
            HostThreads::of(self.pool_here())
        }
    }

    impl RsaPrivateOp for Cpu {
        fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
            self.inner().private_op(batch)
        }

        fn check_threads(&self) -> HostThreads<'_> {
            self.inner().check_threads()
        }
    }

    impl RsaPrivateOp for Auto {
        fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
            match self.chosen() {
                Chosen::Serial(serial) => serial.private_op(batch),
                Chosen::Cpu(cpu) => cpu.private_op(batch),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => match cuda.private_op(batch) {
                    Err(_) if cuda.is_over() => cuda.host().private_op(batch),
                    candidates => candidates,
                },
            }
        }

        fn check_threads(&self) -> HostThreads<'_> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.check_threads(),
                Chosen::Cpu(cpu) => cpu.check_threads(),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => cuda.check_threads(),
            }
        }
    }
}
