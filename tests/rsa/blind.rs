//! Blind signatures, compared with the vectors of RFC 9474 and RFC 9578, and the `rsa` crate.

use std::convert::Infallible;

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::blind::{BlindSigner, Variant};
use batch_modexp::rsa::{BatchVerifier, Error, Hash, KeyHandle, PublicKey, Restriction};
use num_bigint::BigUint;
use rand_core::{TryCryptoRng, TryRng};
use rsa::pss;
use rsa::sha2::Sha384;
use rsa::signature::Verifier;

use super::keys;

mod vectors;

const VARIANTS: [Variant; 4] = [
    Variant::PssRandomized,
    Variant::PssZeroRandomized,
    Variant::PssDeterministic,
    Variant::PssZeroDeterministic,
];

/// A generator that returns some octets in order, and fails afterwards.
struct Script(Vec<u8>);

impl TryRng for Script {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        octets.copy_from_slice(&self.0[..octets.len()]);
        self.0.drain(..octets.len());
        Ok(())
    }
}

impl TryCryptoRng for Script {}

fn padded(number: &BigUint, len: usize) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    [vec![0; len - bytes.len()], bytes].concat()
}

/// All variants and key sizes, many clients and keys in one batch; the `rsa` crate verifies the
/// signatures.
#[test]
fn signatures_are_accepted_by_rsa() {
    let rsa_keys = keys::all_sizes();
    let handles: Vec<_> = rsa_keys
        .iter()
        .map(|key| KeyHandle::new(key).unwrap())
        .collect();
    let mut rng = keys::rng();
    let mut clients = Vec::new();
    for (number, (key, handle)) in rsa_keys.iter().zip(&handles).enumerate() {
        for variant in VARIANTS.into_iter().skip(number % 2) {
            let message = format!("{variant} {number}");
            let prepared = variant.prepare(&mut rng, &message).unwrap();
            assert!(prepared.ends_with(message.as_bytes()));
            let prefix_len = prepared.len() - message.len();
            assert_eq!(prefix_len, if variant.is_randomized() { 32 } else { 0 });
            let (blinded, state) = variant
                .blind(&mut rng, &handle.public_key(), &*prepared)
                .unwrap();
            clients.push((key, handle, variant, prepared, blinded, state));
        }
    }
    let batch: Vec<_> = clients
        .iter()
        .map(|(_, handle, _, _, blinded, _)| (*handle, blinded))
        .collect();
    let signer = BlindSigner::new(Auto::with_gpus().unwrap());
    let blind_signatures = signer.sign_each(&mut rng, &batch).unwrap();
    for ((key, _, variant, message, _, state), blind_signature) in
        clients.iter().zip(&blind_signatures)
    {
        let signature = state.finalize(blind_signature.unwrap()).unwrap();
        let verifier =
            pss::VerifyingKey::<Sha384>::new_with_salt_len(key.to_public_key(), variant.salt_len());
        verifier.verify(message, &(&signature).into()).unwrap();
        assert!(verifier.verify(b"another", &signature.into()).is_err());
    }
}

/// Random prefixes, salts and factors differ each time. The signature of a message differs only
/// with a salt.
#[test]
fn the_same_message_is_blinded_anew_each_time() {
    let key = KeyHandle::new(&keys::rsa1024()).unwrap();
    let (public, mut rng) = (key.public_key(), keys::rng());
    for variant in VARIANTS {
        let prepared = [(); 2].map(|()| variant.prepare(&mut rng, "m").unwrap());
        assert_eq!(*prepared[0] != *prepared[1], variant.is_randomized());
        let clients = [(); 2].map(|()| variant.blind(&mut rng, &public, &*prepared[0]).unwrap());
        assert_ne!(clients[0].0, clients[1].0);
        let blinded = clients.each_ref().map(|(blinded, _)| blinded);
        let blind = BlindSigner::new(Serial)
            .sign(&mut rng, &key, &blinded)
            .unwrap();
        let signatures = [0, 1].map(|i| clients[i].1.finalize(blind.get(i).unwrap()).unwrap());
        assert_eq!(signatures[0] == signatures[1], variant.salt_len() == 0);
    }
}

/// A wrong blind signature is refused, and the right one still works.
#[test]
fn wrong_blind_signatures_are_refused() {
    let key = KeyHandle::new(&keys::rsa1024()).unwrap();
    let mut rng = keys::rng();
    let variant = Variant::PssDeterministic;
    let [(blinded, state), (other, _)] =
        [(); 2].map(|()| variant.blind(&mut rng, &key.public_key(), "m").unwrap());
    let blind = BlindSigner::new(Serial)
        .sign(&mut rng, &key, &[&blinded, &other])
        .unwrap();
    let right = blind.get(0).unwrap().to_vec();
    let mut flipped = right.clone();
    flipped[127] ^= 1;
    let wrong = [&flipped, blind.get(1).unwrap(), &blinded, &[0; 128]];
    for wrong in wrong {
        let error = state.finalize(wrong).unwrap_err();
        assert_eq!(error, Error::Verification { index: 0 });
    }
    let n = key.n();
    for wrong in [
        &right[1..],
        &[&right[..], &[0]].concat(),
        &[],
        &n,
        &[0xff; 128],
    ] {
        let error = Error::BlockOutOfRange {
            index: 0,
            len: wrong.len(),
            expected: 128,
        };
        assert_eq!(state.finalize(wrong).unwrap_err(), error);
    }
    assert!(state.finalize(right).is_ok());
}

