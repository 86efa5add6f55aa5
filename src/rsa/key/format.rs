//! Keys in PKCS#1 (RFC 8017, appendix A.1.2) and PKCS#8 (RFC 5208, RFC 5958), in DER and PEM (RFC 7468).

use alloc::vec;
use alloc::vec::Vec;

use pkcs1::RsaPrivateKeyRef;
use pkcs8::der::asn1::{AnyRef, OctetStringRef};
use pkcs8::der::{Decode, pem};
use pkcs8::{PrivateKeyInfoRef, SubjectPublicKeyInfo};

use super::components::RsaComponents;
use super::{KeyFault, KeyHandle, Restriction};
use crate::Error;
use crate::secret::Secret;

const PKCS1_LABEL: &str = "RSA PRIVATE KEY";
const PKCS8_LABEL: &str = "PRIVATE KEY";
const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";

impl KeyHandle {
    /// Reads a PKCS#8 document in DER: `PrivateKeyInfo` with an RSA key.
    ///
    /// A key of type id-RSASSA-PSS keeps its [`restriction`](Self::restriction). A key with more than two primes is
    /// used with its private exponent d. The octets stay the caller's, who wipes them.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, [`Error::Key`] with what is wrong otherwise.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, Error> {
        let fault = KeyFault::Der {
            expected: "PrivateKeyInfo",
        };
        let info = PrivateKeyInfoRef::from_der(der).map_err(|_| {
            Error::Key(if is_encrypted(der) {
                KeyFault::Encrypted
            } else {
                fault
            })
        })?;
        let restriction = Restriction::of(&info.algorithm).map_err(Error::Key)?;
        from_pkcs1(info.private_key.as_bytes(), restriction)
    }

    /// Reads a PKCS#8 document in PEM, `-----BEGIN PRIVATE KEY-----`; see [`from_pkcs8_der`](Self::from_pkcs8_der).
    ///
    /// # Errors
    ///
    /// Those of [`from_pkcs8_der`](Self::from_pkcs8_der).
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, Error> {
        Self::from_pkcs8_der(&decode(pem, PKCS8_LABEL)?)
    }

    /// Reads a PKCS#1 document in DER: `RSAPrivateKey`.
    ///
    /// A key with more than two primes is used with its private exponent d. The octets stay the caller's, who wipes
    /// them.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, [`Error::Key`] with what is wrong otherwise.
    pub fn from_pkcs1_der(der: &[u8]) -> Result<Self, Error> {
        from_pkcs1(der, Restriction::None)
    }

    /// Reads a PKCS#1 document in PEM, `-----BEGIN RSA PRIVATE KEY-----`; see
    /// [`from_pkcs1_der`](Self::from_pkcs1_der).
    ///
    /// # Errors
    ///
    /// Those of [`from_pkcs1_der`](Self::from_pkcs1_der).
    pub fn from_pkcs1_pem(pem: &str) -> Result<Self, Error> {
        Self::from_pkcs1_der(&decode(pem, PKCS1_LABEL)?)
    }

    /// Decrypts a PKCS#8 document in DER, `EncryptedPrivateKeyInfo`, and reads the key in it; see
    /// [`from_pkcs8_der`](Self::from_pkcs8_der). Supported is PBES2 (RFC 8018) with PBKDF2 or scrypt, HMAC-SHA-2 and
    /// AES-CBC, which is what `openssl pkcs8 -topk8` makes.
    ///
    /// The document says how much its derivation takes: scrypt may take `128 N r p` octets up to 1 GiB, 64 times
    /// what OpenSSL asks for, and PBKDF2 100 million iterations, which are many seconds.
    ///
    /// # Errors
    ///
    /// [`KeyFault::Decryption`] in [`Error::Key`], and those of [`from_pkcs8_der`](Self::from_pkcs8_der).
    #[cfg(feature = "encrypted")]
    #[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
    pub fn from_pkcs8_encrypted_der(
        der: &[u8],
        passphrase: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        let fault = KeyFault::Der {
            expected: "EncryptedPrivateKeyInfo",
        };
        let info =
            pkcs8::EncryptedPrivateKeyInfoRef::from_der(der).map_err(|_| Error::Key(fault))?;
        if !is_affordable(&info.encryption_algorithm) {
            return Err(Error::Key(KeyFault::Decryption));
        }
        // The document is wiped when it is dropped.
        let document = info
            .decrypt(passphrase)
            .map_err(|_| Error::Key(KeyFault::Decryption))?;
        Self::from_pkcs8_der(document.as_bytes())
    }

    /// Reads an encrypted PKCS#8 document in PEM, `-----BEGIN ENCRYPTED PRIVATE KEY-----`; see
    /// [`from_pkcs8_encrypted_der`](Self::from_pkcs8_encrypted_der).
    ///
    /// # Errors
    ///
    /// Those of [`from_pkcs8_encrypted_der`](Self::from_pkcs8_encrypted_der).
    #[cfg(feature = "encrypted")]
    #[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
    pub fn from_pkcs8_encrypted_pem(
        pem: &str,
        passphrase: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        Self::from_pkcs8_encrypted_der(&decode(pem, ENCRYPTED_LABEL)?, passphrase)
    }
}

