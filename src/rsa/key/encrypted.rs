//! Encrypted keys: `EncryptedPrivateKeyInfo` (RFC 5958, section 3) with PBES2 (RFC 8018, section
//! 6.2).

use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use pkcs8::der::{self, Decode, ErrorKind, Tag, Tagged};
use pkcs8::pkcs5::pbes2::{self, Pbkdf2Params};
use pkcs8::pkcs5::{self, EncryptionScheme};
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{EncryptedPrivateKeyInfoRef, ObjectIdentifier};

use super::encryption::EncryptionAlgorithm;
use super::format::{ENCRYPTED_LABEL, decode, encryption_of, not_der};
use super::{KeyFault, KeyHandle};
use crate::rsa::Error;

impl KeyHandle {
    /// Decrypts a PKCS#8 document in DER with [`decrypt_pkcs8`], and reads the key in it; see
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

    /// Reads an encrypted PKCS#8 document in PEM, `-----BEGIN ENCRYPTED PRIVATE KEY-----`, as
    /// leniently as [`from_pem`](Self::from_pem); see
    /// [`from_pkcs8_encrypted_der`](Self::from_pkcs8_encrypted_der).
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

/// Decrypts a PKCS#8 document in DER: returns the `PrivateKeyInfo` in an `EncryptedPrivateKeyInfo`.
///
/// Supports PBES2 (RFC 8018) with PBKDF2 or scrypt, HMAC-SHA-2, and AES in CBC or GCM mode. That
/// includes the output of `openssl pkcs8 -topk8`.
///
/// The document sets the cost of the key derivation. For scrypt the limit is `128 N r p` octets of
/// 1 GiB, 64 times the cost that OpenSSL sets. For PBKDF2 it is 100 million iterations, which take
/// many seconds.
///
/// # Errors
///
/// In [`Error::Key`]:
///
/// * [`KeyFault::Der`] if this is no such document;
///
/// * [`KeyFault::Structure`] if it is a key that is not encrypted;
///
/// * [`KeyFault::Encryption`] if the encryption is not supported;
///
/// * [`KeyFault::Derivation`] if the key derivation is invalid or above the limits;
///
/// * [`KeyFault::Passphrase`] if the passphrase is wrong or the octets are damaged.
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
    // `document` is wiped on drop.
    let document = info
        .decrypt(passphrase)
        .map_err(|error| Error::Key(fault(error, &info.encryption_algorithm)))?;
    Ok(Secret::new(document.as_bytes().to_vec()))
}

/// The fault of a document that was parsed but not decrypted.
fn fault(error: pkcs8::Error, scheme: &EncryptionScheme) -> KeyFault {
    let unsupported = |oid| KeyFault::Encryption(EncryptionAlgorithm(oid));
    match error {
        pkcs8::Error::EncryptedPrivateKey(error) => match error {
            pkcs5::Error::UnsupportedAlgorithm { oid } => unsupported(oid),
            pkcs5::Error::NoPbes1CryptSupport => unsupported(scheme.oid()),
            pkcs5::Error::AlgorithmParametersInvalid { .. } => KeyFault::Derivation,
            _ => KeyFault::Passphrase,
        },
        // With a wrong passphrase, one document in some hundreds has valid padding, but is no DER.
        _ => KeyFault::Passphrase,
    }
}

/// Whether a key derivation is within the limits. For scrypt (RFC 7914, section 2) the cost N must
/// be a power of two and take at most 1 GiB: pkcs5 allocates what the document asks for, and panics
/// if N = 0.
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

/// The first part of an encryption that pkcs5 does not know, at which it stops parsing.
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
    // pkcs5 reads the initial value first, which RC2 has inside a structure.
    let has_octets = cipher
        .parameters
        .is_some_and(|parameters| parameters.tag() == Tag::OctetString);
    match pbes2::EncryptionScheme::try_from(cipher) {
        Err(error) if has_octets => unknown(error),
        Err(_) => Some(cipher.oid),
        Ok(_) => None,
    }
}
