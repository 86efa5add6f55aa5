//! Encrypted keys: `EncryptedPrivateKeyInfo` (RFC 5958, section 3) with PBES2 (RFC 8018, section 6.2).

use alloc::vec::Vec;
use core::fmt;

use pkcs8::der::{self, Decode, ErrorKind, Tag, Tagged};
use pkcs8::pkcs5::pbes2::{self, Pbkdf2Params};
use pkcs8::pkcs5::{self, EncryptionScheme};
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{EncryptedPrivateKeyInfoRef, ObjectIdentifier};

use super::format::{ENCRYPTED_LABEL, decode, encryption_of, not_der};
use super::{KeyFault, KeyHandle};
use crate::rsa::Error;
use crate::secret::Secret;

impl KeyHandle {
    /// Decrypts a PKCS#8 document in DER by [`decrypt_pkcs8`], and reads the key in it; see
    /// [`from_pkcs8_der`](Self::from_pkcs8_der).
    ///
    /// # Errors
    ///
    /// Those of [`decrypt_pkcs8`] and [`from_pkcs8_der`](Self::from_pkcs8_der).
    #[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
    pub fn from_pkcs8_encrypted_der(
        der: &[u8],
        passphrase: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        Self::from_pkcs8_der(&decrypt_pkcs8(der, passphrase)?)
    }

    /// Reads an encrypted PKCS#8 document in PEM, `-----BEGIN ENCRYPTED PRIVATE KEY-----`, as leniently as
    /// [`from_pem`](Self::from_pem); see [`from_pkcs8_encrypted_der`](Self::from_pkcs8_encrypted_der).
    ///
    /// # Errors
    ///
    /// Those of [`decode_pem`](crate::rsa::decode_pem) and
    /// [`from_pkcs8_encrypted_der`](Self::from_pkcs8_encrypted_der).
    #[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
    pub fn from_pkcs8_encrypted_pem(
        pem: impl AsRef<[u8]>,
        passphrase: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        Self::from_pkcs8_encrypted_der(&decode(pem.as_ref(), ENCRYPTED_LABEL)?, passphrase)
    }
}

/// Decrypts a PKCS#8 document in DER, `EncryptedPrivateKeyInfo`: the `PrivateKeyInfo` in it. Supported is PBES2 (RFC 8018)
/// with PBKDF2 or scrypt, HMAC-SHA-2 and AES in CBC or GCM mode, which includes what `openssl pkcs8 -topk8` makes.
///
/// The document says how much its derivation takes: scrypt may take `128 N r p` octets up to 1 GiB, 64 times what
/// OpenSSL asks for, and PBKDF2 100 million iterations, which are many seconds.
///
/// # Errors
///
/// In [`Error::Key`]: [`KeyFault::Der`] if this is no such document, [`KeyFault::Structure`] if it is a key that is not
/// encrypted, [`KeyFault::Encryption`] if it is encrypted in another way, [`KeyFault::Derivation`] if its derivation is
/// impossible or takes more than that, and [`KeyFault::Passphrase`].
#[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
pub fn decrypt_pkcs8(der: &[u8], passphrase: impl AsRef<[u8]>) -> Result<Secret<Vec<u8>>, Error> {
    let info = EncryptedPrivateKeyInfoRef::from_der(der).map_err(|_| {
        Error::Key(match encryption_of(der).and_then(unsupported) {
            Some(oid) => KeyFault::Encryption(EncryptionAlgorithm(oid)),
            None => not_der(der, "EncryptedPrivateKeyInfo"),
        })
    })?;
    if !is_affordable(&info.encryption_algorithm) {
        return Err(Error::Key(KeyFault::Derivation));
    }
    // The document is wiped when it is dropped.
    let document = info
        .decrypt(passphrase)
        .map_err(|error| Error::Key(fault(error, &info.encryption_algorithm)))?;
    Ok(Secret::new(document.as_bytes().to_vec()))
}

/// Why a document that could be parsed was not decrypted.
fn fault(error: pkcs8::Error, scheme: &EncryptionScheme) -> KeyFault {
    let unsupported = |oid| KeyFault::Encryption(EncryptionAlgorithm(oid));
    match error {
        pkcs8::Error::EncryptedPrivateKey(error) => match error {
            pkcs5::Error::UnsupportedAlgorithm { oid } => unsupported(oid),
            pkcs5::Error::NoPbes1CryptSupport => unsupported(scheme.oid()),
            pkcs5::Error::AlgorithmParametersInvalid { .. } => KeyFault::Derivation,
            _ => KeyFault::Passphrase,
        },
        // Under a wrong passphrase one document in some hundreds is padded rightly, but no DER.
        _ => KeyFault::Passphrase,
    }
}

