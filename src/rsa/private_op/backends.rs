//! The private operation on the backends of the host.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::{PrivateOps, RsaPrivateOp};
use crate::Error;
use crate::backend::Serial;

impl RsaPrivateOp for Serial {}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for &B {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Arc<B> {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }
}

impl<B: RsaPrivateOp + ?Sized> RsaPrivateOp for Box<B> {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        (**self).private_op(ops)
    }
}

#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl RsaPrivateOp for crate::backend::Fma {}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
impl RsaPrivateOp for crate::backend::Ifma {}

#[cfg(feature = "std")]
mod threads {
    use alloc::vec::Vec;

    use rayon::prelude::*;

    use super::super::LANES_AT_A_TIME;
    use super::*;
    use crate::BatchModExp;
    use crate::backend::auto::Chosen;
    use crate::backend::cpu::Engine;
    use crate::backend::{Auto, Cpu, Parallel};

    impl RsaPrivateOp for Engine {}

    /// Each thread takes its share through the whole operation, from the representatives to the check, not only
    /// through the exponentiations.
    impl<B: RsaPrivateOp + Sync> RsaPrivateOp for Parallel<B> {
        fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
            let Some(pool) = self.pool_here() else {
                return self.inner().private_op(ops);
            };
            // As few shares as there are threads, if they are not too long: lanes of one key in one share have
            // one inversion between them. And as many lanes as the backend computes exponentiations at a time.
            let at_a_time = BatchModExp::<_>::granularity(self.inner());
            let at_a_time = at_a_time.div_ceil(ops.exponentiations());
            let share = ops.len().div_ceil(pool.current_num_threads());
            let share = share.clamp(1, LANES_AT_A_TIME).next_multiple_of(at_a_time);
            let shares: Vec<_> = ops.chunks(share).collect();
            let work = |ops: PrivateOps<'_>| self.inner().private_op(ops);
            pool.install(|| shares.into_par_iter().try_for_each(work))
        }
    }

    impl RsaPrivateOp for Cpu {
        fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
            self.inner().private_op(ops)
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
            }
        }
    }
}
