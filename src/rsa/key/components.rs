//! The numbers of a private key, as given by a caller.

/// The numbers of a private key (RFC 8017, section 3.2) in big-endian octets; leading zeros are
/// allowed.
///
/// Give the primes if you have them: they make the private operation about four times as fast. The
/// caller keeps the octets and must wipe them. There is no `Debug`, because most of them are
/// secret.
///
/// ```
/// # use batch_modexp::rsa::{KeyHandle, RsaComponents};
/// # fn import(n: &[u8], e: &[u8], d: &[u8], p: &[u8], q: &[u8]) -> Result<(), batch_modexp::rsa::Error> {
/// let key = KeyHandle::from_components(&RsaComponents::new(n, e, d).primes(p, q))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct RsaComponents<'a> {
    pub(super) n: &'a [u8],
    pub(super) e: &'a [u8],
    pub(super) d: &'a [u8],
    pub(super) primes: Option<[&'a [u8]; 2]>,
    pub(super) dp: Option<&'a [u8]>,
    pub(super) dq: Option<&'a [u8]>,
    pub(super) qinv: Option<&'a [u8]>,
}

impl<'a> RsaComponents<'a> {
    /// Sets the modulus n, the public exponent e and the private exponent d.
    #[must_use]
    pub const fn new(n: &'a [u8], e: &'a [u8], d: &'a [u8]) -> Self {
        Self {
            n,
            e,
            d,
            primes: None,
            dp: None,
            dq: None,
            qinv: None,
        }
    }

    /// Sets the two prime factors of n. Omit them for a key with more than two.
    #[must_use]
    pub const fn primes(mut self, p: &'a [u8], q: &'a [u8]) -> Self {
        self.primes = Some([p, q]);
        self
    }

    /// Sets `d mod p - 1`. If there are primes, it is checked; missing values are computed.
    #[must_use]
    pub const fn dp(mut self, dp: &'a [u8]) -> Self {
        self.dp = Some(dp);
        self
    }

    /// Sets `d mod q - 1`, as [`dp`](Self::dp).
    #[must_use]
    pub const fn dq(mut self, dq: &'a [u8]) -> Self {
        self.dq = Some(dq);
        self
    }

    /// Sets `1 / q mod p`, as [`dp`](Self::dp).
    #[must_use]
    pub const fn qinv(mut self, qinv: &'a [u8]) -> Self {
        self.qinv = Some(qinv);
        self
    }
}
