//! Keys in the types of all implementations.

#[path = "../../common/simd.rs"]
mod simd;

use std::sync::LazyLock;

use batch_modexp::backend::{Cpu, Serial};
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::{BatchModExp, Error, MultiExpVartime};
use crypto_bigint::BoxedUint;
use crypto_bigint::modular::BoxedMontyParams;
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

/// A key in all its representations.
pub struct TestKey {
    pub handle: KeyHandle,
    pub rsa: PrivateKey,
    pub n: BigUint,
    pub e: BigUint,
    pub d: BigUint,
    pub primes: Vec<BigUint>,
}

impl TestKey {
    fn new(rsa: PrivateKey) -> Self {
        Self {
            handle: KeyHandle::new(&rsa).unwrap(),
            n: big(rsa.n()),
            e: big(rsa.e()),
            d: big(rsa.d()),
            primes: rsa
                .primes()
                .iter()
                .map(|prime| big(prime.as_ref()))
                .collect(),
            rsa,
        }
    }

    /// `number` in as many octets as the modulus.
    pub fn block(&self, number: &BigUint) -> Vec<u8> {
        padded(number, self.handle.size())
    }
}

/// Keys of 1024 and 1025 bits, and one of 1024 bits without CRT values.
pub fn keys() -> &'static [TestKey] {
    static KEYS: LazyLock<Vec<TestKey>> = LazyLock::new(|| {
        let pem = |text| PrivateKey::from_pkcs1_pem(text).unwrap();
        let even = pem(include_str!("../../keys/rsa1024.pem"));
        let odd = pem(include_str!("../../keys/rsa1025.pem"));
        let mut plain = even.clone();
        plain.clear_precomputed();
        [even, odd, plain].into_iter().map(TestKey::new).collect()
    });
    &KEYS
}

/// A backend for exponentiations and for RSA.
pub trait Backend: BatchModExp<BoxedUint, Error = Error> + RsaBackend + Send + Sync {
    /// See [`MultiExpVartime`].
    fn multi_exp(
        &self,
        terms: &[(&BoxedUint, &BoxedUint)],
        params: &BoxedMontyParams,
    ) -> Result<BoxedUint, Error>;
}

impl<B> Backend for B
where
    B: BatchModExp<BoxedUint, Error = Error> + MultiExpVartime + RsaBackend + Send + Sync,
{
    fn multi_exp(
        &self,
        terms: &[(&BoxedUint, &BoxedUint)],
        params: &BoxedMontyParams,
    ) -> Result<BoxedUint, Error> {
        self.multi_exp_vartime(terms, params.as_ref())
    }
}

/// The CPU backends, with their names.
pub fn backends() -> &'static [(&'static str, Box<dyn Backend>)] {
    type Backends = Vec<(&'static str, Box<dyn Backend>)>;
    static BACKENDS: LazyLock<Backends> = LazyLock::new(|| {
        let two = 2.try_into().unwrap();
        let mut backends: Backends = vec![
            ("serial", Box::new(Serial)),
            ("cpu", Box::new(Cpu::with_threads(two).unwrap())),
        ];
        macro_rules! push {
            ($name:ident: $Backend:ident) => {
                if let Some(backend) = batch_modexp::backend::$Backend::new() {
                    backends.push((stringify!($name), Box::new(backend)));
                }
            };
        }
        simd::each_simd_backend!(push);
        backends
    });
    &BACKENDS
}

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_be(&number.to_be_bytes())
}

/// `number` in `len` octets, which must suffice.
pub fn padded(number: &BigUint, len: usize) -> Vec<u8> {
    let octets = number.to_bytes_be();
    let mut padded = vec![0; len];
    if *number != BigUint::ZERO {
        padded[len - octets.len()..].copy_from_slice(&octets);
    }
    padded
}
