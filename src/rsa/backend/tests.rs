//! Tests of the engine that a backend uses.

use alloc::vec;
use alloc::vec::Vec;
use std::sync::Mutex;

use crypto_bigint::Limb;

use super::*;
use crate::rsa::KeyHandle;
use crate::rsa::hazmat::rsasp1;
use crate::rsa::private_op::testing::{Hooked, Stage};

/// A backend of a user, with an engine whose calls a test observes.
struct Wrapper<'a>(Hooked<'a>);

impl RsaBackend for Wrapper<'_> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        Serial.exponentiate(powers)
    }

    fn engine(&self) -> HostEngine<'_> {
        HostEngine(&self.0)
    }
}

/// The engine of the backend computes everything but the exponentiations.
#[test]
fn no_engine_computes_that_the_backend_does_not_name() {
    let pem = include_str!("../../../tests/keys/rsa1024.pem");
    let key = KeyHandle::from_pkcs1_pem(pem).unwrap();
    for blinded in [true, false] {
        let stages = Mutex::new(Vec::new());
        let hook = |stage, _: &mut [Limb], _| stages.lock().unwrap().push(stage);
        let wrapper = Wrapper(Hooked::new(&Serial, &hook));
        let mut rng = getrandom::SysRng;
        let rng = blinded.then_some(&mut rng);
        let results = rsasp1(&wrapper, rng, &[(&key, [7; 128]); 3]).unwrap();
        assert!(results.iter().all(|result| result.is_ok()));
        let mut expected = vec![
            Stage::Bases,
            Stage::Combined,
            Stage::Factors,
            Stage::Results,
        ];
        if blinded {
            expected.insert(0, Stage::Blinds);
            expected.push(Stage::Masks);
        }
        expected.push(Stage::Verdicts);
        assert_eq!(stages.into_inner().unwrap(), expected);
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

    use crate::backend::{Auto, Kind};
    use batch_modexp_cpu::AnyEngine;
    use batch_modexp_cpu::{Cpu, Parallel};

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
    for engine in AnyEngine::all() {
        assert_eq!(RsaBackend::engine(&engine).name(), engine.name());
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let Some(fma) = batch_modexp_cpu::Fma::new() {
        assert_eq!(fma.engine().name(), "fma");
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(ifma) = batch_modexp_cpu::Ifma::new() {
        assert_eq!(ifma.engine().name(), "ifma");
    }
}
