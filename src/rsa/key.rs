//! Private keys, prepared once for any number of calls.

// Unit tests take their keys from the `rsa` crate, with any features.
#[cfg(any(feature = "rsa-compat", test))]
mod adapter;
mod check;
mod components;
#[cfg(feature = "encrypted")]
mod encrypted;
#[cfg(feature = "encrypted")]
mod encryption;
pub(super) mod fault;
mod format;
mod parts;
mod pem;
mod public;
mod public_format;
pub(super) mod restriction;

use alloc::sync::Arc;
use core::fmt;

pub use self::components::RsaComponents;
pub use self::fault::KeyFault;
pub(super) use self::parts::{Crt, KeyClass, KeyParts, Private, moduli};
pub use self::pem::{PemBlock, decode_pem};
pub use self::public::PublicKey;
pub use self::restriction::Restriction;
#[cfg(feature = "encrypted")]
pub use self::{encrypted::decrypt_pkcs8, encryption::EncryptionAlgorithm};
use crate::rsa::Error;

/// A private key with its precomputed values.
///
/// It comes from PKCS#8, PKCS#1, numbers, or a key of the `rsa` crate. Its modulus has any length
/// from 1024 to 8192 bits. Clones share the key; its secrets are wiped when the last handle is
/// dropped. `Debug` shows only the length of the modulus.
///
/// ```
/// use batch_modexp::rsa::KeyHandle;
///
/// let pem = std::fs::read("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pem(&pem)?;
/// assert_eq!((key.bits(), key.e()), (2048, vec![1, 0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What an import checks
///
/// * The modulus n is odd and has 1024 to 8192 bits. The public exponent e is odd, above 1 and
///   below n. The private exponent d is above 0 and below n.
/// * The primes p and q are odd, above 1 and different, and n = p q. Their lengths may differ. The
///   smaller may come first.
/// * The CRT values are dP = d mod p - 1, dQ = d mod q - 1 and qInv q = 1 mod p (RFC 8017, section
///   3.2). Missing values are computed.
/// * The exponents satisfy d e = 1 modulo p - 1 and modulo q - 1. In addition, d modulo lcm(p - 1,
///   q - 1) is at least `2^(bits / 2)` (FIPS 186-5, appendix A.1.1).
///
/// Without primes, an import checks instead that d is odd, that `2^(e d) = 2 mod n`, that n is no
/// power of a prime, that d itself is at least `2^(bits / 2)`, and that `2^e` is not 2.
///
/// It does not check that p and q are prime: a key with a composite factor does not sign, because
/// every result is checked.
///
/// The key keeps a digest of its numbers and of all constants made from them. If its memory has
/// changed since, no result is returned.
///
/// The import is constant-time in d, p, q, dP, dQ and qInv, except for two facts. One is which
/// relation does not hold. The other is whether p and q fit into half the length of n, or else how
/// many limbs the longer one needs.
#[derive(Clone)]
pub struct KeyHandle(Arc<KeyParts>);

impl KeyHandle {
    /// Prepares a key from its `components`.
    ///
    /// With two primes it uses the Chinese remainder theorem. Without primes, such as for a key
    /// with more than two, it uses the private exponent d, which takes about four times as long.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault.
    pub fn from_components(components: &RsaComponents<'_>) -> Result<Self, Error> {
        Self::restricted(components, Restriction::None)
    }

    fn restricted(components: &RsaComponents<'_>, restriction: Restriction) -> Result<Self, Error> {
        let mut parts = check::check(components, restriction)?;
        parts.seal();
        Ok(Self(Arc::new(parts)))
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.n_bits
    }

    /// The length of the modulus and of a signature, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.n_octets()
    }

    /// Whether private operations use the Chinese remainder theorem.
    #[must_use]
    pub fn has_crt(&self) -> bool {
        matches!(self.0.private().numbers, Private::Crt(_))
    }

    /// The schemes that the key may sign by.
    #[must_use]
    pub fn restriction(&self) -> Restriction {
        self.0.restriction
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

#[cfg(test)]
mod tests;
