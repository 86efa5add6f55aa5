//! Exchanges keys and signatures between this crate and `rsa`.
#![cfg(feature = "all")]

use batch_modexp::backend::Cpu;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, Pss, Scheme};
use getrandom::SysRng;
use rsa::pkcs8::DecodePrivateKey;
use rsa::sha2::Sha256;
use rsa::signature::Verifier;
use rsa::{PrivateKey, pkcs1v15, pss};

const MESSAGE: &[u8] = b"message";

fn key() -> PrivateKey {
    PrivateKey::from_pkcs8_pem(include_str!("../../../tests/keys/rsa2048-pkcs8.pem")).unwrap()
}

fn signature<S: Scheme>(scheme: S) -> batch_modexp::rsa::Signature {
    let handle = KeyHandle::try_from(&key()).unwrap();
    let signer = BatchSigner::new(Cpu::new().unwrap(), scheme);
    let signatures = signer.sign(&mut SysRng, &handle, &[MESSAGE]).unwrap();
    signatures.into_iter().next().unwrap().unwrap()
}

#[test]
fn pkcs1_v15() {
    let signature = pkcs1v15::Signature::from(signature(Pkcs1v15::<Sha256>::new()));
    let key = pkcs1v15::VerifyingKey::<Sha256>::new(key().to_public_key());
    key.verify(MESSAGE, &signature).unwrap();
    key.verify(b"another", &signature).unwrap_err();
}

#[test]
fn pss() {
    let signature = pss::Signature::from(signature(Pss::<Sha256>::new()));
    let key = pss::VerifyingKey::<Sha256>::new(key().to_public_key());
    key.verify(MESSAGE, &signature).unwrap();
    key.verify(b"another", &signature).unwrap_err();
}
