//! Numbers of hash functions and of schemes.

use batch_modexp::rsa::{AnyScheme, Hash};

use crate::boundary::{Failure, argument, elements, parameters};

pub(crate) const SHA1: i32 = 1;
pub(crate) const SHA256: i32 = 2;
pub(crate) const SHA384: i32 = 3;
pub(crate) const SHA512: i32 = 4;
pub(crate) const PKCS1V15: i32 = 16;
pub(crate) const PSS: i32 = 32;
pub(crate) const OAEP: i32 = 48;
pub(crate) const PREHASHED: i32 = 256;

/// The bits of a scheme number that encode the hash function.
const HASH: i32 = 0xf;

/// A signature scheme, and whether its messages are already hashed.
pub(crate) struct SignatureScheme {
    pub(crate) scheme: AnyScheme,
    pub(crate) is_prehashed: bool,
    digest_len: usize,
}

impl SignatureScheme {
    pub(crate) fn new(number: i32) -> Result<Self, Failure> {
        let unknown = || argument("unknown signature scheme");
        let hash = match number & HASH {
            SHA256 => Hash::Sha256,
            SHA384 => Hash::Sha384,
            SHA512 => Hash::Sha512,
            _ => return Err(unknown()),
        };
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

/// An encryption scheme.
pub(crate) enum Encryption<'a> {
    Pkcs1v15,
    Oaep {
        hash: OaepHash,
        mgf_hash: OaepHash,
        label: &'a [u8],
    },
}

/// A hash function of OAEP.
#[derive(Clone, Copy)]
pub(crate) enum OaepHash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl OaepHash {
    fn new(number: i32) -> Result<Self, Failure> {
        match number {
            SHA1 => Ok(Self::Sha1),
            SHA256 => Ok(Self::Sha256),
            SHA384 => Ok(Self::Sha384),
            SHA512 => Ok(Self::Sha512),
            _ => Err(argument("unknown hash function")),
        }
    }
}

impl<'a> Encryption<'a> {
    /// # Safety
    ///
    /// That of [`parameters`], and the label stays unchanged during `'a`.
    pub(crate) unsafe fn new(data: *const EncryptionParameters) -> Result<Self, Failure> {
        // SAFETY: the caller vouches for the parameters and for the label.
        let (given, label) = unsafe {
            let given = parameters(data)?;
            (given, elements(given.label, given.label_len)?)
        };
        match given.scheme & !HASH {
            PKCS1V15 if given.scheme == PKCS1V15 && given.mgf_hash == 0 && label.is_empty() => {
                Ok(Self::Pkcs1v15)
            }
            PKCS1V15 => Err(argument("PKCS #1 v1.5 has no hash function and no label")),
            OAEP => Ok(Self::Oaep {
                hash: OaepHash::new(given.scheme & HASH)?,
                mgf_hash: OaepHash::new(match given.mgf_hash {
                    0 => given.scheme & HASH,
                    other => other,
                })?,
                label,
            }),
            _ => Err(argument("unknown encryption scheme")),
        }
    }
}

/// Evaluates an expression that is generic over the hash function of an [`OaepHash`].
macro_rules! with_hash {
    ($hash:expr, |$type:ident| $call:expr) => {
        match $hash {
            $crate::schemes::OaepHash::Sha1 => {
                type $type = sha1::Sha1;
                $call
            }
            $crate::schemes::OaepHash::Sha256 => {
                type $type = batch_modexp::rsa::sha2::Sha256;
                $call
            }
            $crate::schemes::OaepHash::Sha384 => {
                type $type = batch_modexp::rsa::sha2::Sha384;
                $call
            }
            $crate::schemes::OaepHash::Sha512 => {
                type $type = batch_modexp::rsa::sha2::Sha512;
                $call
            }
        }
    };
}

/// Evaluates an expression that is generic over the scheme of an [`Encryption`].
macro_rules! with_scheme {
    ($encryption:expr, |$scheme:ident| $call:expr) => {
        match $encryption {
            $crate::schemes::Encryption::Pkcs1v15 => {
                let $scheme = batch_modexp::rsa::RsaesPkcs1v15;
                $call
            }
            $crate::schemes::Encryption::Oaep {
                hash,
                mgf_hash,
                label,
            } => $crate::schemes::with_hash!(hash, |D| {
                $crate::schemes::with_hash!(mgf_hash, |M| {
                    let $scheme = batch_modexp::rsa::RsaesOaep::<D, M>::with_label(label);
                    $call
                })
            }),
        }
    };
}

pub(crate) use {with_hash, with_scheme};
