#![doc = include_str!("../README.md")]

use std::sync::Arc;

use batch_modexp::queue::{BatchQueue, QueueError};
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle, Restriction};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{OtherError, SignatureAlgorithm, SignatureScheme};

/// An RSA key of a TLS server or client that signs through a queue.
///
/// It signs with RSASSA-PSS (`rsa_pss_rsae_*` of RFC 8446, section 4.2.3) and, in TLS 1.2, also
/// RSASSA-PKCS1-v1_5. Hash functions are SHA-256, SHA-384 and SHA-512. It takes the first of these
/// schemes that the peer offers and the key is long enough for.
#[derive(Clone, Debug)]
pub struct QueueSigningKey {
    queue: BatchQueue,
    key: KeyHandle,
}

impl QueueSigningKey {
    /// Creates a key that signs through `queue`, which other keys may share.
    ///
    /// # Errors
    ///
    /// [`Error::KeyRestricted`](batch_modexp::rsa::Error::KeyRestricted) for a key restricted to
    /// RSASSA-PSS: its certificate would be too, and rustls does not support the TLS schemes for
    /// that (`rsa_pss_pss_*`).
    pub fn new(queue: &BatchQueue, key: &KeyHandle) -> Result<Self, batch_modexp::rsa::Error> {
        match key.restriction() {
            Restriction::None => Ok(Self {
                queue: queue.clone(),
                key: key.clone(),
            }),
            restriction => Err(batch_modexp::rsa::Error::KeyRestricted {
                index: 0,
                restriction,
            }),
        }
    }

    /// Joins the key with its certificate chain, the key's own first, for
    /// [`SingleCertAndKey`](rustls::sign::SingleCertAndKey) or another resolver.
    ///
    /// # Errors
    ///
    /// If there is no certificate, or it cannot be read, or belongs to another key.
    pub fn certified(
        self,
        chain: Vec<CertificateDer<'static>>,
    ) -> Result<CertifiedKey, rustls::Error> {
        let certified = CertifiedKey::new(chain, Arc::new(self));
        certified.keys_match()?;
        Ok(certified)
    }
}

impl SigningKey for QueueSigningKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let can_use = |(name, scheme): &(SignatureScheme, AnyScheme)| {
            offered.contains(name) && is_long_enough(&self.key, *scheme)
        };
        let (name, scheme) = schemes().into_iter().find(can_use)?;
        Some(Box::new(QueueSigner {
            key: self.clone(),
            name,
            scheme,
        }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.key.public_key_der().into())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::RSA
    }
}

/// All schemes in order of preference. SHA-256 is as strong as any RSA key in use, and the
/// cheapest.
fn schemes() -> [(SignatureScheme, AnyScheme); 6] {
    let pkcs1v15 = |hash| AnyScheme::Pkcs1v15 { hash };
    // RFC 8446: the salt is as long as the digest.
    let pss = |hash: Hash| AnyScheme::Pss {
        hash,
        salt_len: hash.digest_len(),
    };
    [
        (SignatureScheme::RSA_PSS_SHA256, pss(Hash::Sha256)),
        (SignatureScheme::RSA_PSS_SHA384, pss(Hash::Sha384)),
        (SignatureScheme::RSA_PSS_SHA512, pss(Hash::Sha512)),
        (SignatureScheme::RSA_PKCS1_SHA256, pkcs1v15(Hash::Sha256)),
        (SignatureScheme::RSA_PKCS1_SHA384, pkcs1v15(Hash::Sha384)),
        (SignatureScheme::RSA_PKCS1_SHA512, pkcs1v15(Hash::Sha512)),
    ]
}

/// Whether the modulus is long enough for the scheme (RFC 8017, section 9.1.1). For PKCS#1 v1.5 all
/// keys are.
fn is_long_enough(key: &KeyHandle, scheme: AnyScheme) -> bool {
    match scheme {
        AnyScheme::Pkcs1v15 { .. } => true,
        AnyScheme::Pss { hash, salt_len } => {
            let encoded_len = (key.bits() as usize - 1).div_ceil(8);
            encoded_len >= hash.digest_len() + salt_len + 2
        }
    }
}

/// Signs one handshake.
#[derive(Debug)]
struct QueueSigner {
    key: QueueSigningKey,
    name: SignatureScheme,
    scheme: AnyScheme,
}

impl Signer for QueueSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let QueueSigningKey { queue, key } = &self.key;
        let signature = queue.sign_blocking(key, self.scheme, message);
        let other = |error: QueueError| rustls::Error::from(OtherError(Arc::new(error)));
        signature.map(Vec::from).map_err(other)
    }

    fn scheme(&self) -> SignatureScheme {
        self.name
    }
}
