//! An issuer of blind signatures (RFC 9474) whose clients use blind-rsa-signatures.

use batch_modexp::Error;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{KeyHandle, RsaPrivateOp};

/// BlindSign (RFC 9474, section 4.3) for a batch. The whole batch fails with the first message that does.
pub fn blind_sign<B: RsaPrivateOp>(
    backend: &B,
    key: &KeyHandle,
    blind_messages: &[impl AsRef<[u8]> + Sync],
) -> Result<Vec<Vec<u8>>, Error> {
    let blocks: Vec<_> = blind_messages.iter().map(|block| (key, block)).collect();
    let results = rsasp1(backend, Some(&mut getrandom::SysRng), &blocks)?;
    let octets = results.into_iter().map(|result| Ok(result?.into_inner()));
    octets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_modexp::backend::Auto;
    use blind_rsa_signatures::{BlindSignature, DefaultRng, PublicKeySha384PSSRandomized};

    #[test]
    fn tokens_are_issued_and_redeemed() {
        let pem = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
        let key = KeyHandle::from_pkcs8_pem(pem).unwrap();
        let public = PublicKeySha384PSSRandomized::from_der(&key.public_key_der()).unwrap();
        let blinded =
            [b"one", b"two"].map(|message| public.blind(&mut DefaultRng, message).unwrap());
        let messages = blinded.each_ref().map(|result| &result.blind_message);
        let signed = blind_sign(&Auto::new().unwrap(), &key, &messages).unwrap();
        for ((message, result), signed) in [b"one", b"two"].iter().zip(&blinded).zip(signed) {
            let signature = public.finalize(&BlindSignature(signed), result, message).unwrap();
            let randomizer = result.msg_randomizer;
            public.verify(&signature, randomizer, message).unwrap();
            assert!(public.verify(&signature, randomizer, b"three").is_err());
        }
    }
}
