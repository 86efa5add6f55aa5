//! The engine that the host computes with around a backend's exponentiations.

use core::fmt;

use crate::backend::Serial;
use crate::engine::Engine;

/// An engine of this crate: see [`RsaPrivateOp::engine`](super::RsaPrivateOp::engine).
///
/// Nobody else can make one, so that results are never checked by code of a backend's author.
#[derive(Clone, Copy)]
pub struct HostEngine<'a>(pub(super) &'a dyn Engine);

impl HostEngine<'_> {
    /// Its name: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
}

/// [`Serial`], which every processor has.
impl Default for HostEngine<'_> {
    fn default() -> Self {
        Self(&Serial)
    }
}

impl fmt::Debug for HostEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostEngine").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use crypto_bigint::{BoxedUint, Choice};

    use super::*;
    use crate::requests::{Powers, Product, Reduction};
    use crate::rsa::hazmat::rsasp1;
    use crate::rsa::{KeyHandle, RsaPrivateOp};
    use crate::{BatchModExp, Error, ModExp};

    /// Counts what [`Serial`] computes: products, remainders and comparisons of powers.
    #[derive(Default)]
    struct Counting([AtomicUsize; 3]);

    impl Engine for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn run_product(&self, product: Product<'_>) {
            self.0[0].fetch_add(1, Relaxed);
            Serial.run_product(product);
        }

        fn run_reduction(&self, reduction: Reduction<'_>) {
            self.0[1].fetch_add(1, Relaxed);
            Serial.run_reduction(reduction);
        }

        fn run_powers(&self, powers: &Powers<'_>) -> Option<Vec<Choice>> {
            self.0[2].fetch_add(1, Relaxed);
            Serial.run_powers(powers)
        }
    }

    impl BatchModExp<BoxedUint> for Counting {
        type Error = Error;

        fn batch_mod_exp(
            &self,
            batch: &[ModExp<'_, BoxedUint>],
            exponent_bits: u32,
            out: &mut [BoxedUint],
        ) -> Result<(), Error> {
            Serial.batch_mod_exp(batch, exponent_bits, out)
        }
    }

    impl RsaPrivateOp for Counting {
        fn engine(&self) -> HostEngine<'_> {
            HostEngine(self)
        }
    }

    /// Nothing is computed by an engine that the backend does not name.
    #[test]
    fn the_engine_of_the_backend_computes_everything() {
        let pem = include_str!("../../../tests/keys/rsa1024.pem");
        let key = KeyHandle::from_pkcs1_pem(pem).unwrap();
        let block = [7; 128];
        // Blinding, recombination, unblinding and the check are products.
        for (blinded, products) in [(true, 4), (false, 3)] {
            let counting = Counting::default();
            let mut rng = getrandom::SysRng;
            let rng = blinded.then_some(&mut rng);
            let results = rsasp1(&counting, rng, &[(&key, block); 3]).unwrap();
            assert!(results.iter().all(Result::is_ok));
            let counts = counting.0.map(AtomicUsize::into_inner);
            assert_eq!(counts, [products, 1, 1], "blinded: {blinded}");
        }
    }

    #[test]
    fn serial_computes_everything_with_serial() {
        assert_eq!(Serial.engine().name(), "serial");
        assert_eq!((&&Serial).engine().name(), "serial");
        assert_eq!(HostEngine::default().name(), "serial");
    }

    #[cfg(feature = "std")]
    #[test]
    fn backends_compute_with_their_own_engine() {
        use core::num::NonZeroUsize;

        use crate::backend::cpu::AnyEngine;
        use crate::backend::{Auto, Cpu, Kind, Parallel};

        let two = NonZeroUsize::new(2).unwrap();
        let fastest = AnyEngine::fastest().name();
        let cpu = Cpu::with_threads(two).unwrap();
        assert_eq!([cpu.engine().name(), cpu.name()], [fastest; 2]);
        let parallel = Parallel::with_threads(Serial, two).unwrap();
        assert_eq!(parallel.engine().name(), "serial");
        for (kind, expected) in [
            (Kind::Serial, "serial"),
            (Kind::Parallel, "serial"),
            (Kind::Cpu, fastest),
        ] {
            let auto = Auto::with(kind, Some(two)).unwrap();
            assert_eq!(auto.engine().name(), expected);
        }
        for engine in [AnyEngine::fma(), AnyEngine::ifma()].into_iter().flatten() {
            assert_eq!(RsaPrivateOp::engine(&engine).name(), engine.name());
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Some(fma) = crate::backend::Fma::new() {
            assert_eq!(fma.engine().name(), "fma");
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(ifma) = crate::backend::Ifma::new() {
            assert_eq!(ifma.engine().name(), "ifma");
        }
    }
}
