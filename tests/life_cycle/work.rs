//! Work for backends, with expected results from num-bigint and the `rsa` crate.

use std::process::{Command, Output};

use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use batch_modexp::{BatchModExp, Error, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::{BigRng010 as _, BigUint};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};

const PEM: &str = include_str!("../keys/rsa1024.pem");

/// The traits that these tests use.
pub trait Backend: BatchModExp<BoxedUint, Error = Error> + RsaBackend + Sync {}
impl<B: BatchModExp<BoxedUint, Error = Error> + RsaBackend + Sync> Backend for B {}

/// A batch of exponentiations with 64-bit exponents and the expected results.
pub struct Batch {
    params: Vec<BoxedMontyParams>,
    /// The base, the exponent and the expected result.
    instances: Vec<(BoxedUint, BoxedUint, BoxedUint)>,
}

impl Batch {
    /// `count` random instances of `width` bits, with 3 alternating moduli.
    pub fn random(width: u32, count: usize, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let boxed =
            |value: &BigUint| BoxedUint::from_le_slice(&value.to_bytes_le(), width).unwrap();
        let moduli = [(); 3].map(|()| {
            let mut modulus = rng.random_biguint(width.into());
            modulus.set_bit(0, true);
            modulus
        });
        let instances = (0..count).map(|i| {
            let (base, exponent) = (rng.random_biguint(width.into()), rng.random_biguint(64));
            let result = base.modpow(&exponent, &moduli[i % 3]);
            (boxed(&base), boxed(&exponent), boxed(&result))
        });
        Self {
            instances: instances.collect(),
            params: moduli
                .iter()
                .map(|modulus| BoxedMontyParams::new(Odd::new(boxed(modulus)).unwrap()))
                .collect(),
        }
    }

    pub fn mod_exps(&self) -> Vec<ModExp<'_, BoxedUint>> {
        (0..)
            .zip(&self.instances)
            .map(|(i, (base, exponent, _))| {
                ModExp::new(base, exponent, self.params[i % 3].as_ref())
            })
            .collect()
    }

    /// Computes the batch, and fails if a result is wrong. Returns an error of the backend, after
    /// which the output must be zero.
    pub fn compute(
        &self,
        backend: &(impl BatchModExp<BoxedUint, Error = Error> + ?Sized),
    ) -> Result<(), Error> {
        let mut out = vec![BoxedUint::max(64); self.instances.len()];
        let result = backend.batch_mod_exp(&self.mod_exps(), 64, &mut out);
        for (i, (out, (.., expected))) in out.iter().zip(&self.instances).enumerate() {
            let is_right = match result {
                Ok(()) => out == expected,
                Err(_) => out.is_zero().to_bool(),
            };
            assert!(is_right, "instance {i} after {result:?}");
        }
        result
    }
}

/// A key of 1024 bits.
pub fn key() -> KeyHandle {
    KeyHandle::from_pkcs1_pem(PEM).unwrap()
}

/// The signature of `message` by that key, PKCS#1 v1.5 with SHA-256, from the `rsa` crate.
pub fn signature(message: &[u8]) -> Vec<u8> {
    let key = PrivateKey::from_pkcs1_pem(PEM).unwrap();
    rsa::pkcs1v15::SigningKey::<Sha256>::new(key)
        .sign(message)
        .to_vec()
}

/// Signs the same message `count` times, and fails if a signature is wrong.
pub fn sign(
    backend: &(impl RsaBackend + ?Sized),
    key: &KeyHandle,
    count: usize,
) -> Result<(), batch_modexp::rsa::Error> {
    let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
    let expected = signature(b"m");
    for signature in signer.sign(&mut getrandom::SysRng, key, &vec!["m"; count])? {
        assert_eq!(signature?.as_ref(), expected);
    }
    Ok(())
}

/// Prepares an ignored test of this program in a new process, with `value` in the environment
/// variable `LIFE_CYCLE`.
pub fn child(test: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", test])
        .env("LIFE_CYCLE", value);
    command
}

/// The value that this process was given.
pub fn value() -> String {
    std::env::var("LIFE_CYCLE").expect("only the tests start this one")
}

/// The output of a process, for messages.
pub fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&text))
}