#[test]
fn blinded_messages_out_of_range_fail_alone() {
    let key = KeyHandle::new(&keys::rsa1024()).unwrap();
    let n = key.n();
    let blocks = [&[7; 128][..], &n, &[0xff; 128], &[0; 127], &[0; 129], &[]];
    let signer = BlindSigner::new(Serial);
    let signatures = signer.sign(&mut keys::rng(), &key, &blocks).unwrap();
    assert!(signatures.get(0).is_ok());
    for (index, block) in blocks.iter().enumerate().skip(1) {
        let error = Error::BlockOutOfRange {
            index,
            len: block.len(),
            expected: 128,
        };
        assert_eq!(signatures.get(index).unwrap_err(), error);
    }
}

/// Keys restricted to other PSS parameters neither sign nor blind.
#[test]
fn restricted_keys() {
    let [any_pss, sha256] = [
        include_str!("../keys/pss.pem"),
        include_str!("../keys/pss-sha256.pem"),
    ]
    .map(|pem| KeyHandle::from_pkcs8_pem(pem).unwrap());
    let (mut rng, block) = (keys::rng(), [7; 128]);
    let batch = [&any_pss, &sha256].map(|key| (key, &block[..key.size()]));
    let signatures = BlindSigner::new(Serial).sign_each(&mut rng, &batch);
    let signatures = signatures.unwrap();
    assert!(signatures.get(0).is_ok());
    let restricted = |index| Error::KeyRestricted {
        index,
        restriction: sha256.restriction(),
    };
    assert_eq!(signatures.get(1).unwrap_err(), restricted(1));
    for variant in VARIANTS {
        let public = [&any_pss, &sha256].map(KeyHandle::public_key);
        assert!(variant.blind(&mut rng, &public[0], "m").is_ok());
        assert_eq!(
            variant.blind(&mut rng, &public[1], "m").err(),
            Some(restricted(0))
        );
        assert_eq!(variant.public_key_der(&public[1]), Err(restricted(0)));
        // After import, the key is for this variant, or for one with a longer salt.
        let der = variant.public_key_der(&public[0]).unwrap();
        let key = PublicKey::from_spki_der(&der).unwrap();
        let expected = Restriction::PssWith {
            hash: Hash::Sha384,
            min_salt_len: variant.salt_len(),
        };
        assert_eq!((key.restriction(), key.n()), (expected, any_pss.n()));
        for other in VARIANTS {
            let fits = other.salt_len() >= variant.salt_len();
            assert_eq!(other.blind(&mut rng, &key, "m").is_ok(), fits);
        }
    }
}

/// A modulus that is a multiple of 3, with messages and random numbers that are multiples too, and
/// that are not.
#[test]
fn factors_in_common_with_the_modulus() {
    let sound = KeyHandle::new(&keys::rsa1024()).unwrap().public_key();
    let mut n = BigUint::from_bytes_be(&sound.n()) / 3u8 * 3u8;
    if !n.bit(0) {
        n -= 3u8;
    }
    let broken = PublicKey::from_numbers(&n.to_bytes_be(), &[1, 0, 1]).unwrap();
    let variant = Variant::PssZeroDeterministic;
    let blind = |key: &PublicKey, r: u32, message: &str| {
        let r = padded(&r.into(), 128);
        variant.blind(&mut Script(r), key, message)
    };
    let mut outcomes = [0; 2];
    for message in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        // Blinding with 1 gives the encoded message, which depends only on the length of the
        // modulus.
        let encoded = BigUint::from_bytes_be(&blind(&sound, 1, message).unwrap().0);
        let is_multiple = &encoded % 3u8 == BigUint::ZERO;
        outcomes[usize::from(is_multiple)] += 1;
        let outcome = blind(&broken, 1, message).map(|(blinded, _)| blinded);
        match is_multiple {
            true => assert_eq!(outcome, Err(Error::Blinding)),
            false => assert_eq!(outcome, Ok(padded(&encoded, 128))),
        }
        assert_eq!(blind(&broken, 3, message).err(), Some(Error::Blinding));
        assert!(blind(&sound, 3, message).is_ok());
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn generators_that_are_stuck() {
    let key = KeyHandle::new(&keys::rsa1024()).unwrap();
    let stuck = || Script(vec![0xff; 20_000]);
    for variant in VARIANTS {
        let blinded = variant.blind(&mut stuck(), &key.public_key(), "m");
        assert_eq!(blinded.err(), Some(Error::Rng));
    }
    let signer = BlindSigner::new(Serial);
    let signed = signer.sign(&mut stuck(), &key, &[[7; 128]]);
    assert_eq!(signed.unwrap_err(), Error::Rng);
}

/// `Debug` of a state prints only the key.
#[test]
fn states_print_no_secret() {
    let key = KeyHandle::new(&keys::rsa1024()).unwrap().public_key();
    let mut rng = keys::rng();
    let [first, second] = ["one", "two"].map(|message| {
        let (_, state) = Variant::PssRandomized
            .blind(&mut rng, &key, message)
            .unwrap();
        format!("{state:?}")
    });
    assert_eq!(first, second);
    assert_eq!(first, format!("ClientState {{ key: {key:?}, .. }}"));
}
