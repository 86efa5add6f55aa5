//! Names of schemes and hash functions.

use batch_modexp::rsa::{AnyScheme, Hash};
use pyo3::prelude::*;

use crate::error;

/// The hash function of a name, as hashlib has it.
pub(crate) fn hash(name: &str) -> PyResult<Hash> {
    match name {
        "sha256" => Ok(Hash::Sha256),
        "sha384" => Ok(Hash::Sha384),
        "sha512" => Ok(Hash::Sha512),
        _ => Err(error::plain(format!(
            "hash is {name:?}; take \"sha256\", \"sha384\" or \"sha512\""
        ))),
    }
}

/// The signature scheme of some names. Without `salt_length` a salt is as long as a digest.
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

/// An encryption scheme, and its label.
#[derive(Clone)]
pub(crate) enum Encryption {
    Oaep { hash: Hash, label: Vec<u8> },
    Pkcs1v15,
}

impl Encryption {
    pub(crate) fn new(padding: &str, hash_name: &str, label: &[u8]) -> PyResult<Self> {
        let hash = hash(hash_name)?;
        match padding {
            "oaep" => Ok(Self::Oaep {
                hash,
                label: label.to_vec(),
            }),
            "pkcs1v15" if label.is_empty() => Ok(Self::Pkcs1v15),
            "pkcs1v15" => Err(error::plain("padding \"pkcs1v15\" has no label")),
            _ => Err(error::plain(format!(
                "padding is {padding:?}; take \"oaep\" or \"pkcs1v15\""
            ))),
        }
    }
}

/// Calls a function that is generic over the encryption scheme with the scheme of an
/// [`Encryption`].
macro_rules! with_encryption {
    ($encryption:expr, |$scheme:ident| $call:expr) => {{
        use batch_modexp::rsa::sha2::{Sha256, Sha384, Sha512};
        use batch_modexp::rsa::{Hash, RsaesOaep, RsaesPkcs1v15};
        match &$encryption {
            $crate::schemes::Encryption::Pkcs1v15 => {
                let $scheme = RsaesPkcs1v15;
                $call
            }
            $crate::schemes::Encryption::Oaep { hash, label } => match hash {
                Hash::Sha256 => {
                    let $scheme = RsaesOaep::<Sha256>::with_label(label);
                    $call
                }
                Hash::Sha384 => {
                    let $scheme = RsaesOaep::<Sha384>::with_label(label);
                    $call
                }
                Hash::Sha512 => {
                    let $scheme = RsaesOaep::<Sha512>::with_label(label);
                    $call
                }
                _ => unreachable!("schemes::hash has three"),
            },
        }
    }};
}

pub(crate) use with_encryption;
