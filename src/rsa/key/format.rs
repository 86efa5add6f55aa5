//! Keys in PKCS#1 (RFC 8017, appendix A.1.2) and PKCS#8 (RFC 5208, RFC 5958), in DER and PEM (RFC
//! 7468).

use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use pkcs1::RsaPrivateKeyRef;
use pkcs8::der::Decode;
use pkcs8::der::asn1::{AnyRef, OctetStringRef};
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{PrivateKeyInfoRef, SubjectPublicKeyInfo};

use super::components::RsaComponents;
use super::pem::{decode_pem, has_block};
use super::{KeyFault, KeyHandle, Restriction};
use crate::rsa::Error;

const PKCS1_LABEL: &str = "RSA PRIVATE KEY";
const PKCS8_LABEL: &str = "PRIVATE KEY";
pub(super) const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";

impl KeyHandle {
    /// Reads the first private key in `pem`: PKCS#8, `-----BEGIN PRIVATE KEY-----`, or PKCS#1,
    /// `-----BEGIN RSA PRIVATE KEY-----`.
    ///
    /// Text and other blocks, such as certificates, are skipped. Line lengths and white space do
    /// not matter; see [`decode_pem`](crate::rsa::decode_pem). A `Secret<Vec<u8>>` or
    /// `Secret<String>` can be passed by reference. The caller keeps the text and must wipe it.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault. For `-----BEGIN ENCRYPTED PRIVATE KEY-----` that is [`KeyFault::Encrypted`]; read
    /// it with `from_pkcs8_encrypted_pem`.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        let text = pem.as_ref();
        match decode_pem(text, &[PKCS8_LABEL, PKCS1_LABEL])? {
            Some((PKCS8_LABEL, der)) => Self::from_pkcs8_der(&der),
            Some((_, der)) => Self::from_pkcs1_der(&der),
            None => Err(Error::Key(no_block(text, "PRIVATE KEY or RSA PRIVATE KEY"))),
        }
    }

    /// Reads a PKCS#8 document in DER: `PrivateKeyInfo` with an RSA key.
    ///
    /// A key of type id-RSASSA-PSS keeps its [`restriction`](Self::restriction). A key with more
    /// than two primes uses its private exponent d. The caller keeps the octets and must wipe them.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, Error> {
        let fault = KeyFault::Der {
            expected: "PrivateKeyInfo",
        };
        let info = PrivateKeyInfoRef::from_der(der).map_err(|_| {
            Error::Key(if encryption_of(der).is_some() {
                KeyFault::Encrypted
            } else if RsaPrivateKeyRef::from_der(der).is_ok() {
                KeyFault::Structure {
                    found: "RSAPrivateKey",
                }
            } else {
                fault
            })
        })?;
        let restriction = Restriction::of(&info.algorithm).map_err(Error::Key)?;
        from_pkcs1(info.private_key.as_bytes(), restriction)
    }

    /// Reads a PKCS#8 document in PEM, `-----BEGIN PRIVATE KEY-----`; see
    /// [`from_pkcs8_der`](Self::from_pkcs8_der).
    ///
    /// # Errors
    ///
    /// Those of [`from_pkcs8_der`](Self::from_pkcs8_der).
    pub fn from_pkcs8_pem(pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        Self::from_pkcs8_der(&decode(pem.as_ref(), PKCS8_LABEL)?)
    }

    /// Reads a PKCS#1 document in DER: `RSAPrivateKey`.
    ///
    /// A key with more than two primes uses its private exponent d. The caller keeps the octets and
    /// must wipe them.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault.
    pub fn from_pkcs1_der(der: &[u8]) -> Result<Self, Error> {
        from_pkcs1(der, Restriction::None)
    }

    /// Reads a PKCS#1 document in PEM, `-----BEGIN RSA PRIVATE KEY-----`; see
    /// [`from_pkcs1_der`](Self::from_pkcs1_der).
    ///
    /// # Errors
    ///
    /// Those of [`from_pkcs1_der`](Self::from_pkcs1_der).
    pub fn from_pkcs1_pem(pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        Self::from_pkcs1_der(&decode(pem.as_ref(), PKCS1_LABEL)?)
    }
}

fn from_pkcs1(der: &[u8], restriction: Restriction) -> Result<KeyHandle, Error> {
    let key =
        RsaPrivateKeyRef::from_der(der).map_err(|_| Error::Key(not_der(der, "RSAPrivateKey")))?;
    let components = RsaComponents::new(
        key.modulus.as_bytes(),
        key.public_exponent.as_bytes(),
        key.private_exponent.as_bytes(),
    );
    let components = if key.other_prime_infos.is_some() {
        components
    } else {
        components
            .primes(key.prime1.as_bytes(), key.prime2.as_bytes())
            .dp(key.exponent1.as_bytes())
            .dq(key.exponent2.as_bytes())
            .qinv(key.coefficient.as_bytes())
    };
    KeyHandle::restricted(&components, restriction)
}

/// Decodes the first PEM block of `text` with the label `expected`.
pub(super) fn decode(text: &[u8], expected: &'static str) -> Result<Secret<Vec<u8>>, Error> {
    if let Some((_, der)) = decode_pem(text, &[expected])? {
        return Ok(der);
    }
    Err(Error::Key(no_block(text, expected)))
}

/// The reason why there is no block with the label `expected`.
fn no_block(text: &[u8], expected: &'static str) -> KeyFault {
    match decode_pem(text, &[ENCRYPTED_LABEL]) {
        Ok(Some(_)) => KeyFault::Encrypted,
        _ if has_block(text) => KeyFault::Label { expected },
        _ => KeyFault::Pem,
    }
}

/// The algorithm of an `EncryptedPrivateKeyInfo`. It is the SEQUENCE of an algorithm and an OCTET
/// STRING, so it parses like a SubjectPublicKeyInfo with another string type.
pub(super) fn encryption_of(der: &[u8]) -> Option<AlgorithmIdentifierRef<'_>> {
    let info = SubjectPublicKeyInfo::<AnyRef<'_>, &OctetStringRef>::from_der(der).ok()?;
    Some(info.algorithm)
}

/// The fault of `der`, which is not the DER of `expected`.
pub(super) fn not_der(der: &[u8], expected: &'static str) -> KeyFault {
    if PrivateKeyInfoRef::from_der(der).is_ok() {
        KeyFault::Structure {
            found: "PrivateKeyInfo",
        }
    } else {
        KeyFault::Der { expected }
    }
}
