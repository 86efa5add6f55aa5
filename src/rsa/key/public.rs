//! The public half of a key: its numbers, and SubjectPublicKeyInfo (RFC 5280, section 4.1; RFC 4055).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crypto_bigint::BoxedUint;
use pkcs1::{RsaPublicKeyRef, UintRef};
use pkcs8::der::asn1::BitStringRef;
use pkcs8::der::{self, Encode, pem};
use pkcs8::spki::{self, Document, EncodePublicKey, SubjectPublicKeyInfoRef};

use super::KeyHandle;
use crate::rsa::octets::limbs_to_octets;

/// The public half of a key by itself: its SubjectPublicKeyInfo, which
/// [`public_key_der`](KeyHandle::public_key_der) describes.
///
/// The traits of spki (`pkcs8::EncodePublicKey`) give it to other libraries, and so do its octets:
/// `rsa::PublicKey::from_public_key_der(key.as_der())`.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn as_der(&self) -> &[u8] {
        &self.0
    }
}

impl EncodePublicKey for PublicKey {
    fn to_public_key_der(&self) -> Result<Document, spki::Error> {
        Ok(Document::try_from(self.as_der())?)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey(")?;
        self.0
            .iter()
            .try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

impl KeyHandle {
    /// The public key, which may outlive the private one.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.public_key_der())
    }

    /// The modulus n, big-endian, as many bytes as [`size`](Self::size).
    #[must_use]
    pub fn n(&self) -> Vec<u8> {
        octets(self.0.n.modulus().as_ref(), self.0.n_bits)
    }

    /// The public exponent e, big-endian, without leading zeros.
    #[must_use]
    pub fn e(&self) -> Vec<u8> {
        octets(&self.0.e, self.0.e_bits)
    }

    /// The public key as SubjectPublicKeyInfo in DER. A key that is restricted to RSASSA-PSS says so here too.
    #[must_use]
    pub fn public_key_der(&self) -> Vec<u8> {
        self.encode_public_key()
            .unwrap_or_else(|_| unreachable!("numbers of at most 8192 bits can be encoded"))
    }

    /// The public key as SubjectPublicKeyInfo in PEM, `-----BEGIN PUBLIC KEY-----`, with line feeds.
    #[must_use]
    pub fn public_key_pem(&self) -> String {
        pem::encode_string("PUBLIC KEY", pem::LineEnding::LF, &self.public_key_der())
            .unwrap_or_else(|_| unreachable!("a few kilobytes can be encoded"))
    }

    fn encode_public_key(&self) -> Result<Vec<u8>, der::Error> {
        let (n, e) = (self.n(), self.e());
        let key = RsaPublicKeyRef {
            modulus: UintRef::new(&n)?,
            public_exponent: UintRef::new(&e)?,
        };
        let key = key.to_der()?;
        self.0.restriction.with_algorithm(|algorithm| {
            SubjectPublicKeyInfoRef {
                algorithm,
                subject_public_key: BitStringRef::from_bytes(&key)?,
            }
            .to_der()
        })
    }
}

/// A public number of `bits` bits.
fn octets(number: &BoxedUint, bits: u32) -> Vec<u8> {
    limbs_to_octets(number.as_limbs(), bits.div_ceil(8) as usize).to_vec()
}
