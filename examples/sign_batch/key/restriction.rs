//! Restrictions of keys: a key of type id-RSASSA-PSS is for PSS only, perhaps with given parameters
//! (RFC 4055, section 3.1).

use clap::ValueEnum;
use rsa::pkcs1::RsaPssParamsOwned;
use rsa::pkcs8::ObjectIdentifier;
use rsa::pkcs8::spki::AlgorithmIdentifierRef;

use super::super::options::{HashName, SchemeName, SchemeOptions};

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const MGF1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.8");

/// Refuses keys for other algorithms than RSA, and keys that may not be used for `scheme`.
pub fn check(algorithm: &AlgorithmIdentifierRef<'_>, scheme: SchemeOptions) -> Result<(), String> {
    match algorithm.oid {
        RSA_ENCRYPTION => Ok(()),
        RSASSA_PSS if scheme.scheme != SchemeName::Pss => {
            Err("the key is for RSASSA-PSS only; take --scheme pss".into())
        }
        RSASSA_PSS => match &algorithm.parameters {
            None => Ok(()),
            Some(parameters) => check_parameters(
                &parameters
                    .decode_as::<RsaPssParamsOwned>()
                    .map_err(|error| format!("damaged parameters of RSASSA-PSS: {error}"))?,
                scheme.hash,
            ),
        },
        other => Err(format!("this is not an RSA key (algorithm {other})")),
    }
}

fn check_parameters(parameters: &RsaPssParamsOwned, hash: HashName) -> Result<(), String> {
    if parameters.hash.oid != hash.oid() {
        let known = HashName::value_variants()
            .iter()
            .find(|known| known.oid() == parameters.hash.oid);
        return Err(match known.and_then(ValueEnum::to_possible_value) {
            Some(known) => format!(
                "the key is for PSS with {0} only; take --hash {0}",
                known.get_name()
            ),
            None => format!(
                "the key is for PSS with the hash function {} only, which is not supported",
                parameters.hash.oid
            ),
        });
    }
    let mask_gen = &parameters.mask_gen;
    let mask_hash = mask_gen.parameters.as_ref().map(|hash| hash.oid);
    if mask_gen.oid != MGF1 || mask_hash != Some(hash.oid()) {
        return Err(format!(
            "the key is for PSS with a mask generation that is not MGF1 with {}, which is not supported",
            hash.hash()
        ));
    }
    let digest_len = hash.hash().digest_len();
    if usize::from(parameters.salt_len) > digest_len {
        return Err(format!(
            "the key asks for salts of at least {} bytes; with {} they have {}",
            parameters.salt_len,
            hash.hash(),
            digest_len
        ));
    }
    Ok(())
}
