//! The client of blind signatures, with secret messages and random numbers.

use super::*;
use crate::rsa::blind::{BlindSigner, Variant};

/// Blinding and unblinding, with a valid and a wrong blind signature. The blinded message, the
/// blind signature and the verdict are public.
#[test]
#[ignore = "run under valgrind by the test above"]
fn blind_and_finalize() {
    let variants = [
        Variant::PssRandomized,
        Variant::PssZeroRandomized,
        Variant::PssDeterministic,
        Variant::PssZeroDeterministic,
    ];
    for (key, variant) in rsa_keys().iter().cycle().zip(variants) {
        let key = KeyHandle::new(key).unwrap();
        let message = vec![0x5a; 20];
        set_undefined(&message, true);
        let mut random = SecretRandom::new(7);
        let prepared = variant.prepare(&mut random, &message).unwrap();
        let client = variant.blind(&mut random, &key.public_key(), &*prepared);
        let (blinded, state) = client.unwrap();
        set_undefined(&blinded, false);
        let signer = BlindSigner::new(Serial);
        let blind_signatures = signer.sign(&mut SecretRandom::new(8), &key, &[&blinded]);
        let blind_signature = blind_signatures.unwrap().into_vec().unwrap();
        set_undefined(&blind_signature, false);
        let signature = state.finalize(&blind_signature);
        black_box(signature.unwrap().as_ref());
        assert!(state.finalize(&blinded).is_err());
        set_undefined(&message, false);
    }
}

/// A variable-time inversion.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_inversion() {
    let key = KeyHandle::new(&rsa_keys()[0]).unwrap();
    let mut octets = [0; 128];
    let Ok(()) = SecretRandom::new(9).try_fill_bytes(&mut octets);
    octets[0] = 0;
    let r = BoxedUint::from_be_slice(&octets, 1024).unwrap();
    black_box(r.invert_odd_mod_vartime(key.parts().n.modulus()));
}
