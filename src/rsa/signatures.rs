//! Results of a batch: octets of items, borrowed from one buffer, and errors of failed items. One
//! signature as octets.

#[cfg(any(feature = "signature", feature = "rsa-compat"))]
mod convert;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use batch_modexp_core::secret::Secret;

use super::batch::Outputs;
use super::error::Error;

/// The signatures of a batch, in the order of its items, in one buffer. Each is as long as its key's
/// modulus.
///
/// A failed item has its error instead of a signature. A reference iterates over slices; by value
/// the iterator makes a [`Signature`] of each.
///
/// ```
/// # use batch_modexp::backend::Serial;
/// # use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, sha2::Sha256};
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// # let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// # let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
/// let signatures = signer.sign(&mut getrandom::SysRng, &key, &["one", "two"])?;
/// assert_eq!(signatures.len(), 2);
/// for signature in &signatures {
///     assert_eq!(signature?.len(), key.size());
/// }
/// assert_eq!(signatures.get(0)?.len(), key.size());
/// assert_eq!(signatures.into_vec()?.len(), 2 * key.size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Signatures(Outputs);

/// The ciphertexts of a batch, in the order of its messages, in one buffer. Each is as long as its
/// key's modulus.
///
/// A failed item has its error instead of a ciphertext.
#[derive(Default)]
pub struct Ciphertexts(Outputs);

/// Secret results of private operations, in the order of the batch's items, in one buffer that is
/// wiped on drop.
///
/// A failed item has its error instead of octets.
pub struct SecretOctets(Secret<Outputs>);

/// Reads the outputs of a batch, the octets or the error of each item.
macro_rules! read_outputs {
    ($outputs:ident, $octets:literal) => {
        impl $outputs {
            /// The number of items.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Whether there are no items.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            #[doc = concat!($octets, " of item `index`.")]
            ///
            /// # Errors
            ///
            /// The error of the item, if it failed.
            ///
            /// # Panics
            ///
            /// If there is no such item.
            pub fn get(&self, index: usize) -> Result<&[u8], Error> {
                self.0.get(index)
            }

            #[doc = concat!($octets, " of each item, or its error.")]
            #[must_use]
            pub fn iter(&self) -> Iter<'_> {
                Iter {
                    outputs: &self.0,
                    positions: 0..self.len(),
                }
            }
        }

        impl<'a> IntoIterator for &'a $outputs {
            type Item = Result<&'a [u8], Error>;
            type IntoIter = Iter<'a>;

            fn into_iter(self) -> Iter<'a> {
                self.iter()
            }
        }
    };
}

/// Makes public outputs of a batch, and takes their octets.
macro_rules! public_outputs {
    ($outputs:ident, $octets:literal) => {
        impl $outputs {
            pub(super) fn new(outputs: Secret<Outputs>) -> Self {
                Self(outputs.into_inner())
            }

            #[doc = concat!("The octets of all ", $octets, ", one after the other.")]
            ///
            /// # Errors
            ///
            /// That of the first failed item.
            pub fn into_vec(self) -> Result<Vec<u8>, Error> {
                self.0.into_vec()
            }
        }
    };
}

read_outputs!(Signatures, "The signature");
read_outputs!(Ciphertexts, "The ciphertext");
read_outputs!(SecretOctets, "The octets");
public_outputs!(Signatures, "signatures");
public_outputs!(Ciphertexts, "ciphertexts");

impl IntoIterator for Signatures {
    type Item = Result<Signature, Error>;
    type IntoIter = IntoSignatures;

    fn into_iter(self) -> IntoSignatures {
        IntoSignatures {
            range: 0..self.len(),
            signatures: self,
        }
    }
}

/// The octets of each item, borrowed: see [`Signatures::iter`], [`Ciphertexts::iter`] and
/// [`SecretOctets::iter`].
pub struct Iter<'a> {
    outputs: &'a Outputs,
    positions: Range<usize>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.outputs.get(self.positions.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The signatures of a batch, one by one: see [`Signatures`].
#[derive(Debug)]
pub struct IntoSignatures {
    range: Range<usize>,
    signatures: Signatures,
}

impl Iterator for IntoSignatures {
    type Item = Result<Signature, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let signature = self.signatures.get(self.range.next()?);
        Some(signature.map(Signature::new))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for IntoSignatures {}

impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Signatures {}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signatures = self.iter().map(|item| item.map(Signature::new));
        f.debug_list().entries(signatures).finish()
    }
}

impl fmt::Debug for Ciphertexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl SecretOctets {
    pub(super) fn new(outputs: Secret<Outputs>) -> Self {
        Self(outputs)
    }
}

impl fmt::Debug for SecretOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretOctets")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

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
