//! Decodes keys from DER.

use batch_modexp::rsa::{Error, KeyHandle, PublicKey};
use batch_modexp::secret::Secret;
use rsa::PrivateKey;
use rsa::pkcs1::{self, DecodeRsaPrivateKey};
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::{self, Decode};
use rsa::pkcs8::spki::SubjectPublicKeyInfoRef;

use super::super::options::SchemeOptions;
use super::container::{Document, Kind};
use super::restriction;

/// Decodes the private key in `document`, which holds one, unencrypted.
pub fn private_key(document: &Document, scheme: SchemeOptions) -> Result<KeyHandle, String> {
    let der = &document.der;
    let key = match document.kind {
        Kind::Pkcs8 => {
            // Checked here too, for messages that name this program's options.
            if let Ok(info) = PrivateKeyInfoRef::from_der(der) {
                restriction::check(&info.algorithm, scheme)?;
            }
            KeyHandle::from_pkcs8_der(der)
        }
        _ => KeyHandle::from_pkcs1_der(der),
    };
    key.map_err(|error: Error| error.to_string())
}

/// Decodes the public key in `document`, which is unencrypted, or that of the private key in it.
pub fn public_key(document: &Document, scheme: SchemeOptions) -> Result<PublicKey, String> {
    let der = &document.der;
    let key = match document.kind {
        Kind::Spki => {
            // For messages that name this program's options.
            if let Ok(info) = SubjectPublicKeyInfoRef::from_der(der) {
                restriction::check(&info.algorithm, scheme)?;
            }
            PublicKey::from_spki_der(der)
        }
        Kind::Pkcs1Public => PublicKey::from_pkcs1_der(der),
        Kind::Certificate => {
            let key = PublicKey::from_certificate_der(der).map_err(|error| error.to_string())?;
            let document = Document {
                kind: Kind::Spki,
                der: Secret::new(key.as_der().into()),
            };
            return public_key(&document, scheme);
        }
        Kind::Pkcs1Private | Kind::Pkcs8 | Kind::Encrypted => {
            return Ok(private_key(document, scheme)?.public_key());
        }
    };
    key.map_err(|error: Error| error.to_string())
}

/// Converts the public key for the `rsa` crate, which supports only shorter exponents.
pub fn public_half(key: &KeyHandle) -> Result<rsa::PublicKey, String> {
    let der = key.public_key_der();
    let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(damaged("public key"))?;
    let bits = info.subject_public_key.as_bytes();
    let bits = bits.ok_or("damaged public key")?;
    let parts = pkcs1::RsaPublicKeyRef::from_der(bits).map_err(damaged("public key"))?;
    rsa::PublicKey::try_from(parts).map_err(|error| {
        format!("the rsa crate, which checks signatures, cannot use the public key: {error}")
    })
}

/// Decodes the private key in `document` for the `rsa` crate, after [`private_key`] has accepted
/// it.
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
