//! The test keys that a soak uses.

use batch_modexp::rsa::{Error, KeyHandle};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;

/// A key for this crate and for the reference.
pub(crate) struct Key {
    pub(crate) pem: &'static str,
    pub(crate) handle: KeyHandle,
    pub(crate) reference: PrivateKey,
}

/// Common and odd sizes, with public exponents 65537 and 3; half of them have about 2048 bits.
const PEMS: [&str; 6] = [
    include_str!("../../tests/keys/rsa1024.pem"),
    include_str!("../../tests/keys/rsa1025.pem"),
    include_str!("../../tests/keys/rsa2048.pem"),
    include_str!("../../tests/keys/rsa2048-e3.pem"),
    include_str!("../../tests/keys/rsa2056.pem"),
    include_str!("../../tests/keys/rsa3072.pem"),
];

/// Imports all keys.
pub(crate) fn all() -> Result<Vec<Key>, Box<dyn core::error::Error>> {
    PEMS.into_iter()
        .map(|pem| {
            Ok(Key {
                pem,
                handle: import(pem)?,
                reference: PrivateKey::from_pkcs1_pem(pem)?,
            })
        })
        .collect()
}

pub(crate) fn import(pem: &str) -> Result<KeyHandle, Error> {
    KeyHandle::from_pkcs1_pem(pem)
}
