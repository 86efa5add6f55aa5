//! Keys of the `rsa` crate.

use batch_modexp_core::secret::Secret;
use crypto_bigint::BoxedUint;
use rsa::PrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::{KeyHandle, PublicKey, RsaComponents};
use crate::rsa::Error;
use crate::rsa::limbs::i2osp;

#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl KeyHandle {
    /// Prepares a key of the `rsa` crate from its numbers, with all checks of
    /// [`from_components`](Self::from_components).
    ///
    /// A key with two primes and CRT values uses the Chinese remainder theorem. A key with more
    /// primes, or with cleared CRT values, uses its private exponent d, which takes about four
    /// times as long.
    ///
    /// For a signing key of the `rsa` crate see [`from_signing_key`](Self::from_signing_key).
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault.
    pub fn new(key: &PrivateKey) -> Result<Self, Error> {
        let octets = |number: &BoxedUint| i2osp(number.as_limbs());
        let (n, e, d) = (octets(key.n()), octets(key.e()), octets(key.d()));
        let components = RsaComponents::new(&n, &e, &d);
        let crt = (key.primes(), key.dp(), key.dq(), key.qinv());
        let ([p, q], Some(dp), Some(dq), Some(qinv)) = crt else {
            return Self::from_components(&components);
        };
        let qinv = Secret::new(qinv.retrieve());
        let [p, q, dp, dq, qinv] = [p.as_ref(), q.as_ref(), dp, dq, &*qinv].map(octets);
        let components = components.primes(&p, &q).dp(&dp).dq(&dq).qinv(&qinv);
        Self::from_components(&components)
    }

    /// Prepares the key inside `key`: a [`pkcs1v15::SigningKey`](rsa::pkcs1v15::SigningKey), a
    /// [`pss::SigningKey`](rsa::pss::SigningKey), or any other `AsRef` to a [`PrivateKey`].
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn from_signing_key<K: AsRef<PrivateKey>>(key: &K) -> Result<Self, Error> {
        Self::new(key.as_ref())
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl TryFrom<&PrivateKey> for KeyHandle {
    type Error = Error;

    /// Calls [`KeyHandle::new`].
    fn try_from(key: &PrivateKey) -> Result<Self, Error> {
        Self::new(key)
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl TryFrom<&rsa::PublicKey> for PublicKey {
    type Error = Error;

    /// Prepares a key of the `rsa` crate from its numbers, as [`from_numbers`](Self::from_numbers)
    /// does.
    fn try_from(key: &rsa::PublicKey) -> Result<Self, Error> {
        Self::from_numbers(&key.n_bytes(), &key.e_bytes())
    }
}
