//! Names of schemes and hash functions.

use batch_modexp::rsa::{AnyEncryptionScheme, AnyScheme, Hash, OaepHash};
use pyo3::prelude::*;

use crate::error;
use crate::messages::{self, Octets};

/// The hash function with this name, as in hashlib.
pub(crate) fn hash(name: &str) -> PyResult<Hash> {
    match name {
        "sha224" => Ok(Hash::Sha224),
        "sha256" => Ok(Hash::Sha256),
        "sha384" => Ok(Hash::Sha384),
        "sha512" => Ok(Hash::Sha512),
        "sha512_224" => Ok(Hash::Sha512_224),
        "sha512_256" => Ok(Hash::Sha512_256),
        "sha3_224" => Ok(Hash::Sha3_224),
        "sha3_256" => Ok(Hash::Sha3_256),
        "sha3_384" => Ok(Hash::Sha3_384),
        "sha3_512" => Ok(Hash::Sha3_512),
        _ => Err(unknown_hash("hash", name)),
    }
}

fn unknown_hash(argument: &str, name: &str) -> PyErr {
    error::plain(format!(
        "{argument} is {name:?}; take \"sha256\", \"sha384\", \"sha512\" or another SHA-2 or SHA-3 of hashlib"
    ))
}

/// The signature scheme with these names. Without `salt_length` a salt is as long as a digest.
pub(crate) fn signature(
    padding: &str,
    hash_name: &str,
    salt_length: Option<usize>,
) -> PyResult<AnyScheme> {
    let hash = hash(hash_name)?;
    match (padding, salt_length) {
        ("pss", _) => Ok(AnyScheme::Pss {
            hash,
            salt_len: salt_length.unwrap_or(hash.digest_len()),
        }),
        ("pkcs1v15", None) => Ok(AnyScheme::Pkcs1v15 { hash }),
        ("pkcs1v15", Some(_)) => Err(error::plain("padding \"pkcs1v15\" has no salt_length")),
        _ => Err(error::plain(format!(
            "padding is {padding:?}; take \"pss\" or \"pkcs1v15\""
        ))),
    }
}

/// The signature scheme to verify by, and whether salts of any length are accepted: `salt_length` is
/// a number, None or "any".
pub(crate) fn to_verify(
    padding: &str,
    hash_name: &str,
    salt_length: Option<&Bound<'_, PyAny>>,
) -> PyResult<(AnyScheme, bool)> {
    let any_salt = salt_length.is_some_and(|length| length.eq("any").unwrap_or(false));
    if any_salt && padding != "pss" {
        return Err(error::plain("only padding \"pss\" has a salt_length"));
    }
    let salt_length = salt_length.filter(|_| !any_salt);
    let salt_length = salt_length.map(|length| length.extract()).transpose()?;
    Ok((signature(padding, hash_name, salt_length)?, any_salt))
}

/// The octets of a label; None if there is none.
pub(crate) fn label(label: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Octets>> {
    label
        .map(|label| messages::octets("label", label))
        .transpose()
}

/// The hash function of OAEP with this name, as in hashlib.
fn oaep_hash(argument: &str, name: &str) -> PyResult<OaepHash> {
    match name {
        "sha1" => Ok(OaepHash::Sha1),
        _ => match hash(name) {
            Ok(hash) => Ok(hash.into()),
            Err(_) => Err(unknown_hash(argument, name)),
        },
    }
}

/// The encryption scheme with these names and a label. Without `mgf_hash` the hash function of the
/// mask generation is the same.
pub(crate) fn encryption<'l>(
    padding: &str,
    hash_name: &str,
    mgf_hash: Option<&str>,
    label: &'l Option<Octets>,
) -> PyResult<AnyEncryptionScheme<'l>> {
    let label = label.as_deref().unwrap_or_default();
    match padding {
        "oaep" => {
            let hash = oaep_hash("hash", hash_name)?;
            let mgf_hash = mgf_hash.map(|name| oaep_hash("mgf_hash", name));
            Ok(AnyEncryptionScheme::Oaep {
                hash,
                mgf_hash: mgf_hash.transpose()?.unwrap_or(hash),
                label,
            })
        }
        "pkcs1v15" if !label.is_empty() => Err(error::plain("padding \"pkcs1v15\" has no label")),
        "pkcs1v15" if mgf_hash.is_some() => {
            Err(error::plain("padding \"pkcs1v15\" has no mgf_hash"))
        }
        "pkcs1v15" => hash(hash_name).map(|_| AnyEncryptionScheme::Pkcs1v15),
        _ => Err(error::plain(format!(
            "padding is {padding:?}; take \"oaep\" or \"pkcs1v15\""
        ))),
    }
}