fn from_pkcs1(der: &[u8], restriction: Restriction) -> Result<KeyHandle, Error> {
    let fault = KeyFault::Der {
        expected: "RSAPrivateKey",
    };
    let key = RsaPrivateKeyRef::from_der(der).map_err(|_| Error::Key(fault))?;
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

/// The DER in the PEM block of `text`, which must have the label `expected`.
fn decode(text: &str, expected: &'static str) -> Result<Secret<Vec<u8>>, Error> {
    // A key encrypted in the way that was usual before PKCS#8 has headers, which PEM proper has not.
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(Error::Key(KeyFault::Encrypted));
    }
    let fault = |_| Error::Key(KeyFault::Pem);
    let label = pem::decode_label(text.as_bytes()).map_err(fault)?;
    if label == ENCRYPTED_LABEL && expected != ENCRYPTED_LABEL {
        return Err(Error::Key(KeyFault::Encrypted));
    }
    if label != expected {
        return Err(Error::Key(KeyFault::Label { expected }));
    }
    // The DER is shorter than its encoding; in a buffer of ours it is wiped whatever happens.
    let mut der = Secret::new(vec![0; text.len()]);
    let (_, decoded) = pem::decode(text.as_bytes(), &mut der).map_err(fault)?;
    let len = decoded.len();
    der.truncate(len);
    Ok(der)
}

/// Whether a derivation by scrypt (RFC 7914, section 2) has a cost N that is a power of two, and takes at most 1 GiB. For
/// what is allocated is what the document says, and with N = 0 pkcs5 panics.
#[cfg(feature = "encrypted")]
fn is_affordable(encryption: &pkcs8::pkcs5::EncryptionScheme) -> bool {
    const MAX_OCTETS: u128 = 1 << 30;
    let Some(scrypt) = encryption.pbes2().and_then(|pbes2| pbes2.kdf.scrypt()) else {
        return true;
    };
    let n = scrypt.cost_parameter;
    let r_p = u128::from(scrypt.block_size) * u128::from(scrypt.parallelization);
    n.is_power_of_two() && 128 * u128::from(n) * r_p <= MAX_OCTETS
}

/// Whether this looks like an `EncryptedPrivateKeyInfo`, the SEQUENCE of an algorithm and an OCTET STRING: what a
/// SubjectPublicKeyInfo is but for the type of its string.
fn is_encrypted(der: &[u8]) -> bool {
    SubjectPublicKeyInfo::<AnyRef<'_>, &OctetStringRef>::from_der(der).is_ok()
}
