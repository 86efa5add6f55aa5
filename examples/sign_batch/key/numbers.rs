//! From DER to keys.

use batch_modexp::rsa::{Error, KeyHandle};
use rsa::pkcs1::{self, DecodeRsaPrivateKey};
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::{self, Decode};
use rsa::pkcs8::spki::SubjectPublicKeyInfoRef;
use rsa::{PrivateKey, PublicKey};

use super::super::options::SchemeOptions;
use super::container::{Document, Kind};
use super::restriction;

/// The private key in `document`, which holds one, not encrypted.
pub fn private_key(document: &Document, scheme: SchemeOptions) -> Result<KeyHandle, String> {
    let der = &document.der;
    let key = match document.kind {
        Kind::Pkcs8 => {
            // Looked at here too, for messages that name the options of this program.
            if let Ok(info) = PrivateKeyInfoRef::from_der(der) {
                restriction::check(&info.algorithm, scheme)?;
            }
            KeyHandle::from_pkcs8_der(der)
        }
        _ => KeyHandle::from_pkcs1_der(der),
    };
    key.map_err(|error: Error| error.to_string())
}

/// The public key in `document`, which is not encrypted, or that of the private key in it.
pub fn public_key(document: &Document, scheme: SchemeOptions) -> Result<PublicKey, String> {
    let der = &document.der;
    match document.kind {
        Kind::Spki => {
            let info = SubjectPublicKeyInfoRef::from_der(der).map_err(damaged("public key"))?;
            restriction::check(&info.algorithm, scheme)?;
            let bits = info.subject_public_key.as_bytes();
            public_from_pkcs1(bits.ok_or("damaged public key")?)
        }
        Kind::Pkcs1Public => public_from_pkcs1(der),
        _ => public_half(&private_key(document, scheme)?),
    }
}

/// The public key of `key` for the `rsa` crate, which takes shorter exponents than we do.
pub fn public_half(key: &KeyHandle) -> Result<PublicKey, String> {
    let der = key.public_key_der();
    let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(damaged("public key"))?;
    let bits = info.subject_public_key.as_bytes();
    public_from_pkcs1(bits.ok_or("damaged public key")?)
}

fn public_from_pkcs1(der: &[u8]) -> Result<PublicKey, String> {
    let parts = pkcs1::RsaPublicKeyRef::from_der(der).map_err(damaged("public key"))?;
    PublicKey::try_from(parts).map_err(|error| {
        format!("the rsa crate, which checks signatures, cannot use the public key: {error}")
    })
}

/// The private key in `document` for the `rsa` crate, once [`private_key`] has accepted it.
pub fn of_rsa(document: &Document) -> Result<PrivateKey, String> {
    let der = &document.der;
    let key = match document.kind {
        Kind::Pkcs8 => {
            let info = PrivateKeyInfoRef::from_der(der).map_err(damaged("PKCS#8"))?;
            PrivateKey::from_pkcs1_der(info.private_key.as_bytes())
        }
        _ => PrivateKey::from_pkcs1_der(der),
    };
    key.map_err(|error| format!("the rsa crate cannot use the key: {error}"))
}

fn damaged(what: &str) -> impl Fn(der::Error) -> String {
    move |error| format!("damaged {what}: {error}")
}
