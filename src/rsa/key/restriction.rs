//! Restrictions of keys: a key of type id-RSASSA-PSS is for RSASSA-PSS alone, perhaps with given
//! parameters (RFC 4055, section 3.1).

use core::fmt;

use pkcs1::{RsaPssParams, RsaPssParamsOwned, TrailerField};
use pkcs8::ObjectIdentifier;
use pkcs8::der::asn1::{Any, AnyRef};
use pkcs8::spki::{AlgorithmIdentifier, AlgorithmIdentifierOwned, AlgorithmIdentifierRef};

use super::fault::KeyFault;
use crate::rsa::hash::Hash;

/// The schemes that a key may sign by, according to its PKCS#8 document. The signer enforces it.
///
/// `hazmat::rsasp1` cannot, because it does not know the scheme of its blocks; the protocol must do
/// it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// Any scheme: keys of type rsaEncryption, and keys that do not come from PKCS#8.
    None,
    /// RSASSA-PSS with any hash function and salt.
    Pss,
    /// RSASSA-PSS with this hash function, also for the mask generation, and a salt of at least
    /// `min_salt_len` bytes.
    PssWith {
        /// The hash function.
        hash: Hash,
        /// The shortest salt in bytes.
        min_salt_len: usize,
    },
}

const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const MGF1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.8");

impl Restriction {
    /// The restriction by the algorithm in a PKCS#8 document.
    pub(super) fn of(algorithm: &AlgorithmIdentifierRef<'_>) -> Result<Self, KeyFault> {
        match (algorithm.oid, algorithm.parameters) {
            (pkcs1::ALGORITHM_OID, _) => Ok(Self::None),
            (RSASSA_PSS, None) => Ok(Self::Pss),
            (RSASSA_PSS, Some(parameters)) => {
                let parameters: RsaPssParamsOwned = parameters
                    .decode_as()
                    .map_err(|_| KeyFault::PssParameters)?;
                Self::with(&parameters).ok_or(KeyFault::PssParameters)
            }
            _ => Err(KeyFault::Algorithm),
        }
    }

    /// The restriction to these parameters; `None` if this crate does not support them.
    fn with(parameters: &RsaPssParamsOwned) -> Option<Self> {
        let mask_gen = &parameters.mask_gen;
        let hash = Hash::of(parameters.hash.oid)?;
        let same_in_mask = mask_gen.oid == MGF1
            && mask_gen.parameters.as_ref()?.oid == parameters.hash.oid
            && parameters.trailer_field == TrailerField::BC;
        same_in_mask.then_some(Self::PssWith {
            hash,
            min_salt_len: parameters.salt_len.into(),
        })
    }

    /// Whether a key with this restriction permits whatever one with the restriction `other` permits.
    pub(in crate::rsa) fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::None, _) | (Self::Pss, Self::Pss | Self::PssWith { .. }) => true,
            (
                Self::PssWith { hash, min_salt_len },
                Self::PssWith {
                    hash: other_hash,
                    min_salt_len: other_len,
                },
            ) => hash == other_hash && min_salt_len <= other_len,
            (Self::Pss | Self::PssWith { .. }, _) => false,
        }
    }

    /// The algorithm identifier of a public key with this restriction.
    pub(super) fn algorithm(self) -> AlgorithmIdentifierOwned {
        match self {
            Self::None => pkcs1::ALGORITHM_ID.into(),
            Self::Pss => AlgorithmIdentifierOwned {
                oid: RSASSA_PSS,
                parameters: None,
            },
            Self::PssWith { hash, min_salt_len } => {
                // The length was read from one octet.
                let salt_len = u8::try_from(min_salt_len).unwrap_or(u8::MAX);
                pss_algorithm(hash.oid(), Some(AnyRef::NULL), salt_len)
            }
        }
    }
}

/// The algorithm identifier id-RSASSA-PSS for a hash function, also for the mask generation.
/// `parameters` are those of the hash identifiers: NULL or none, which mean the same (RFC 4055,
/// section 2.1).
pub(super) fn pss_algorithm(
    hash: ObjectIdentifier,
    parameters: Option<AnyRef<'static>>,
    salt_len: u8,
) -> AlgorithmIdentifierOwned {
    let hash = AlgorithmIdentifierRef {
        oid: hash,
        parameters,
    };
    let parameters = RsaPssParams {
        hash,
        mask_gen: AlgorithmIdentifier {
            oid: MGF1,
            parameters: Some(hash),
        },
        salt_len,
        trailer_field: TrailerField::BC,
    };
    let parameters = Any::encode_from(&parameters).expect("a few short fields can be encoded");
    AlgorithmIdentifierOwned {
        oid: RSASSA_PSS,
        parameters: Some(parameters),
    }
}

impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("any scheme"),
            Self::Pss => f.write_str("RSASSA-PSS"),
            Self::PssWith { hash, min_salt_len } => {
                write!(
                    f,
                    "RSASSA-PSS with {hash} and a salt of at least {min_salt_len} bytes"
                )
            }
        }
    }
}
