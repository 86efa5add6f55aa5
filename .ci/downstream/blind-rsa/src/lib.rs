//! An issuer of blind signatures (RFC 9474) whose clients use blind-rsa-signatures.

use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{Error, KeyHandle};

/// BlindSign (RFC 9474, section 4.3) for a batch. The whole batch fails with the first message that does.
pub fn blind_sign<B: RsaBackend>(
    backend: &B,
    key: &KeyHandle,
    blind_messages: &[impl AsRef<[u8]> + Sync],
) -> Result<Vec<Vec<u8>>, Error> {
    let blocks: Vec<_> = blind_messages.iter().map(|block| (key, block)).collect();
    let results = rsasp1(backend, Some(&mut getrandom::SysRng), &blocks)?;
    results.iter().map(|result| result.map(Vec::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Error, KeyHandle, blind_sign};
    use batch_modexp::backend::Auto;
    use blind_rsa_signatures::*;

    const MESSAGES: [&[u8]; 2] = [b"one", b"two"];

    /// One variant of RFC 9474, section 5, from blinding to verification.
    fn tokens_are_issued_and_redeemed<S: SaltMode, M: MessagePrepare>() {
        let pem = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
        let key = KeyHandle::from_pkcs8_pem(pem).unwrap();
        let public = PublicKey::<Sha384, S, M>::from_der(&key.public_key_der()).unwrap();
        let blinded = MESSAGES.map(|message| public.blind(&mut DefaultRng, message).unwrap());
        let messages = blinded.each_ref().map(|result| &result.blind_message);
        let signed = blind_sign(&Auto::new().unwrap(), &key, &messages).unwrap();
        for ((message, result), signed) in MESSAGES.iter().zip(&blinded).zip(signed) {
            assert_eq!(result.msg_randomizer.is_some(), M::RANDOMIZE);
            let signature = public.finalize(&BlindSignature(signed), result, message).unwrap();
            let randomizer = result.msg_randomizer;
            public.verify(&signature, randomizer, message).unwrap();
            assert!(public.verify(&signature, randomizer, b"three").is_err());
        }
    }

    #[test]
    fn all_variants() {
        tokens_are_issued_and_redeemed::<PSS, Randomized>();
        tokens_are_issued_and_redeemed::<PSSZero, Randomized>();
        tokens_are_issued_and_redeemed::<PSS, Deterministic>();
        tokens_are_issued_and_redeemed::<PSSZero, Deterministic>();
    }

    #[test]
    fn what_is_no_blinded_message_is_refused() {
        let pem = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
        let key = KeyHandle::from_pkcs8_pem(pem).unwrap();
        for wrong in [vec![0xff; 256], vec![1; 255], vec![1; 257]] {
            let messages = [vec![1; 256], wrong];
            let error = blind_sign(&Auto::new().unwrap(), &key, &messages).unwrap_err();
            assert!(matches!(error, Error::BlockOutOfRange { index: 1, .. }), "{error}");
        }
    }
}
