//! Private and public operations on host backends, and the choice between host and GPUs.

use alloc::boxed::Box;
use alloc::sync::Arc;

use batch_modexp_core::Serial;

use super::{HostEngine, Items, PerThread, PublicItems, RsaBackend};
use crate::rsa::error::Error;

/// The engines compute everything themselves, on flat numbers.
macro_rules! on_engine {
    ($engine:ty) => {
        impl RsaBackend for $engine {
            fn private_ops(&self, items: Items<'_>) -> Result<(), Error> {
                items.compute_on_engine(self.engine())
            }

            fn engine(&self) -> HostEngine<'_> {
                HostEngine(self)
            }
        }
    };
}

on_engine!(Serial);
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
on_engine!(batch_modexp_cpu::Fma);
#[cfg(all(feature = "std", target_arch = "x86_64"))]
on_engine!(batch_modexp_cpu::Ifma);
#[cfg(feature = "std")]
on_engine!(batch_modexp_cpu::AnyEngine);

/// A pointer to a backend is that backend.
macro_rules! on_pointee {
    ($pointer:ty) => {
        impl<B: RsaBackend + ?Sized> RsaBackend for $pointer {
            fn private_ops(&self, items: Items<'_>) -> Result<(), Error> {
                (**self).private_ops(items)
            }

            fn public_ops(&self, items: PublicItems<'_>) -> Result<(), Error> {
                (**self).public_ops(items)
            }

            fn engine(&self) -> HostEngine<'_> {
                (**self).engine()
            }

            fn per_thread(&self) -> Option<PerThread<'_>> {
                (**self).per_thread()
            }

            fn per_host_thread(&self) -> Option<PerThread<'_>> {
                (**self).per_host_thread()
            }
        }
    };
}

on_pointee!(&B);
on_pointee!(Arc<B>);
on_pointee!(Box<B>);

#[cfg(feature = "std")]
mod threads {
    use alloc::vec::Vec;
    use core::num::NonZeroUsize;

    use crypto_bigint::BoxedUint;

    use super::super::ITEMS_AT_A_TIME;
    use super::*;
    use crate::backend::Auto;
    use crate::backend::auto::Chosen;
    #[cfg(feature = "cuda")]
    use crate::backend::auto::{
        both::Both,
        cost::{Shape, Side},
    };
    use crate::rsa::KeyHandle;
    #[cfg(feature = "cuda")]
    use crate::rsa::private_op::class::KeyClass;
    use batch_modexp_core::BatchModExp;
    use batch_modexp_cpu::each_share;
    use batch_modexp_cpu::{Cpu, Parallel};

    /// Each thread computes its share from the encoded messages to the check.
    impl<B: RsaBackend + Sync> RsaBackend for Parallel<B> {
        fn private_ops(&self, items: Items<'_>) -> Result<(), Error> {
            let Some(pool) = self.pool_here() else {
                return self.inner().private_ops(items);
            };
            // Few shares, because each prepares its moduli once. A share has at most
            // `ITEMS_AT_A_TIME` items, and a multiple of those that the backend computes at a time,
            // or fewer if the last thread then ends sooner.
            let at_a_time = BatchModExp::<BoxedUint>::granularity(self.inner());
            let at_a_time = at_a_time.div_ceil(items.exponentiations());
            let most = items.len().div_ceil(self.threads());
            let most = most.clamp(1, ITEMS_AT_A_TIME).next_multiple_of(at_a_time);
            let (bits, exponentiations) = (items.exponentiation_bits(), items.exponentiations());
            let share = self.share(items.len(), most, |items| {
                let count = items * exponentiations;
                BatchModExp::<BoxedUint>::relative_time(self.inner(), bits, count)
            });
            if share >= items.len() {
                return self.inner().private_ops(items);
            }
            let shares: Vec<_> = items.chunks(share).collect();
            let work = |items: Items<'_>| self.inner().private_ops(items);
            each_share(pool, shares.into_iter(), work)
        }

