//! The measured backends.

#[path = "../../../tests/common/simd.rs"]
pub(crate) mod simd;

use core::num::NonZeroUsize;
use std::thread::available_parallelism;

use batch_modexp::backend::{Auto, Cpu, Parallel, Serial};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::{BatchModExp, Error};
use crypto_bigint::{BoxedUint, U512, U1024, U1536, U2048, U3072, U4096};

/// The backends of this machine with their names.
///
/// Multi-threaded backends are left out if the process may use only one core: they would measure
/// their inner backend again.
pub(crate) fn backends() -> Vec<(&'static str, Box<dyn Backend>)> {
    let mut list = vec![entry("serial", Serial)];
    macro_rules! push {
        ($name:ident: $Backend:ident) => {
            let backend = batch_modexp::backend::$Backend::new();
            list.extend(backend.map(|backend| entry(stringify!($name), backend)));
        };
    }
    simd::each_simd_backend!(push);
    if available_parallelism().is_ok_and(|cores| cores > NonZeroUsize::MIN) {
        list.extend(Parallel::new(Serial).map(|parallel| entry("parallel", parallel)));
        list.extend(Cpu::new().map(|cpu| entry("cpu", cpu)));
        list.extend(Auto::with_gpus().map(|auto| entry("auto", auto)));
    }
    list
}

fn entry(name: &'static str, backend: impl Backend + 'static) -> (&'static str, Box<dyn Backend>) {
    (name, Box::new(backend))
}

/// A backend for RSA and for every measured width.
///
/// It has methods because rustc 1.95 cannot build an object of a trait with all of these as
/// supertraits.
#[allow(dead_code, reason = "not every benchmark looks at all of them")]
pub(crate) trait Backend {
    fn rsa(&self) -> &(dyn RsaBackend + Sync);
    fn boxed(&self) -> &At<BoxedUint>;
    fn at_512(&self) -> &At<U512>;
    fn at_1024(&self) -> &At<U1024>;
    fn at_1536(&self) -> &At<U1536>;
    fn at_2048(&self) -> &At<U2048>;
    fn at_3072(&self) -> &At<U3072>;
    fn at_4096(&self) -> &At<U4096>;
}

/// A backend at one width.
pub(crate) type At<U> = dyn BatchModExp<U, Error = Error>;

impl<B> Backend for B
where
    B: RsaBackend
        + Sync
        + BatchModExp<BoxedUint, Error = Error>
        + BatchModExp<U512, Error = Error>
        + BatchModExp<U1024, Error = Error>
        + BatchModExp<U1536, Error = Error>
        + BatchModExp<U2048, Error = Error>
        + BatchModExp<U3072, Error = Error>
        + BatchModExp<U4096, Error = Error>
        + 'static,
{
    fn rsa(&self) -> &(dyn RsaBackend + Sync) {
        self
    }

    fn boxed(&self) -> &At<BoxedUint> {
        self
    }

    fn at_512(&self) -> &At<U512> {
        self
    }

    fn at_1024(&self) -> &At<U1024> {
        self
    }

    fn at_1536(&self) -> &At<U1536> {
        self
    }

    fn at_2048(&self) -> &At<U2048> {
        self
    }

    fn at_3072(&self) -> &At<U3072> {
        self
    }

    fn at_4096(&self) -> &At<U4096> {
        self
    }
}
