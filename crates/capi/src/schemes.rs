//! Numbers of hash functions and of schemes.

use batch_modexp::rsa::{AnyEncryptionScheme, AnyScheme, Hash, OaepHash};

use crate::boundary::{Failure, argument, elements, parameters};

pub(crate) const SHA1: i32 = 1;
pub(crate) const SHA256: i32 = 2;
pub(crate) const SHA384: i32 = 3;
pub(crate) const SHA512: i32 = 4;
pub(crate) const SHA224: i32 = 5;
pub(crate) const SHA512_224: i32 = 6;
pub(crate) const SHA512_256: i32 = 7;
pub(crate) const SHA3_224: i32 = 8;
pub(crate) const SHA3_256: i32 = 9;
pub(crate) const SHA3_384: i32 = 10;
pub(crate) const SHA3_512: i32 = 11;
pub(crate) const PKCS1V15: i32 = 16;
pub(crate) const PSS: i32 = 32;
pub(crate) const OAEP: i32 = 48;
pub(crate) const PREHASHED: i32 = 256;

/// The bits of a scheme number that encode the hash function.
const HASH: i32 = 0xf;

/// The hash function with this number, SHA-1 excepted.
fn hash(number: i32) -> Option<Hash> {
    Some(match number {
        SHA256 => Hash::Sha256,
        SHA384 => Hash::Sha384,
        SHA512 => Hash::Sha512,
        SHA224 => Hash::Sha224,
        SHA512_224 => Hash::Sha512_224,
        SHA512_256 => Hash::Sha512_256,
        SHA3_224 => Hash::Sha3_224,
        SHA3_256 => Hash::Sha3_256,
        SHA3_384 => Hash::Sha3_384,
        SHA3_512 => Hash::Sha3_512,
        _ => return None,
    })
}

/// A signature scheme, and whether its messages are already hashed.
pub(crate) struct SignatureScheme {
    pub(crate) scheme: AnyScheme,
    pub(crate) is_prehashed: bool,
    digest_len: usize,
}

impl SignatureScheme {
    pub(crate) fn new(number: i32) -> Result<Self, Failure> {
        let unknown = || argument("unknown signature scheme");
        let hash = hash(number & HASH).ok_or_else(unknown)?;
        let digest_len = hash.digest_len();
        let scheme = match number & !(HASH | PREHASHED) {
            PKCS1V15 => AnyScheme::Pkcs1v15 { hash },
            PSS => AnyScheme::Pss {
                hash,
                salt_len: digest_len,
            },
            _ => return Err(unknown()),
        };
        Ok(Self {
            scheme,
            is_prehashed: number & PREHASHED != 0,
            digest_len,
        })
    }

    /// Whether the scheme accepts a message of this length.
    pub(crate) fn takes(&self, message: &[u8]) -> bool {
        !self.is_prehashed || message.len() == self.digest_len
    }
}

/// `bme_encryption` of the header.
#[repr(C)]
pub(crate) struct EncryptionParameters {
    size: usize,
    scheme: i32,
    mgf_hash: i32,
    label: *const u8,
    label_len: usize,
}

/// The encryption scheme that a caller of C names.
///
/// # Safety
///
/// That of [`parameters`], and the label stays unchanged during `'a`.
pub(crate) unsafe fn encryption<'a>(
    data: *const EncryptionParameters,
) -> Result<AnyEncryptionScheme<'a>, Failure> {
    // SAFETY: the caller vouches for the parameters and for the label.
    let (given, label) = unsafe {
        let given = parameters(data)?;
        (given, elements(given.label, given.label_len)?)
    };
    let mgf_hash = match given.mgf_hash {
        0 => given.scheme & HASH,
        other => other,
    };
    match given.scheme & !HASH {
        PKCS1V15 if given.scheme == PKCS1V15 && given.mgf_hash == 0 && label.is_empty() => {
            Ok(AnyEncryptionScheme::Pkcs1v15)
        }
        PKCS1V15 => Err(argument("PKCS #1 v1.5 has no hash function and no label")),
        OAEP => Ok(AnyEncryptionScheme::Oaep {
            hash: oaep_hash(given.scheme & HASH)?,
            mgf_hash: oaep_hash(mgf_hash)?,
            label,
        }),
        _ => Err(argument("unknown encryption scheme")),
    }
}

/// The hash function of OAEP with this number.
fn oaep_hash(number: i32) -> Result<OaepHash, Failure> {
    match number {
        SHA1 => Ok(OaepHash::Sha1),
        _ => {
            let hash = hash(number).ok_or_else(|| argument("unknown hash function"))?;
            Ok(hash.into())
        }
    }
}
