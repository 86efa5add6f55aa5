//! Public keys, prepared once for any number of calls.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};

use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use pkcs1::{RsaPublicKeyRef, UintRef};
use pkcs8::der::asn1::{Any, BitStringRef};
use pkcs8::der::{self, Encode, pem};
use pkcs8::spki::{
    self, AlgorithmIdentifierOwned, Document, EncodePublicKey, SubjectPublicKeyInfo,
};
use sha2::digest::const_oid::AssociatedOid;

use super::restriction::pss_algorithm;
use super::{KeyFault, KeyHandle, KeyParts, Restriction, check};
use crate::rsa::limbs::limbs_to_octets;
use crate::rsa::{Error, MAX_PUBLIC_BITS};

/// The longest public exponent that is accepted by default, in bits.
pub(super) const MAX_EXPONENT_BITS: u32 = 64;

/// A public key with its precomputed values.
///
/// It comes from X.509 (SubjectPublicKeyInfo or a certificate), PKCS#1, numbers, a [`KeyHandle`],
/// or a key of the `rsa` crate.
///
/// n is odd and has 1024 to 16,384 bits; e is odd, at least 3 and below n. By default e has at most
/// 64 bits, so that a stranger's key cannot stall a batch;
/// [`from_numbers_with_exponent_bits`](Self::from_numbers_with_exponent_bits) raises the limit.
/// Whether n has two prime factors is not checked.
///
/// Clones share the key. Other libraries can read it by the traits of spki
/// (`pkcs8::EncodePublicKey`), or from its octets:
/// `rsa::PublicKey::from_public_key_der(key.as_der())`.
///
/// ```
/// use batch_modexp::rsa::PublicKey;
///
/// let key = PublicKey::from_pem(std::fs::read("tests/keys/rsa2048-public.pem")?)?;
/// assert_eq!((key.bits(), key.size(), key.e()), (2048, 256, vec![1, 0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PublicKey(Arc<PublicParts>);

struct PublicParts {
    parts: KeyParts,
    /// SubjectPublicKeyInfo.
    der: Vec<u8>,
}

impl PublicKey {
    /// Prepares the key with modulus `n` and public exponent `e`, big-endian; leading zeros are
    /// allowed.
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_numbers(n: &[u8], e: &[u8]) -> Result<Self, Error> {
        Self::from_numbers_with_exponent_bits(n, e, MAX_EXPONENT_BITS)
    }

    /// Prepares a key as [`from_numbers`](Self::from_numbers), with an exponent of up to
    /// `max_exponent_bits` bits. The time of an operation is proportional to the length of e.
    ///
    /// # Errors
    ///
    /// [`Error::PublicKey`] with the fault.
    pub fn from_numbers_with_exponent_bits(
        n: &[u8],
        e: &[u8],
        max_exponent_bits: u32,
    ) -> Result<Self, Error> {
        Self::restricted(n, e, max_exponent_bits, Restriction::None).map_err(Error::PublicKey)
    }

    pub(super) fn restricted(
        n: &[u8],
        e: &[u8],
        max_exponent_bits: u32,
        restriction: Restriction,
    ) -> Result<Self, KeyFault> {
        let (n, n_bits) = check::read_modulus(n, MAX_PUBLIC_BITS)
            .map_err(|bits| KeyFault::PublicKeySize { bits })?;
        let n: Odd<BoxedUint> = n.ok_or(KeyFault::EvenModulus)?;
        let e = check::public_exponent(e, &n)?;
        let bits = e.bit_width_vartime();
        if bits > max_exponent_bits {
            return Err(KeyFault::LongPublicExponent {
                bits,
                max_bits: max_exponent_bits,
            });
        }
        Ok(Self::of(KeyParts {
            n: BoxedMontyParams::new_vartime(n),
            n_bits,
            e,
            restriction,
            private: None,
        }))
    }

    fn of(parts: KeyParts) -> Self {
        let der = parts.to_spki(parts.restriction.algorithm());
        Self(Arc::new(PublicParts { parts, der }))
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.parts().n_bits
    }

