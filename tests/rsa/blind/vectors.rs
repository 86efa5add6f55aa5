//! The vectors of RFC 9474, appendix A, and RFC 9578, appendix A.2.

use std::collections::HashMap;

use batch_modexp::rsa::RsaComponents;
use data_encoding::HEXLOWER as HEX;
use rsa::sha2::{Digest, Sha256};

use super::*;

/// The fields of a vector, and those of its key.
type Fields = HashMap<&'static str, Vec<u8>>;

/// Splits names and octets into vectors. Each field `first` starts a vector; fields before the
/// first one belong to all.
fn vectors(text: &'static str, first: &str) -> Vec<Fields> {
    let (mut common, mut vectors) = (Fields::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if name == first {
            vectors.push(common.clone());
        }
        let octets = HEX.decode(value.as_bytes());
        let octets = octets.unwrap_or_else(|_| value.as_bytes().to_vec());
        vectors
            .last_mut()
            .unwrap_or(&mut common)
            .insert(name, octets);
    }
    vectors
}

#[test]
fn rfc_9474() {
    let vectors = vectors(include_str!("rfc9474.txt"), "variant");
    assert_eq!(vectors.len(), 4);
    for (vector, variant) in vectors.iter().zip(VARIANTS) {
        let field = |name: &str| &vector[name];
        assert_eq!(variant.to_string().as_bytes(), *field("variant"));
        let components = RsaComponents::new(field("n"), field("e"), field("d"));
        let components = components.primes(field("p"), field("q"));
        let key = KeyHandle::from_components(&components).unwrap();

        let mut prefix = Script(field("msg_prefix").clone());
        let message = variant.prepare(&mut prefix, field("msg")).unwrap();
        assert_eq!(*message, *field("prepared_msg"));

        let [n, e, inverse] = ["n", "e", "inv"].map(|name| BigUint::from_bytes_be(field(name)));
        let r = padded(&inverse.modinv(&n).unwrap(), 512);
        let mut random = Script([field("salt"), &r[..]].concat());
        let (blinded, state) = variant
            .blind(&mut random, &key.public_key(), &*message)
            .unwrap();
        assert!(random.0.is_empty());
        assert_eq!(blinded, *field("blinded_msg"));

        let signer = BlindSigner::new(Auto::with_gpus().unwrap());
        let blind_signatures = signer.sign(&mut keys::rng(), &key, &[blinded]).unwrap();
        assert_eq!(blind_signatures.get(0).unwrap(), *field("blind_sig"));

        let signature = state.finalize(field("blind_sig")).unwrap();
        assert_eq!(signature.as_ref(), *field("sig"));
        let power = BigUint::from_bytes_be(signature.as_ref()).modpow(&e, &n);
        assert_eq!(padded(&power, 512), *field("encoded_msg"));

        let verifier = BatchVerifier::new(Serial, variant.scheme());
        let signed = [
            (&*message, field("sig")),
            (field("msg_prefix"), field("sig")),
        ];
        let verdicts = verifier.verify(&key.public_key(), &signed).unwrap();
        assert!(verdicts.is_valid(0) && !verdicts.is_valid(1));
    }
}

/// Privacy Pass with token type 0x0002: an issuer, a client and an origin.
#[test]
fn rfc_9578() {
    let vectors = vectors(include_str!("rfc9578.txt"), "token_challenge");
    assert_eq!(vectors.len(), 5);
    let variant = Variant::PssDeterministic;
    for vector in &vectors {
        let field = |name: &str| &vector[name];
        let key = KeyHandle::from_pem(field("skS")).unwrap();
        // Clients read the octets that the issuer publishes.
        assert_eq!(
            variant.public_key_der(&key.public_key()),
            Ok(field("pkS").clone())
        );
        let public = PublicKey::from_spki_der(field("pkS")).unwrap();
        let restriction = Restriction::PssWith {
            hash: Hash::Sha384,
            min_salt_len: 48,
        };
        assert_eq!((public.restriction(), public.n()), (restriction, key.n()));

        let key_id = Sha256::digest(field("pkS"));
        let challenge = Sha256::digest(field("token_challenge"));
        let input = [&[0, 2], &field("nonce")[..], &challenge, &key_id].concat();
        let message = variant.prepare(&mut Script(Vec::new()), &input).unwrap();
        let mut random = Script([&field("salt")[..], field("blind")].concat());
        let (blinded, state) = variant.blind(&mut random, &public, &*message).unwrap();
        let request = [&[0, 2, key_id[31]], &blinded[..]].concat();
        assert_eq!(request, *field("token_request"));

        let signer = BlindSigner::new(Serial);
        let response = signer
            .sign(&mut keys::rng(), &key, &[&request[3..]])
            .unwrap();
        assert_eq!(response.get(0).unwrap(), *field("token_response"));

        let signature = state.finalize(field("token_response")).unwrap();
        let token = [&input[..], signature.as_ref()].concat();
        assert_eq!(token, *field("token"));

        // An origin reads the message and its signature from the token.
        let verifier = BatchVerifier::new(Serial, variant.scheme());
        let signed = [(&token[..98], &token[98..]), (&token[..97], &token[98..])];
        let verdicts = verifier.verify(&public, &signed).unwrap();
        assert!(verdicts.is_valid(0) && !verdicts.is_valid(1));
    }
}
