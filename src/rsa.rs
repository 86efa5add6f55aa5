//! Batch RSA: signatures, decryption, verification, encryption and blind signatures.
//!
//! [`BatchSigner`] signs messages with RSASSA-PKCS1-v1_5 or RSASSA-PSS (RFC 8017, section 8); any
//! verifier accepts the signatures. Keys come from PKCS#8, PKCS#1 or numbers, and signatures are
//! octets. The feature `rsa-compat` also converts keys and signatures of the `rsa` crate.
//!
//! [`BatchDecryptor`] decrypts RSAES-PKCS1-v1_5, with implicit rejection, and RSAES-OAEP (RFC 8017,
//! section 7). With a [`PublicKey`], [`BatchVerifier`] checks signatures and [`BatchEncryptor`]
//! encrypts. [`blind`] has blind signatures (RFC 9474).
//!
//! * A key is prepared once, as a [`KeyHandle`], and used in any number of calls.
//!
//! * One call may sign with many keys, of different sizes too ([`BatchSigner::sign_each`]).
//!
//! * Every result is checked with the public exponent before it is released, whichever backend
//!   computed it. The check compares it with the message representative that was to be signed. It
//!   cannot be disabled: one wrong half of a CRT signature reveals the key (Boneh, DeMillo and
//!   Lipton, 1997). An item that fails the check fails alone.
//!
//! * The base is blinded unless you disable that; see [`BatchSigner::blinding`].
//!
//! ```
//! use batch_modexp::backend::Serial;
//! use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, sha2::Sha256};
//!
//! let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
//! let key = KeyHandle::from_pkcs8_pem(&pem)?;
//! let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
//!
//! let messages = ["one", "two", "three"];
//! for signature in signer.sign(&mut getrandom::SysRng, &key, &messages)? {
//!     assert_eq!(signature?.as_ref().len(), key.size());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod backend;
mod batch;
pub mod blind;
mod decryptor;
mod encryption;
mod encryptor;
mod error;
mod hash;
#[cfg(any(feature = "hazmat", test))]
pub mod hazmat;
mod key;
mod keygen;
#[cfg(all(test, feature = "std", feature = "rsa-compat", target_arch = "x86_64"))]
mod memcheck;
mod mgf1;
mod octets;
mod output;
mod private_op;
mod public_op;
mod representative;
mod scheme;
mod signature;
mod signatures;
mod signer;
mod verifier;

/// The SHA-2 hash functions, in the version that the schemes accept.
pub use sha2;
/// The SHA-3 hash functions, in the version that the schemes accept.
pub use sha3;

pub use decryptor::BatchDecryptor;
pub use encryption::{AnyEncryptionScheme, EncryptionScheme, RsaesOaep, RsaesPkcs1v15};
pub use encryptor::BatchEncryptor;
pub use error::Error;
pub use hash::Hash;
#[cfg(feature = "encrypted")]
#[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
pub use key::{EncryptionAlgorithm, decrypt_pkcs8};
pub use key::{KeyFault, KeyHandle, PemBlock, PublicKey, Restriction, RsaComponents, decode_pem};
pub use keygen::{GeneratedKey, KeyGenerator};
pub use scheme::{AnyScheme, Pkcs1v15, Pss, Scheme};
pub use signature::Signature;
pub use signatures::{Ciphertexts, IntoSignatures, Iter, SecretOctets, Signatures};
pub use signer::BatchSigner;
pub use verifier::{BatchVerifier, Verdicts};

/// The shortest accepted modulus of a key, in bits.
pub const MIN_BITS: u32 = 1024;

/// The longest accepted modulus of a private key, in bits.
pub const MAX_BITS: u32 = 8192;

/// The longest accepted modulus of a public key, in bits.
pub const MAX_PUBLIC_BITS: u32 = 16_384;

/// Doctests of the guide.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../docs/verification.md")]
struct Guide;
