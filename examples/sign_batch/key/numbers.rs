//! From DER to the numbers of a key.

use batch_modexp::secret::Secret;
use crypto_bigint::BoxedUint;
use rsa::pkcs1;
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::asn1::UintRef;
use rsa::pkcs8::der::{Decode, Error};
use rsa::pkcs8::spki::SubjectPublicKeyInfoRef;
use rsa::traits::PrivateKeyParts;
use rsa::{RsaPrivateKey, RsaPublicKey};

use super::container::{Document, Kind};
use super::restriction;
use crate::options::SchemeOptions;

/// The private key in `document`, which holds one, not encrypted.
pub fn private_key(document: &Document, scheme: SchemeOptions) -> Result<RsaPrivateKey, String> {
    let der = document.der.as_bytes();
    match document.kind {
        Kind::Pkcs8 => {
            let info = PrivateKeyInfoRef::from_der(der).map_err(damaged("PKCS#8"))?;
            restriction::check(&info.algorithm, scheme)?;
            private_from_pkcs1(info.private_key.as_bytes())
        }
        _ => private_from_pkcs1(der),
    }
}

/// The public key in `document`, which is not encrypted, or that of the private key in it.
pub fn public_key(document: &Document, scheme: SchemeOptions) -> Result<RsaPublicKey, String> {
    let der = document.der.as_bytes();
    match document.kind {
        Kind::Spki => {
            let info = SubjectPublicKeyInfoRef::from_der(der).map_err(damaged("public key"))?;
            restriction::check(&info.algorithm, scheme)?;
            let bits = info.subject_public_key.as_bytes();
            public_from_pkcs1(bits.ok_or("damaged public key")?)
        }
        Kind::Pkcs1Public => public_from_pkcs1(der),
        _ => Ok(private_key(document, scheme)?.to_public_key()),
    }
}

fn public_from_pkcs1(der: &[u8]) -> Result<RsaPublicKey, String> {
    let parts = pkcs1::RsaPublicKeyRef::from_der(der).map_err(damaged("public key"))?;
    RsaPublicKey::try_from(parts).map_err(|_| {
        "the public key cannot be used: 1024 to 8192 bits are expected, and an odd exponent".into()
    })
}

fn private_from_pkcs1(der: &[u8]) -> Result<RsaPrivateKey, String> {
    let parts = pkcs1::RsaPrivateKeyRef::from_der(der).map_err(damaged("PKCS#1"))?;
    if parts.version() != pkcs1::Version::TwoPrime {
        return Err("keys with more than two primes cannot be read".into());
    }
    let crt_values = [parts.exponent1, parts.exponent2, parts.coefficient].map(number);
    let mismatch = "the parts of the key do not belong together; export it again";
    let key = RsaPrivateKey::try_from(parts).map_err(|_| mismatch)?;
    // rsa computes these three itself. If the file has others, then something has damaged it.
    let qinv = key.crt_coefficient().map(Secret::new);
    let expected = [key.dp(), key.dq(), qinv.as_deref()];
    if crt_values
        .iter()
        .zip(expected)
        .any(|(found, expected)| expected != Some(&**found))
    {
        return Err(mismatch.into());
    }
    Ok(key)
}

fn number(value: UintRef<'_>) -> Secret<BoxedUint> {
    Secret::new(BoxedUint::from_be_slice_vartime(value.as_bytes()))
}

fn damaged(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("damaged {what}: {error}")
}
