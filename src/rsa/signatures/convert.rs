//! Conversions of signatures from and to types of other crates.

#[cfg(feature = "signature")]
use alloc::boxed::Box;

use super::Signature;
#[cfg(feature = "signature")]
use crate::rsa::{MAX_PUBLIC_BITS, MIN_BITS};

/// Reads the octets of a signature by any accepted key. Only a verifier can say whether it is
/// valid.
#[cfg(feature = "signature")]
#[cfg_attr(docsrs, doc(cfg(feature = "signature")))]
impl TryFrom<&[u8]> for Signature {
    type Error = signature::Error;

    /// Fails if no accepted key has a modulus of that length.
    fn try_from(octets: &[u8]) -> Result<Self, signature::Error> {
        let [min, max] = [MIN_BITS, MAX_PUBLIC_BITS].map(|bits| bits.div_ceil(8) as usize);
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

/// Conversions to a signature type of the crate `rsa`.
#[cfg(feature = "rsa-compat")]
macro_rules! convert_to {
    ($Signature:ty) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
        impl From<&Signature> for $Signature {
            fn from(signature: &Signature) -> Self {
                let octets = signature.as_ref();
                Self::from_bytes_with_max_len(octets, octets.len())
                    .unwrap_or_else(|_| unreachable!("it is as long as itself"))
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "rsa-compat")))]
        impl From<Signature> for $Signature {
            fn from(signature: Signature) -> Self {
                Self::from(&signature)
            }
        }
    };
}

#[cfg(feature = "rsa-compat")]
convert_to!(rsa::pkcs1v15::Signature);
#[cfg(feature = "rsa-compat")]
convert_to!(rsa::pss::Signature);
