//! Errors of the RSA layer: typed, and at the position of the item concerned.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::Error;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, Pss};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::sha2::{Sha256, Sha512};

use super::keys;

/// A generator that fails.
struct NoEntropy;

#[derive(Debug)]
struct NoEntropyError;

impl core::fmt::Display for NoEntropyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no entropy")
    }
}

impl core::error::Error for NoEntropyError {}

impl TryRng for NoEntropy {
    type Error = NoEntropyError;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Err(NoEntropyError)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Err(NoEntropyError)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(NoEntropyError)
        }
    }
}

impl TryCryptoRng for NoEntropy {}

#[test]
fn keys_that_are_too_short_or_too_long() {
    for (pem, bits) in [
        (include_str!("../keys/rsa1016.pem"), 1016),
        (include_str!("../keys/rsa8200.pem"), 8200),
    ] {
        let error = KeyHandle::new(&PrivateKey::from_pkcs1_pem(pem).unwrap()).unwrap_err();
        assert_eq!(error, Error::KeySize { bits });
        let text = error.to_string();
        assert!(
            text.contains(&bits.to_string()) && text.contains("1024 to 8192"),
            "{text}"
        );
    }
}

#[test]
fn a_key_that_is_too_short_for_the_hash_fails_alone() {
    let (short, long) = (keys::rsa1024(), keys::rsa2048());
    let (short, long) = (
        KeyHandle::new(&short).unwrap(),
        KeyHandle::new(&long).unwrap(),
    );
    let signer = BatchSigner::new(Serial, Pss::<Sha512>::new());
    let batch = [(&long, "a"), (&short, "b"), (&long, "c")];
    let signatures = signer.sign_each(&mut keys::rng(), &batch).unwrap();
    assert!(signatures.get(0).is_ok() && signatures.get(2).is_ok());
    let expected = Error::KeyTooShort {
        index: 1,
        bits: 1024,
        min_bits: 8 * 129 + 2,
    };
    assert_eq!(signatures.get(1).unwrap_err(), expected);
}

/// Extreme salt lengths neither overflow nor exhaust memory.
#[test]
fn absurd_salts() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    for salt_len in [usize::MAX, usize::MAX - 66, isize::MAX as usize, 1 << 30] {
        let signer = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(salt_len));
        let signature = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap();
        let expected = Error::KeyTooShort {
            index: 0,
            bits: 1024,
            min_bits: u32::try_from(8 * (salt_len as u128 + 65) + 2).unwrap_or(u32::MAX),
        };
        assert_eq!(signature.get(0).unwrap_err(), expected);
    }
}

/// The minimum length in `KeyTooShort` is exact.
#[test]
fn the_shortest_key_that_is_named_is_the_shortest_that_works() {
    let salt_len = 1024 / 8 - 64 - 2;
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    for (salt_len, works) in [(salt_len, true), (salt_len + 1, false)] {
        let signer = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(salt_len));
        let signature = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap();
        assert_eq!(signature.get(0).is_ok(), works);
    }
    // A 1025-bit key has 1024 bits for the encoded message, a 1024-bit key 1023: both 128 bytes.
    let key = keys::all_sizes().remove(1);
    let handle = KeyHandle::new(&key).unwrap();
    assert_eq!((handle.bits(), handle.size()), (1025, 129));
    let signer = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(salt_len + 1));
    let error = signer
        .sign(&mut keys::rng(), &handle, &["m"])
        .unwrap()
        .into_vec()
        .unwrap_err();
    assert_eq!(
        error,
        Error::KeyTooShort {
            index: 0,
            bits: 1025,
            min_bits: 1026
        }
    );
}

#[test]
fn a_digest_of_the_wrong_length_fails_alone() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    let digests: [&[u8]; 3] = [&[1; 32], &[2; 31], &[3; 32]];
    let signatures = signer
        .sign_prehash(&mut keys::rng(), &handle, &digests)
        .unwrap();
    assert!(signatures.get(0).is_ok() && signatures.get(2).is_ok());
    let expected = Error::DigestLength {
        index: 1,
        len: 31,
        expected: 32,
    };
    assert_eq!(signatures.get(1).unwrap_err(), expected);
}

#[test]
fn no_entropy() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let pss = BatchSigner::new(Serial, Pss::<Sha256>::new()).blinding(false);
    assert_eq!(
        pss.sign(&mut NoEntropy, &handle, &["m"]).unwrap_err(),
        Error::Rng
    );
    let pkcs1v15 = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    assert_eq!(
        pkcs1v15.sign(&mut NoEntropy, &handle, &["m"]).unwrap_err(),
        Error::Rng
    );
    let unblinded = pkcs1v15.blinding(false);
    assert!(
        unblinded
            .sign(&mut NoEntropy, &handle, &["m"])
            .unwrap()
            .get(0)
            .is_ok()
    );
}

/// A generator that always returns the same octet.
struct Stuck(u8);

impl TryRng for Stuck {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(u32::from_ne_bytes([self.0; 4]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(u64::from_ne_bytes([self.0; 8]))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill(self.0);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}

/// The alternatives would be blinding with zero, or an endless loop for a number below n.
#[test]
fn a_stuck_generator_is_an_error() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    for octet in [0, 0xff] {
        let error = signer.sign(&mut Stuck(octet), &handle, &["m"]).unwrap_err();
        assert_eq!(error, Error::Rng);
    }
}

#[test]
fn debug_shows_no_secret() {
    let key = keys::rsa1024();
    let handle = KeyHandle::new(&key).unwrap();
    assert_eq!(format!("{handle:?}"), "KeyHandle { bits: 1024, .. }");
}

/// An item's error names its index, and so does a backend's error inside it. Other errors have no
/// index.
#[test]
fn errors_tell_which_item_they_are_about() {
    let width = batch_modexp::Error::ModulusWidth {
        index: 5,
        bits: 2048,
        max_bits: 1024,
    };
    let backend = Error::from(width.clone());
    assert_eq!([backend.index(), width.index()], [Some(5); 2]);
    assert_eq!(backend.to_string(), width.to_string());
    assert_eq!(Error::Fault { index: 7 }.index(), Some(7));
    let of_the_call = Error::from(batch_modexp::Error::ThreadPool { threads: 2 });
    assert_eq!([of_the_call.index(), Error::Rng.index()], [None; 2]);
}
