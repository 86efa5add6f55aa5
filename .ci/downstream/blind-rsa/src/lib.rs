//! Tests blind signatures (RFC 9474) between this crate and blind-rsa-signatures, each as issuer
//! and as client.

#[cfg(test)]
mod tests {
    use batch_modexp::backend::Auto;
    use batch_modexp::rsa::KeyHandle;
    use batch_modexp::rsa::blind::{BlindSigner, Variant};
    use blind_rsa_signatures::*;
    use getrandom::SysRng;

    const KEY: &str = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
    const MESSAGES: [&[u8]; 2] = [b"one", b"two"];

    /// Clients of blind-rsa-signatures, from blinding to verification.
    fn their_clients<S: SaltMode, M: MessagePrepare>() {
        let key = KeyHandle::from_pkcs8_pem(KEY).unwrap();
        let public = PublicKey::<Sha384, S, M>::from_der(&key.public_key_der()).unwrap();
        let blinded = MESSAGES.map(|message| public.blind(&mut DefaultRng, message).unwrap());
        let messages = blinded.each_ref().map(|result| &result.blind_message);
        let signer = BlindSigner::new(Auto::new().unwrap());
        let signatures = signer.sign(&mut SysRng, &key, &messages).unwrap();
        for ((message, result), signed) in MESSAGES.iter().zip(&blinded).zip(&signatures) {
            assert_eq!(result.msg_randomizer.is_some(), M::RANDOMIZE);
            let signed = BlindSignature(signed.unwrap().to_vec());
            let signature = public.finalize(&signed, result, message).unwrap();
            let randomizer = result.msg_randomizer;
            public.verify(&signature, randomizer, message).unwrap();
            assert!(public.verify(&signature, randomizer, b"three").is_err());
        }
    }

    /// Clients of this crate; blind-rsa-signatures verifies their signatures.
    fn our_clients<S: SaltMode, M: MessagePrepare>(variant: Variant) {
        let key = KeyHandle::from_pkcs8_pem(KEY).unwrap();
        let issuer = SecretKey::<Sha384, S, M>::from_pem(KEY).unwrap();
        let public = PublicKey::<Sha384, S, M>::from_der(&key.public_key_der()).unwrap();
        for message in MESSAGES {
            let prepared = variant.prepare(&mut SysRng, message).unwrap();
            let blind = variant.blind(&mut SysRng, &key.public_key(), &*prepared);
            let (blinded, state) = blind.unwrap();
            let signed = issuer.blind_sign(&blinded).unwrap();
            let signature = Signature(state.finalize(&signed.0).unwrap().into());
            let randomizer = prepared[..prepared.len() - message.len()].try_into();
            let randomizer = randomizer.ok().map(MessageRandomizer);
            assert_eq!(randomizer.is_some(), M::RANDOMIZE);
            public.verify(&signature, randomizer, message).unwrap();
        }
    }

    #[test]
    fn all_variants() {
        their_clients::<PSS, Randomized>();
        their_clients::<PSSZero, Randomized>();
        their_clients::<PSS, Deterministic>();
        their_clients::<PSSZero, Deterministic>();
        our_clients::<PSS, Randomized>(Variant::PssRandomized);
        our_clients::<PSSZero, Randomized>(Variant::PssZeroRandomized);
        our_clients::<PSS, Deterministic>(Variant::PssDeterministic);
        our_clients::<PSSZero, Deterministic>(Variant::PssZeroDeterministic);
    }
}
