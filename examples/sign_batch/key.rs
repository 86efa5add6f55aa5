//! The private key: from a PEM file, or fresh.

use std::fs;
use std::path::Path;

use batch_modexp::secret::Secret;
use crypto_bigint::BoxedUint;
use getrandom::SysRng;
use indicatif::ProgressBar;
use rsa::RsaPrivateKey;
use rsa::pkcs1;
use rsa::pkcs8::der::asn1::UintRef;
use rsa::pkcs8::der::{Decode, SecretDocument};
use rsa::pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use rsa::rand_core::UnwrapErr;
use rsa::traits::PrivateKeyParts;

use super::failure::Failure;

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Reads a private key in PEM, PKCS#1 or PKCS#8.
pub fn load(path: &Path) -> Result<RsaPrivateKey, Failure> {
    let bytes = Secret::new(fs::read(path).map_err(|error| Failure::unreadable(path, &error))?);
    parse(&bytes).map_err(|what| Failure::bad_key(Some(path), &what))
}

/// Makes a key of `bits` bits.
pub fn generate(bits: u32, quiet: bool) -> Result<RsaPrivateKey, Failure> {
    let progress = if quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    progress.set_message(format!("generating a {bits}-bit key"));
    progress.enable_steady_tick(std::time::Duration::from_millis(100));
    let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), bits as usize);
    progress.finish_and_clear();
    key.map_err(|error| Failure::Work(format!("cannot generate a key: {error}")))
}

fn parse(bytes: &[u8]) -> Result<RsaPrivateKey, String> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| Some(&text[text.find("-----BEGIN ")?..]));
    let text = text.ok_or("not a PEM file; convert a DER key with `openssl pkey -inform DER`")?;
    let label = text["-----BEGIN ".len()..]
        .split("-----")
        .next()
        .unwrap_or_default();
    match label {
        "RSA PRIVATE KEY" if text.contains("Proc-Type: 4,ENCRYPTED") => Err(encrypted()),
        "ENCRYPTED PRIVATE KEY" => Err(encrypted()),
        "RSA PRIVATE KEY" => from_pkcs1(decode(text)?.as_bytes()),
        "PRIVATE KEY" => from_pkcs8(decode(text)?.as_bytes()),
        "PUBLIC KEY" | "RSA PUBLIC KEY" | "CERTIFICATE" => Err(format!(
            "this is a {}, signing needs the private key",
            label.to_lowercase()
        )),
        "" => Err("the PEM header is damaged".into()),
        other => Err(format!(
            "cannot use a PEM file of type {other:?}; an RSA private key is needed"
        )),
    }
}

fn encrypted() -> String {
    "the key is encrypted; decrypt it first, for example with `openssl pkey -in KEY -out PLAIN`"
        .into()
}

fn decode(text: &str) -> Result<SecretDocument, String> {
    let (_, document) =
        SecretDocument::from_pem(text).map_err(|error| format!("damaged PEM: {error}"))?;
    Ok(document)
}

fn from_pkcs8(der: &[u8]) -> Result<RsaPrivateKey, String> {
    let info =
        PrivateKeyInfoRef::from_der(der).map_err(|error| format!("damaged PKCS#8: {error}"))?;
    if info.algorithm.oid != RSA_ENCRYPTION {
        return Err(format!(
            "this is not an RSA key (algorithm {})",
            info.algorithm.oid
        ));
    }
    from_pkcs1(info.private_key.as_bytes())
}

fn from_pkcs1(der: &[u8]) -> Result<RsaPrivateKey, String> {
    let parts = pkcs1::RsaPrivateKeyRef::from_der(der)
        .map_err(|error| format!("damaged PKCS#1: {error}"))?;
    if parts.version() != pkcs1::Version::TwoPrime {
        return Err("keys with more than two primes cannot be read from PEM".into());
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
