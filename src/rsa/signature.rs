//! RSA signatures as octets.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The octets of an RSA signature, as many as the modulus has. `Debug` and `{:x}` write them in
/// hexadecimal.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Signature(Box<[u8]>);

impl Signature {
    pub(super) fn new(octets: &[u8]) -> Self {
        Self(octets.into())
    }

    /// Copies the octets.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Returns the octets.
    #[must_use]
    pub fn into_bytes(self) -> Box<[u8]> {
        self.0
    }
}

impl AsRef<[u8]> for Signature {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Signature> for Vec<u8> {
    fn from(signature: Signature) -> Self {
        signature.0.into()
    }
}

impl From<Signature> for Box<[u8]> {
    fn from(signature: Signature) -> Self {
        signature.0
    }
}

/// Reads the octets of a signature by any accepted key. Only a verifier can say whether it is
/// valid.
#[cfg(feature = "signature")]
#[cfg_attr(docsrs, doc(cfg(feature = "signature")))]
impl TryFrom<&[u8]> for Signature {
    type Error = signature::Error;

    /// Fails if no accepted key has a modulus of that length.
    fn try_from(octets: &[u8]) -> Result<Self, signature::Error> {
        let [min, max] =
            [super::MIN_BITS, super::MAX_PUBLIC_BITS].map(|bits| bits.div_ceil(8) as usize);
        match (min..=max).contains(&octets.len()) {
            true => Ok(Self(octets.into())),
            false => Err(signature::Error::new()),
        }
    }
}

#[cfg(feature = "signature")]
#[cfg_attr(docsrs, doc(cfg(feature = "signature")))]
impl signature::SignatureEncoding for Signature {
    type Repr = Box<[u8]>;
}

impl fmt::LowerHex for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self:x})")
    }
}

#[cfg(feature = "rsa-compat")]
#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl From<&Signature> for rsa::pkcs1v15::Signature {
    fn from(signature: &Signature) -> Self {
        let octets = signature.as_ref();
        Self::from_bytes_with_max_len(octets, octets.len())
            .unwrap_or_else(|_| unreachable!("it is as long as itself"))
    }
}

#[cfg(feature = "rsa-compat")]
#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl From<&Signature> for rsa::pss::Signature {
    fn from(signature: &Signature) -> Self {
        let octets = signature.as_ref();
        Self::from_bytes_with_max_len(octets, octets.len())
            .unwrap_or_else(|_| unreachable!("it is as long as itself"))
    }
}

#[cfg(feature = "rsa-compat")]
#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl From<Signature> for rsa::pkcs1v15::Signature {
    fn from(signature: Signature) -> Self {
        Self::from(&signature)
    }
}

#[cfg(feature = "rsa-compat")]
#[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
impl From<Signature> for rsa::pss::Signature {
    fn from(signature: Signature) -> Self {
        Self::from(&signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_in_and_out() {
        let signature = Signature::new(&[0, 0x1f, 0xff]);
        assert_eq!(alloc::format!("{signature:x}"), "001fff");
        assert_eq!(alloc::format!("{signature:?}"), "Signature(001fff)");
        assert_eq!(signature.as_ref(), [0, 0x1f, 0xff]);
        assert_eq!(signature.to_vec(), Vec::from(signature.clone()));
        assert_eq!(*signature.into_bytes(), [0, 0x1f, 0xff]);
    }
}