        fn public_ops(&self, items: PublicItems<'_>) -> Result<(), Error> {
            let share = public_share(self.threads(), items.bits(), items.len());
            let Some(pool) = self.pool_here().filter(|_| share < items.len()) else {
                return self.inner().public_ops(items);
            };
            let shares: Vec<_> = items.chunks(share).collect();
            let work = |items: PublicItems<'_>| self.inner().public_ops(items);
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

    /// The number of public operations that a thread takes at a time from a batch of `len`, modulo
    /// numbers of `bits` bits.
    ///
    /// A quarter of the fair share, so that an interrupted thread delays the others little. At
    /// least about 50 microseconds of work, the time to wake another thread.
    fn public_share(threads: usize, bits: u32, len: usize) -> usize {
        /// Fills the vectors of every engine.
        const LANES: usize = 8;
        /// With e = 65537 an operation is about 20 products of 64-bit words for each pair of words.
        const MIN_WORD_PRODUCTS: usize = (1 << 16) / 20;
        let words = bits.div_ceil(64).max(1) as usize;
        let least = MIN_WORD_PRODUCTS.div_ceil(words * words);
        let quarter = len.div_ceil(4 * threads).min(ITEMS_AT_A_TIME);
        quarter.max(least).next_multiple_of(LANES)
    }

    impl RsaBackend for Cpu {
        fn private_ops(&self, items: Items<'_>) -> Result<(), Error> {
            self.inner().private_ops(items)
        }

        fn public_ops(&self, items: PublicItems<'_>) -> Result<(), Error> {
            self.inner().public_ops(items)
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
    impl RsaBackend for Both {
        fn private_ops(&self, mut items: Items<'_>) -> Result<(), Error> {
            let shape = shape(&items.batch.class);
            let count = items.exponentiations() * items.len();
            self.run(shape, count, &mut items, |items, side| match side {
                Side::Cpu => self.cuda().host().private_ops(items.reborrow()),
                Side::Gpu => self.cuda().private_ops(items.reborrow()),
            })
        }

        fn public_ops(&self, mut items: PublicItems<'_>) -> Result<(), Error> {
            let shape = Shape {
                kind: "public operation",
                bits: items.bits(),
                product_bits: None,
                exponent_bits: items.exponent_bits(),
            };
            self.run(shape, items.len(), &mut items, |items, side| match side {
                Side::Cpu => self.cuda().host().public_ops(items.reborrow()),
                Side::Gpu => self.cuda().public_ops(items.reborrow()),
            })
        }

        fn engine(&self) -> HostEngine<'_> {
            self.cuda().engine()
        }

        fn per_host_thread(&self) -> Option<PerThread<'_>> {
            self.cuda().per_host_thread()
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
        /// The smallest batch of private operations with keys like `key` that goes to the GPUs. See
        /// [`break_even`](Self::break_even) for exponentiations.
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

    impl RsaBackend for Auto {
        fn private_ops(&self, #[allow(unused_mut)] mut items: Items<'_>) -> Result<(), Error> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.private_ops(items),
                Chosen::Cpu(cpu) => cpu.private_ops(items),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => match cuda.private_ops(items.reborrow()) {
                    Err(_) if cuda.is_over() => cuda.host().private_ops(items),
                    result => result,
                },
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.private_ops(items),
            }
        }

        fn public_ops(&self, #[allow(unused_mut)] mut items: PublicItems<'_>) -> Result<(), Error> {
            match self.chosen() {
                Chosen::Serial(serial) => serial.public_ops(items),
                Chosen::Cpu(cpu) => cpu.public_ops(items),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => match cuda.public_ops(items.reborrow()) {
                    Err(_) if cuda.is_over() => cuda.host().public_ops(items),
                    result => result,
                },
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.public_ops(items),
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

        fn per_host_thread(&self) -> Option<PerThread<'_>> {
            match self.chosen() {
                Chosen::Serial(_) => None,
                Chosen::Cpu(cpu) => cpu.per_host_thread(),
                #[cfg(feature = "cuda")]
                Chosen::Cuda(cuda) => cuda.per_host_thread(),
                #[cfg(feature = "cuda")]
                Chosen::Both(both) => both.per_host_thread(),
            }
        }
    }
}
