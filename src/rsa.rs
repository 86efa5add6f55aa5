//! Batches of RSA signatures, decryptions, verifications and encryptions.
//!
//! [`BatchSigner`] makes signatures that any verifier accepts: RSASSA-PKCS1-v1_5 and RSASSA-PSS
//! (RFC 8017, section 8). [`BatchDecryptor`] decrypts RSAES-PKCS1-v1_5, with implicit rejection,
//! and RSAES-OAEP (RFC 8017, section 7). Under a [`PublicKey`], [`BatchVerifier`] checks signatures
//! and [`BatchEncryptor`] encrypts. [`blind`] has blind signatures (RFC 9474).
//!
//! Keys come from PKCS#8, PKCS#1 or numbers; signatures are octets. The feature `rsa-compat`
//! converts keys and signatures of the `rsa` crate.
//!
//! * A key is prepared once, as a [`KeyHandle`].
//! * One call may sign with many keys, also of different sizes ([`BatchSigner::sign_each`]).
//! * Every result is checked before it is returned. The check compares its power of e with the
//!   encoded message. This holds for every backend and cannot be turned off. One wrong half
//!   of a CRT signature reveals the key (Boneh, DeMillo and Lipton, 1997). An item that fails the
//!   check does not affect others.
//! * The base is blinded unless you turn that off; see [`BatchSigner::blinding`].
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
mod blocks;
mod decryptor;
mod encryption;
mod encryptor;
mod error;
mod hash;
#[cfg(any(feature = "hazmat", test))]
pub mod hazmat;
mod key;
mod keygen;
mod limbs;
#[cfg(all(test, feature = "std", feature = "rsa-compat", target_arch = "x86_64"))]
mod memcheck;
mod private_op;
mod random;
mod scheme;
mod signatures;
mod signer;
mod verifier;

/// The SHA-2 hash functions, in the version that the schemes use.
pub use sha2;
/// The SHA-3 hash functions, in the version that the schemes use.
pub use sha3;

pub use decryptor::BatchDecryptor;
pub use encryption::{AnyEncryptionScheme, EncryptionScheme, OaepHash, RsaesOaep, RsaesPkcs1v15};
pub use encryptor::BatchEncryptor;
pub use error::Error;
#[cfg(feature = "queue")]
pub(crate) use hash::AnyDigest;
pub use hash::Hash;
#[cfg(feature = "encrypted")]
#[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
pub use key::{EncryptionAlgorithm, decrypt_pkcs8};
pub use key::{KeyFault, KeyHandle, PemBlock, PublicKey, Restriction, RsaComponents, decode_pem};
pub use keygen::{GeneratedKey, KeyGenerator};
pub use scheme::{AnyScheme, Pkcs1v15, Pss, Scheme};
pub use signatures::{Ciphertexts, IntoSignatures, Iter, SecretOctets, Signature, Signatures};
pub use signer::BatchSigner;
#[cfg(feature = "queue")]
pub(crate) use signer::check_prehash;
pub use verifier::{BatchVerifier, Verdicts};

/// The shortest modulus of an accepted key, in bits.
pub const MIN_BITS: u32 = 1024;

/// The longest modulus of an accepted private key, in bits.
pub const MAX_BITS: u32 = 8192;

/// The longest modulus of an accepted public key, in bits.
pub const MAX_PUBLIC_BITS: u32 = 16_384;

/// The program in `docs/verification.md`, run as a doc test.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../docs/verification.md")]
struct Guide;
