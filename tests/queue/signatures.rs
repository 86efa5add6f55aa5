//! Signatures from a queue are valid for the rsa crate.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use batch_modexp::backend::{Cpu, Serial};
use batch_modexp::queue::{BatchQueue, QueueError};
use batch_modexp::rsa::Error;
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle, Pkcs1v15, Pss, Signature};
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::signature::Verifier;
use rsa::{PrivateKey, PublicKey, pkcs1v15, pss};

use super::keys;

pub const PKCS1V15: AnyScheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A minimal async runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Verifies a signature with the rsa crate.
pub fn verify(key: &PrivateKey, scheme: AnyScheme, message: &[u8], signature: &Signature) {
    let public = PublicKey::from(key);
    let pkcs1v15: pkcs1v15::Signature = signature.into();
    let pss: pss::Signature = signature.into();
    macro_rules! verify {
        ($($hash:ident),*) => {
            match scheme {
                $(AnyScheme::Pkcs1v15 { hash: Hash::$hash } => {
                    pkcs1v15::VerifyingKey::<$hash>::new(public).verify(message, &pkcs1v15)
                })*
                $(AnyScheme::Pss { hash: Hash::$hash, salt_len } => {
                    pss::VerifyingKey::<$hash>::new_with_salt_len(public, salt_len).verify(message, &pss)
                })*
                _ => panic!("no such hash function"),
            }
        };
    }
    let verdict = verify!(Sha256, Sha384, Sha512);
    verdict.unwrap_or_else(|_| panic!("{scheme:?} with {} bits", 8 * signature.as_ref().len()));
}

#[test]
fn any_key_and_scheme_by_any_call() {
    let queue = BatchQueue::new(Cpu::new().unwrap(), getrandom::SysRng).unwrap();
    let hashes = [Hash::Sha256, Hash::Sha384];
    let schemes: Vec<_> = hashes
        .into_iter()
        .flat_map(|hash| {
            let salt_len = hash.digest_len();
            let pss = |salt_len| AnyScheme::Pss { hash, salt_len };
            [AnyScheme::Pkcs1v15 { hash }, pss(salt_len), pss(0)]
        })
        .collect();
    let all = [
        keys::rsa1024(),
        keys::all_sizes().remove(1),
        keys::rsa2048(),
    ];
    let mut requests = Vec::new();
    for (number, key) in all.iter().enumerate() {
        let handle = KeyHandle::new(key).unwrap();
        for &scheme in &schemes {
            let message = format!("{number} {scheme:?}").into_bytes();
            let digest = match scheme {
                AnyScheme::Pkcs1v15 { hash } | AnyScheme::Pss { hash, .. } => match hash {
                    Hash::Sha256 => Sha256::digest(&message).to_vec(),
                    _ => Sha384::digest(&message).to_vec(),
                },
            };
            for signing in [
                queue.sign(&handle, scheme, &message),
                queue.sign_prehash(&handle, scheme, &digest),
                queue.try_sign(&handle, scheme, &message).unwrap(),
                queue.try_sign_prehash(&handle, scheme, &digest).unwrap(),
            ] {
                requests.push((key, scheme, message.clone(), signing));
            }
        }
    }
    for (number, (key, scheme, message, signing)) in requests.into_iter().enumerate() {
        let signature = match number % 2 {
            0 => signing.wait(),
            _ => block_on(signing),
        };
        verify(key, scheme, &message, &signature.unwrap());
    }
}

#[test]
fn schemes_may_be_types() {
    let key = keys::rsa2048();
    let handle = KeyHandle::new(&key).unwrap();
    let queue = BatchQueue::new(Cpu::new().unwrap(), getrandom::SysRng).unwrap();
    let pkcs1v15 = queue.sign_blocking(&handle, Pkcs1v15::<Sha512>::new(), b"m");
    let scheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha512 };
    verify(&key, scheme, b"m", &pkcs1v15.unwrap());
    let digest = Sha384::digest(b"m");
    let pss = Pss::<Sha384>::with_salt_len(7);
    let pss = queue.sign_prehash_blocking(&handle, pss, &digest);
    let scheme = AnyScheme::Pss {
        hash: Hash::Sha384,
        salt_len: 7,
    };
    verify(&key, scheme, b"m", &pss.unwrap());
}

/// An error of one request does not affect its neighbours, and names no other position.
#[test]
fn errors_are_of_one_request() {
    let restricted = include_str!("../keys/pss.pem");
    let restricted = KeyHandle::from_pkcs8_pem(restricted).unwrap();
    let key = keys::rsa1024();
    let handle = KeyHandle::new(&key).unwrap();
    let queue = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
    let too_long = AnyScheme::Pss {
        hash: Hash::Sha512,
        salt_len: 64,
    };
    let good = [0, 1, 2].map(|_| queue.sign(&handle, PKCS1V15, b"m"));
    let bad = [
        queue.sign(&handle, too_long, b"m"),
        queue.sign_prehash(&handle, PKCS1V15, &[0; 31]),
        queue.sign(&restricted, PKCS1V15, b"m"),
    ];
    let errors = bad.map(|signing| signing.wait().unwrap_err());
    let expected = [
        Error::KeyTooShort {
            index: 0,
            bits: 1024,
            min_bits: 1034,
        },
        Error::DigestLength {
            index: 0,
            len: 31,
            expected: 32,
        },
        Error::KeyRestricted {
            index: 0,
            restriction: restricted.restriction(),
        },
    ];
    assert_eq!(errors, expected.map(QueueError::Sign));
    for signing in good {
        verify(&key, PKCS1V15, b"m", &signing.wait().unwrap());
    }
    let refused = queue.try_sign(&restricted, PKCS1V15, b"m").unwrap_err();
    assert!(matches!(
        refused,
        QueueError::Sign(Error::KeyRestricted { .. })
    ));
}

#[test]
fn nothing_is_printed_but_numbers() {
    let queue = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
    assert_eq!(
        format!("{queue:?}"),
        "BatchQueue { waiting: 0, under_way: 0, .. }"
    );
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signing = queue.sign(&handle, PKCS1V15, b"m");
    assert_eq!(format!("{signing:?}"), "Signing(in the queue)");
}
