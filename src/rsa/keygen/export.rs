//! Generated keys and their encodings.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::secret::Secret;
use crypto_bigint::{BoxedUint, Limb};
use pkcs1::{RsaPrivateKeyRef, UintRef};
use pkcs8::PrivateKeyInfoRef;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{self, Encode, pem};

use crate::rsa::key::KeyHandle;
use crate::rsa::limbs::i2osp;

/// A generated key: a [`KeyHandle`] to sign and decrypt with, and its encodings.
///
/// Its own copies of the primes and of d are wiped on drop, the secrets of the handle with its last
/// clone. Encodings are in buffers that are wiped. Their length reveals the leading zero octets of
/// the numbers in them. `Debug` shows only the length of the modulus.
pub struct GeneratedKey {
    pub(super) key: KeyHandle,
    pub(super) primes: [Secret<BoxedUint>; 2],
    /// The private exponent, big-endian, as long as n.
    pub(super) d: Secret<Vec<u8>>,
}

impl GeneratedKey {
    /// The key, ready for use.
    #[must_use]
    pub fn key(&self) -> &KeyHandle {
        &self.key
    }

    /// The primes p and q, of equal length and 3 modulo 4.
    ///
    /// For other uses of the modulus, such as Paillier encryption. They are wiped on drop;
    /// copies are the caller's to wipe.
    #[must_use]
    pub fn primes(&self) -> [&BoxedUint; 2] {
        self.primes.each_ref().map(|prime| &**prime)
    }

    /// The key in PKCS#8, in DER: `PrivateKeyInfo` (RFC 5208, section 5).
    #[must_use]
    pub fn to_pkcs8_der(&self) -> Secret<Vec<u8>> {
        let key = self.to_pkcs1_der();
        let encode = || {
            let key = OctetStringRef::new(&key)?;
            PrivateKeyInfoRef::new(pkcs1::ALGORITHM_ID, key).to_der()
        };
        encoded(encode())
    }

    /// The key in PKCS#8, in PEM: `-----BEGIN PRIVATE KEY-----`, with line feeds.
    #[must_use]
    pub fn to_pkcs8_pem(&self) -> Secret<String> {
        let der = self.to_pkcs8_der();
        let text = pem::encode_string("PRIVATE KEY", pem::LineEnding::LF, &der);
        Secret::new(text.unwrap_or_else(|_| unreachable!("a few kilobytes can be encoded")))
    }

    /// The key in PKCS#1, in DER: `RSAPrivateKey` (RFC 8017, appendix A.1.2).
    #[must_use]
    pub fn to_pkcs1_der(&self) -> Secret<Vec<u8>> {
        encoded(self.encode())
    }

    fn encode(&self) -> der::Result<Vec<u8>> {
        let crt = self.key.parts().crt();
        let (n, e) = (self.key.n(), self.key.e());
        let octets = |number: &BoxedUint| i2osp(number.as_limbs());
        // Exponents are odd and stored less 1.
        let exponent = |less_1: &BoxedUint| {
            let mut number = Secret::new(less_1.clone());
            let lowest = &mut number.as_mut_limbs()[0];
            *lowest = Limb(lowest.0 | 1);
            octets(&number)
        };
        let [p, q] = self.primes().map(octets);
        let (dp, dq) = (exponent(&crt.dp_less_1), exponent(&crt.dq_less_1));
        let qinv = octets(&crt.qinv);
        RsaPrivateKeyRef {
            modulus: UintRef::new(&n)?,
            public_exponent: UintRef::new(&e)?,
            private_exponent: UintRef::new(&self.d)?,
            prime1: UintRef::new(&p)?,
            prime2: UintRef::new(&q)?,
            exponent1: UintRef::new(&dp)?,
            exponent2: UintRef::new(&dq)?,
            coefficient: UintRef::new(&qinv)?,
            other_prime_infos: None,
        }
        .to_der()
    }
}

impl fmt::Debug for GeneratedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedKey")
            .field("bits", &self.key.bits())
            .finish_non_exhaustive()
    }
}

fn encoded(der: der::Result<Vec<u8>>) -> Secret<Vec<u8>> {
    Secret::new(der.unwrap_or_else(|_| unreachable!("a few kilobytes can be encoded")))
}
