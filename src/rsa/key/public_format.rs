//! Public keys in X.509 (RFC 5280), PKCS#1 (RFC 8017, appendix A.1.1), PEM (RFC 7468) and JWK (RFC
//! 7518).

use base64ct::{Base64UrlUnpadded, Encoding};
use pkcs1::RsaPublicKeyRef;
use pkcs8::der::asn1::AnyRef;
use pkcs8::der::{self, Decode, Reader, SliceReader, Tag, TagNumber};
use pkcs8::spki::SubjectPublicKeyInfoRef;

use super::pem::{decode_pem, has_block};
use super::public::MAX_EXPONENT_BITS;
use super::{KeyFault, PublicKey, Restriction};
use crate::rsa::Error;

const SPKI_LABEL: &str = "PUBLIC KEY";
const PKCS1_LABEL: &str = "RSA PUBLIC KEY";
const CERTIFICATE_LABEL: &str = "CERTIFICATE";

impl PublicKey {
    /// Reads the first public key in `pem`.
    ///
    /// It may be a SubjectPublicKeyInfo (`-----BEGIN PUBLIC KEY-----`), PKCS#1 (`-----BEGIN RSA
    /// PUBLIC KEY-----`), or that of a certificate (`-----BEGIN CERTIFICATE-----`), which is [not
    /// verified](Self::from_certificate_der). Text and other blocks around it are skipped; see
    /// [`decode_pem`].
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        let text = pem.as_ref();
        let labels = [SPKI_LABEL, PKCS1_LABEL, CERTIFICATE_LABEL];
        let block = decode_pem(text, &labels).map_err(|error| match error {
            Error::Key(fault) => Error::PublicKey(fault),
            error => error,
        })?;
        match block {
            Some((SPKI_LABEL, der)) => Self::from_spki_der(&der),
            Some((PKCS1_LABEL, der)) => Self::from_pkcs1_der(&der),
            Some((_, der)) => Self::from_certificate_der(&der),
            None => Err(Error::PublicKey(match has_block(text) {
                true => KeyFault::Label {
                    expected: "PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE",
                },
                false => KeyFault::Pem,
            })),
        }
    }

    /// Reads a SubjectPublicKeyInfo in DER (RFC 5280, section 4.1). A key of type id-RSASSA-PSS
    /// keeps its [`restriction`](Self::restriction).
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_spki_der(der: &[u8]) -> Result<Self, Error> {
        from_spki(der).map_err(Error::PublicKey)
    }

    /// Reads an `RSAPublicKey` in DER (RFC 8017, appendix A.1.1).
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_pkcs1_der(der: &[u8]) -> Result<Self, Error> {
        from_pkcs1(der, Restriction::None).map_err(Error::PublicKey)
    }

    /// Reads the key of an X.509 certificate in DER (RFC 5280, section 4.1).
    ///
    /// Nothing else of the certificate is checked: not its signature, its dates, or its permitted
    /// uses. The caller must know that it is the right key.
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_certificate_der(der: &[u8]) -> Result<Self, Error> {
        let fault = Error::PublicKey(KeyFault::Der {
            expected: "Certificate",
        });
        let spki = spki_of_certificate(der).map_err(|_| fault)?;
        Self::from_spki_der(spki)
    }

    /// Prepares the key of a JSON Web Key (RFC 7518, section 6.3.1) from its parameters `n` and
    /// `e`, in base64url without padding.
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_jwk(n: &str, e: &str) -> Result<Self, Error> {
        let decode = |number: &str| {
            let fault = Error::PublicKey(KeyFault::Base64);
            Base64UrlUnpadded::decode_vec(number).map_err(|_| fault)
        };
        Self::from_numbers(&decode(n)?, &decode(e)?)
    }
}

fn from_spki(der: &[u8]) -> Result<PublicKey, KeyFault> {
    let fault = KeyFault::Der {
        expected: "SubjectPublicKeyInfo",
    };
    let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| fault)?;
    let restriction = Restriction::of(&info.algorithm)?;
    let key = info.subject_public_key.as_bytes().ok_or(fault)?;
    from_pkcs1(key, restriction)
}

fn from_pkcs1(der: &[u8], restriction: Restriction) -> Result<PublicKey, KeyFault> {
    let key = RsaPublicKeyRef::from_der(der).map_err(|_| KeyFault::Der {
        expected: "RSAPublicKey",
    })?;
    let (n, e) = (key.modulus.as_bytes(), key.public_exponent.as_bytes());
    PublicKey::restricted(n, e, MAX_EXPONENT_BITS, restriction)
}

/// Finds the SubjectPublicKeyInfo of a certificate: `SEQUENCE { SEQUENCE { [0] version, serial
/// number, signature, issuer, validity, subject, key, .. }, algorithm, signature }`.
fn spki_of_certificate(der: &[u8]) -> der::Result<&[u8]> {
    let mut reader = SliceReader::new(der)?;
    let spki = reader.sequence(|certificate: &mut SliceReader<'_>| {
        let spki = certificate.sequence(|to_be_signed: &mut SliceReader<'_>| {
            let tag = Tag::peek(to_be_signed)?;
            if tag.is_context_specific() && tag.number() == TagNumber(0) {
                to_be_signed.tlv_bytes()?;
            }
            // From the serial number to the subject.
            for _ in 0..5 {
                to_be_signed.tlv_bytes()?;
            }
            let spki = to_be_signed.tlv_bytes()?;
            to_be_signed.drain(to_be_signed.remaining_len())?;
            Ok::<_, der::Error>(spki)
        })?;
        for _ in ["algorithm", "signature"] {
            AnyRef::decode(certificate)?;
        }
        Ok::<_, der::Error>(spki)
    })?;
    reader.finish()?;
    Ok(spki)
}
