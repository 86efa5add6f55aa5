//! A private key, prepared once for any number of calls.

use alloc::sync::Arc;
use core::fmt;

use crypto_bigint::BoxedUint;
use crypto_bigint::modular::{BoxedMontyParams, MontyParams};
use rsa::RsaPrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::{MAX_BITS, MIN_BITS};
use crate::Error;
use crate::secret::Secret;

/// A private key with its precomputed values.
///
/// n, p and q and their Montgomery constants are taken over as the `rsa` crate has computed and stored them, at
/// widths that follow from the length of n alone; all other numbers are brought to the width that belongs to them.
///
/// Cloning a handle shares the key; its secrets are wiped when the last handle is dropped. `Debug`
/// shows the length of the modulus and nothing else.
#[derive(Clone)]
pub struct KeyHandle(Arc<KeyParts>);

pub(super) struct KeyParts {
    /// The modulus n with its Montgomery constants; public.
    pub(super) n: BoxedMontyParams,
    /// The length of n in bits.
    pub(super) n_bits: u32,
    /// The public exponent.
    pub(super) e: BoxedUint,
    /// The length of e in bits.
    pub(super) e_bits: u32,
    pub(super) private: Private,
    /// Where the key lies on GPUs, until it is dropped.
    #[cfg(feature = "cuda")]
    pub(super) on_devices: crate::backend::cuda::Residence,
}

/// How the private operation is computed.
pub(super) enum Private {
    /// Two primes, by the Chinese remainder theorem (RFC 8017, section 3.2, second form).
    Crt(Crt),
    /// Any other key: the private exponent d, at the width of n.
    Plain { d: Secret<BoxedUint> },
}

/// The quintuple of RFC 8017, section 3.2, for two primes. `p` and `q` are equally wide.
pub(super) struct Crt {
    pub(super) p: Secret<MontyParams<BoxedUint>>,
    pub(super) q: Secret<MontyParams<BoxedUint>>,
    pub(super) dp: Secret<BoxedUint>,
    pub(super) dq: Secret<BoxedUint>,
    pub(super) qinv: Secret<BoxedUint>,
    /// A public bound for the length of both primes, and so of `dp` and `dq`, in bits.
    pub(super) prime_bits: u32,
}

impl KeyHandle {
    /// Prepares `key`, whose modulus must have 1024 to 8192 bits, any length in between.
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
    pub fn new(key: &RsaPrivateKey) -> Result<Self, Error> {
        let n_bits = key.n().bits_vartime();
        if !(MIN_BITS..=MAX_BITS).contains(&n_bits) {
            return Err(Error::KeySize { bits: n_bits });
        }
        let e_bits = key.e().bits_vartime();
        Ok(Self(Arc::new(KeyParts {
            n: key.n_params().clone(),
            n_bits,
            e: resized(key.e(), e_bits),
            e_bits,
            private: Private::new(key, n_bits),
            #[cfg(feature = "cuda")]
            on_devices: Default::default(),
        })))
    }

    /// Prepares the key inside `key`: a [`pkcs1v15::SigningKey`](rsa::pkcs1v15::SigningKey), a
    /// [`pss::SigningKey`](rsa::pss::SigningKey), or whatever else is `AsRef` to an [`RsaPrivateKey`].
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn from_signing_key<K: AsRef<RsaPrivateKey>>(key: &K) -> Result<Self, Error> {
        Self::new(key.as_ref())
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.n_bits
    }

    /// The length of the modulus, and of a signature, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.n_bits.div_ceil(8) as usize
    }

    /// Whether private operations use the Chinese remainder theorem.
    #[must_use]
    pub fn has_crt(&self) -> bool {
        matches!(self.0.private, Private::Crt(_))
    }

    pub(super) fn parts(&self) -> &KeyParts {
        &self.0
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHandle")
            .field("bits", &self.bits())
            .finish_non_exhaustive()
    }
}

impl Private {
    fn new(key: &RsaPrivateKey, n_bits: u32) -> Self {
        let crt = (key.p(), key.q(), key.dp(), key.dq(), key.qinv());
        let (2, (Some(p), Some(q), Some(dp), Some(dq), Some(qinv))) = (key.primes().len(), crt)
        else {
            return Self::Plain {
                d: Secret::new(resized(key.d(), n_bits)),
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
            dp: at_width(dp),
            dq: at_width(dq),
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

impl Crt {
    pub(super) fn p(&self) -> &MontyParams<BoxedUint> {
        &self.p
    }

    pub(super) fn q(&self) -> &MontyParams<BoxedUint> {
        &self.q
    }
}

#[cfg(all(test, feature = "cuda"))]
impl KeyHandle {
    /// The same key with some of its CRT values changed, so that they do not belong together.
    pub(super) fn with_crt(&self, change: impl FnOnce(&mut Crt)) -> Self {
        let parts = self.parts();
        let Private::Crt(crt) = &parts.private else {
            panic!("the key has no CRT values");
        };
        let mut crt = Crt {
            p: Secret::new(crt.p.clone()),
            q: Secret::new(crt.q.clone()),
            dp: Secret::new(crt.dp.clone()),
            dq: Secret::new(crt.dq.clone()),
            qinv: Secret::new(crt.qinv.clone()),
            prime_bits: crt.prime_bits,
        };
        change(&mut crt);
        Self(Arc::new(KeyParts {
            n: parts.n.clone(),
            n_bits: parts.n_bits,
            e: parts.e.clone(),
            e_bits: parts.e_bits,
            private: Private::Crt(crt),
            on_devices: Default::default(),
        }))
    }
}