/// Whether a derivation by scrypt (RFC 7914, section 2) has a cost N that is a power of two, and takes at most 1 GiB. For
/// what is allocated is what the document says, and with N = 0 pkcs5 panics.
fn is_affordable(encryption: &EncryptionScheme) -> bool {
    const MAX_OCTETS: u128 = 1 << 30;
    let Some(pbes2) = encryption.pbes2() else {
        return true;
    };
    if let Some(pbkdf2) = pbes2.kdf.pbkdf2() {
        return pbkdf2.iteration_count <= Pbkdf2Params::MAX_ITERATION_COUNT;
    }
    let Some(scrypt) = pbes2.kdf.scrypt() else {
        return true;
    };
    let n = scrypt.cost_parameter;
    let r_p = u128::from(scrypt.block_size) * u128::from(scrypt.parallelization);
    n.is_power_of_two() && 128 * u128::from(n) * r_p <= MAX_OCTETS
}

/// The first part of an encryption that pkcs5 does not know: it parses no more than that.
fn unsupported(encryption: AlgorithmIdentifierRef<'_>) -> Option<ObjectIdentifier> {
    if encryption.oid != pbes2::PBES2_OID {
        return Some(encryption.oid);
    }
    let parts = encryption.parameters?.sequence(|parts| {
        let derivation = AlgorithmIdentifierRef::decode(parts)?;
        Ok::<_, der::Error>((derivation, AlgorithmIdentifierRef::decode(parts)?))
    });
    let (derivation, cipher) = parts.ok()?;
    let unknown = |error: der::Error| match error.kind() {
        ErrorKind::OidUnknown { oid } => Some(oid),
        _ => None,
    };
    if let Err(error) = pbes2::Kdf::try_from(derivation) {
        return unknown(error);
    }
    // The initial value is read first, which RC2 has within a structure.
    let has_octets = cipher
        .parameters
        .is_some_and(|parameters| parameters.tag() == Tag::OctetString);
    match pbes2::EncryptionScheme::try_from(cipher) {
        Err(error) if has_octets => unknown(error),
        Err(_) => Some(cipher.oid),
        Ok(_) => None,
    }
}

/// A way to encrypt keys that is not supported, or a part of one. Displayed by its name, or its object identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
pub struct EncryptionAlgorithm(ObjectIdentifier);

impl fmt::Display for EncryptionAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(oid, _)| *oid == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "the algorithm {}", self.0),
        }
    }
}

macro_rules! names {
    ($($oid:literal $name:literal)*) => {
        &[$((ObjectIdentifier::new_unwrap($oid), $name)),*]
    };
}

/// What OpenSSL and Java encrypt keys with, or did.
const NAMES: &[(ObjectIdentifier, &str)] = names! {
    // RFC 8018, appendices A.3, B.1.1 and B.2.
    "1.2.840.113549.1.5.1" "pbeWithMD2AndDES-CBC"
    "1.2.840.113549.1.5.3" "pbeWithMD5AndDES-CBC"
    "1.2.840.113549.1.5.4" "pbeWithMD2AndRC2-CBC"
    "1.2.840.113549.1.5.6" "pbeWithMD5AndRC2-CBC"
    "1.2.840.113549.1.5.10" "pbeWithSHA1AndDES-CBC"
    "1.2.840.113549.1.5.11" "pbeWithSHA1AndRC2-CBC"
    "1.2.840.113549.2.7" "HMAC-SHA-1"
    "1.2.840.113549.2.12" "HMAC-SHA-512/224"
    "1.2.840.113549.2.13" "HMAC-SHA-512/256"
    "1.3.14.3.2.7" "DES-CBC"
    "1.2.840.113549.3.2" "RC2-CBC"
    "1.2.840.113549.3.7" "DES-EDE3-CBC (3DES)"
    "1.2.840.113549.3.9" "RC5-CBC"
    // RFC 7292, appendix C.
    "1.2.840.113549.1.12.1.1" "pbeWithSHAAnd128BitRC4 (PKCS#12)"
    "1.2.840.113549.1.12.1.2" "pbeWithSHAAnd40BitRC4 (PKCS#12)"
    "1.2.840.113549.1.12.1.3" "pbeWithSHAAnd3-KeyTripleDES-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.4" "pbeWithSHAAnd2-KeyTripleDES-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.5" "pbeWithSHAAnd128BitRC2-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.6" "pbewithSHAAnd40BitRC2-CBC (PKCS#12)"
    // RFC 3657, section 3.
    "1.2.392.200011.61.1.1.1.2" "Camellia-128-CBC"
    "1.2.392.200011.61.1.1.1.3" "Camellia-192-CBC"
    "1.2.392.200011.61.1.1.1.4" "Camellia-256-CBC"
    // RFC 5794, appendix B.
    "1.2.410.200046.1.1.2" "ARIA-128-CBC"
    "1.2.410.200046.1.1.7" "ARIA-192-CBC"
    "1.2.410.200046.1.1.12" "ARIA-256-CBC"
    // RFC 4269, section 3.
    "1.2.410.200004.1.4" "SEED-CBC"
};
