//! Keys of the `rsa` crate.

use alloc::sync::Arc;

use crypto_bigint::BoxedUint;
use rsa::PrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::{Crt, KeyHandle, KeyParts, Private, Restriction, less_1};
use crate::Error;
use crate::rsa::encryption::pkcs1_v15::hash_of_exponent;
use crate::rsa::octets::limbs_to_octets;
use crate::rsa::{MAX_BITS, MIN_BITS};
use crate::secret::Secret;

#[cfg_attr(docsrs, doc(cfg(feature = "rsa")))]
impl KeyHandle {
    /// Prepares a key of the `rsa` crate, which has checked it.
    ///
    /// n, p and q and their Montgomery constants are taken over as the `rsa` crate has computed and stored them, at
    /// widths that follow from the length of n alone; all other numbers are brought to the width that belongs to them.
    ///
    /// A key with two primes and its CRT values is used by the Chinese remainder theorem. A key
    /// with more primes, or whose CRT values were cleared, is used with its private exponent d,
    /// which takes about four times as long.
    ///
    /// For a signing key of the `rsa` crate see [`from_signing_key`](Self::from_signing_key).
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long.
    pub fn new(key: &PrivateKey) -> Result<Self, Error> {
        let n_bits = key.n().bit_width_vartime();
        if !(MIN_BITS..=MAX_BITS).contains(&n_bits) {
            return Err(Error::KeySize { bits: n_bits });
        }
        let e_bits = key.e().bit_width_vartime();
        let size = n_bits.div_ceil(8) as usize;
        Ok(Self(Arc::new(KeyParts {
            n: key.n_params().clone(),
            n_bits,
            e: resized(key.e(), e_bits),
            e_bits,
            private: Private::new(key, n_bits),
            d_hash: hash_of_exponent(&limbs_to_octets(key.d().as_limbs(), size), size),
            restriction: Restriction::None,
            #[cfg(feature = "cuda")]
            on_devices: Default::default(),
        })))
    }

    /// Prepares the key inside `key`: a [`pkcs1v15::SigningKey`](rsa::pkcs1v15::SigningKey), a
    /// [`pss::SigningKey`](rsa::pss::SigningKey), or whatever else is `AsRef` to a [`PrivateKey`].
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn from_signing_key<K: AsRef<PrivateKey>>(key: &K) -> Result<Self, Error> {
        Self::new(key.as_ref())
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "rsa")))]
impl TryFrom<&PrivateKey> for KeyHandle {
    type Error = Error;

    /// [`KeyHandle::new`].
    fn try_from(key: &PrivateKey) -> Result<Self, Error> {
        Self::new(key)
    }
}

impl Private {
    fn new(key: &PrivateKey, n_bits: u32) -> Self {
        let crt = (key.p(), key.q(), key.dp(), key.dq(), key.qinv());
        let (2, (Some(p), Some(q), Some(dp), Some(dq), Some(qinv))) = (key.primes().len(), crt)
        else {
            return Self::Plain {
                d_less_1: less_1(Secret::new(resized(key.d(), n_bits))),
            };
        };
        // rsa stores both primes at the same public width. That is half of n rounded up to whole limbs,
        // for which half of n is the tighter bound, unless the key was imported with wide primes.
        let (half, width) = (n_bits.div_ceil(2), p.modulus().bits_precision());
        let half_fits = BoxedUint::zero_with_precision(half).bits_precision() == width;
        let qinv = Secret::new(qinv.retrieve());
        let at_width = |value: &BoxedUint| Secret::new(resized(value, width));
        Self::Crt(Crt {
            p: Secret::new(p.clone()),
            q: Secret::new(q.clone()),
            dp_less_1: less_1(at_width(dp)),
            dq_less_1: less_1(at_width(dq)),
            qinv: at_width(&qinv),
            prime_bits: if half_fits { half } else { width },
        })
    }
}

/// A copy of `value`, which has at most `bits` bits, that is as wide as `bits` rounded up to whole limbs. A number of
/// a key may have been imported at any width, with zeros above it.
fn resized(value: &BoxedUint, bits: u32) -> BoxedUint {
    let mut copy = BoxedUint::zero_with_precision(bits);
    let limbs = copy.as_mut_limbs().iter_mut().zip(value.as_limbs());
    limbs.for_each(|(to, from)| *to = *from);
    copy
}