    /// The length of the modulus and of a signature or ciphertext, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.parts().n_octets()
    }

    /// The modulus n, big-endian, as many bytes as [`size`](Self::size).
    #[must_use]
    pub fn n(&self) -> Vec<u8> {
        self.parts().n_to_octets()
    }

    /// The public exponent e, big-endian, without leading zeros.
    #[must_use]
    pub fn e(&self) -> Vec<u8> {
        self.parts().e_to_octets()
    }

    /// The schemes that the key may be used for.
    #[must_use]
    pub fn restriction(&self) -> Restriction {
        self.parts().restriction
    }

    /// The key as SubjectPublicKeyInfo in DER (RFC 5280, section 4.1). It includes a restriction to
    /// RSASSA-PSS.
    #[must_use]
    pub fn as_der(&self) -> &[u8] {
        &self.0.der
    }

    /// The key as SubjectPublicKeyInfo in PEM, `-----BEGIN PUBLIC KEY-----`, with line feeds.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::encode_string("PUBLIC KEY", pem::LineEnding::LF, self.as_der())
            .unwrap_or_else(|_| unreachable!("a few kilobytes can be encoded"))
    }

    /// The key as SubjectPublicKeyInfo in DER of the type id-RSASSA-PSS, whatever its restriction.
    /// Identifiers of the hash function `D` have no parameters.
    pub(in crate::rsa) fn to_pss_der<D: AssociatedOid>(&self, salt_len: u8) -> Vec<u8> {
        self.parts().to_spki(pss_algorithm(D::OID, None, salt_len))
    }

    pub(in crate::rsa) fn parts(&self) -> &KeyParts {
        &self.0.parts
    }
}

/// Keys are equal if their SubjectPublicKeyInfos are.
impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_der() == other.as_der()
    }
}

impl Eq for PublicKey {}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_der().hash(state);
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
        self.as_der()
            .iter()
            .try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

impl From<&KeyHandle> for PublicKey {
    fn from(key: &KeyHandle) -> Self {
        key.public_key()
    }
}

impl KeyHandle {
    /// The public key, which may outlive the private one.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        let parts = self.parts();
        PublicKey::of(KeyParts {
            n: parts.n.clone(),
            n_bits: parts.n_bits,
            e: parts.e.clone(),
            restriction: parts.restriction,
            private: None,
        })
    }

    /// The modulus n, big-endian, as many bytes as [`size`](Self::size).
    #[must_use]
    pub fn n(&self) -> Vec<u8> {
        self.parts().n_to_octets()
    }

    /// The public exponent e, big-endian, without leading zeros.
    #[must_use]
    pub fn e(&self) -> Vec<u8> {
        self.parts().e_to_octets()
    }

    /// The public key as SubjectPublicKeyInfo in DER. It includes a restriction to RSASSA-PSS.
    #[must_use]
    pub fn public_key_der(&self) -> Vec<u8> {
        self.public_key().as_der().to_vec()
    }

    /// The public key as SubjectPublicKeyInfo in PEM, `-----BEGIN PUBLIC KEY-----`, with line
    /// feeds.
    #[must_use]
    pub fn public_key_pem(&self) -> String {
        self.public_key().to_pem()
    }
}

impl KeyParts {
    fn n_to_octets(&self) -> Vec<u8> {
        octets(self.n.modulus().as_ref(), self.n_bits)
    }

    fn e_to_octets(&self) -> Vec<u8> {
        octets(&self.e, self.e.bit_width_vartime())
    }

    /// Encodes a SubjectPublicKeyInfo (RFC 5280, section 4.1; RFC 4055).
    fn to_spki(&self, algorithm: AlgorithmIdentifierOwned) -> Vec<u8> {
        let encode = || -> der::Result<Vec<u8>> {
            let key = RsaPublicKeyRef {
                modulus: UintRef::new(&self.n_to_octets())?,
                public_exponent: UintRef::new(&self.e_to_octets())?,
            }
            .to_der()?;
            let subject_public_key = BitStringRef::from_bytes(&key)?;
            SubjectPublicKeyInfo::<Any, _> {
                algorithm,
                subject_public_key,
            }
            .to_der()
        };
        encode().expect("a public key can be encoded")
    }
}

/// The octets of a public number of `bits` bits.
fn octets(number: &BoxedUint, bits: u32) -> Vec<u8> {
    limbs_to_octets(number.as_limbs(), bits.div_ceil(8) as usize).to_vec()
}
