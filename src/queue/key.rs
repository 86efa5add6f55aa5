//! Signing keys backed by a queue, with the traits of the crate `signature`.

use core::fmt;
use core::marker::PhantomData;

use signature::hazmat::{AsyncPrehashSigner, PrehashSigner};
use signature::{AsyncSigner, Error, Keypair, Signer};

use super::BatchQueue;
use crate::rsa::{AnyScheme, KeyHandle, PublicKey, Signature};

/// A key that signs through a queue and blocks until the signature is there.
///
/// It implements [`Signer`] of RustCrypto. Signatures that several threads request at the same time
/// form one batch.
///
/// `S` is the type of its signatures: this crate's or, with the feature `rsa-compat`, one of the
/// `rsa` crate, for code written for that crate's signing keys.
///
/// The methods of [`Signer`] and [`PrehashSigner`] fail with [`QueueError`](super::QueueError) as
/// the [`source`](core::error::Error::source). The traits make every `Signer` an [`AsyncSigner`],
/// but this one blocks: in asynchronous code use [`AsyncQueueKey`].
///
/// ```
/// use batch_modexp::backend::Auto;
/// use batch_modexp::queue::{BatchQueue, QueueKey};
/// use batch_modexp::rsa::{KeyHandle, Pkcs1v15, sha2::Sha256};
/// use signature::Signer;
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let queue = BatchQueue::new(Auto::new()?, getrandom::SysRng)?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let signing_key = QueueKey::new(&queue, &key, Pkcs1v15::<Sha256>::new());
/// let signature = signing_key.try_sign(b"message")?;
/// # assert_eq!(signature.as_ref().len(), key.size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QueueKey<S = Signature> {
    queue: BatchQueue,
    key: KeyHandle,
    scheme: AnyScheme,
    signature: PhantomData<fn() -> S>,
}

impl QueueKey {
    /// Returns a key that signs by this scheme.
    pub fn new(queue: &BatchQueue, key: &KeyHandle, scheme: impl Into<AnyScheme>) -> Self {
        Self {
            queue: queue.clone(),
            key: key.clone(),
            scheme: scheme.into(),
            signature: PhantomData,
        }
    }
}

impl<S> QueueKey<S> {
    /// Converts to signatures of another type.
    #[must_use]
    pub fn with_signatures<T: From<Signature>>(self) -> QueueKey<T> {
        QueueKey {
            queue: self.queue,
            key: self.key,
            scheme: self.scheme,
            signature: PhantomData,
        }
    }

    /// Converts to a key for asynchronous code.
    #[must_use]
    pub fn into_async(self) -> AsyncQueueKey<S> {
        AsyncQueueKey(self)
    }

    /// The RSA key.
    #[must_use]
    pub fn key(&self) -> &KeyHandle {
        &self.key
    }
}

/// A [`QueueKey`] that waits without blocking. Dropping a future cancels its request.
pub struct AsyncQueueKey<S = Signature>(QueueKey<S>);

impl<S> AsyncQueueKey<S> {
    /// The RSA key.
    #[must_use]
    pub fn key(&self) -> &KeyHandle {
        self.0.key()
    }
}

impl<S: From<Signature>> Signer<S> for QueueKey<S> {
    fn try_sign(&self, message: &[u8]) -> Result<S, Error> {
        let signed = self.queue.sign_blocking(&self.key, self.scheme, message);
        signed.map(S::from).map_err(Error::from_source)
    }
}

impl<S: From<Signature>> PrehashSigner<S> for QueueKey<S> {
    fn sign_prehash(&self, digest: &[u8]) -> Result<S, Error> {
        let signed = self
            .queue
            .sign_prehash_blocking(&self.key, self.scheme, digest);
        signed.map(S::from).map_err(Error::from_source)
    }
}

/// Implements the asynchronous traits for each signature type. A generic implementation for all `S`
/// would conflict with the blanket implementation of [`AsyncSigner`] for [`Signer`].
macro_rules! async_signers {
    ($($(#[$attribute:meta])* $signature:ty;)*) => {$(
        $(#[$attribute])*
        impl AsyncSigner<$signature> for AsyncQueueKey<$signature> {
            async fn sign_async(&self, message: &[u8]) -> Result<$signature, Error> {
                let QueueKey { queue, key, scheme, .. } = &self.0;
                let signed = queue.sign(key, *scheme, message).await;
                signed.map(Into::into).map_err(Error::from_source)
            }
        }

        $(#[$attribute])*
        impl AsyncPrehashSigner<$signature> for AsyncQueueKey<$signature> {
            async fn sign_prehash_async(&self, digest: &[u8]) -> Result<$signature, Error> {
                let QueueKey { queue, key, scheme, .. } = &self.0;
                let signed = queue.sign_prehash(key, *scheme, digest).await;
                signed.map(Into::into).map_err(Error::from_source)
            }
        }
    )*};
}

async_signers! {
    Signature;
    #[cfg(feature = "rsa-compat")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
    rsa::pkcs1v15::Signature;
    #[cfg(feature = "rsa-compat")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
    rsa::pss::Signature;
}

impl<S> Keypair for QueueKey<S> {
    type VerifyingKey = PublicKey;

    fn verifying_key(&self) -> PublicKey {
        self.key.public_key()
    }
}

impl<S> Keypair for AsyncQueueKey<S> {
    type VerifyingKey = PublicKey;

    fn verifying_key(&self) -> PublicKey {
        self.0.verifying_key()
    }
}

impl<S> Clone for QueueKey<S> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            key: self.key.clone(),
            scheme: self.scheme,
            signature: PhantomData,
        }
    }
}

impl<S> Clone for AsyncQueueKey<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for QueueKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueKey")
            .field("key", &self.key)
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for AsyncQueueKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
