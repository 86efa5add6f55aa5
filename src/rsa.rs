//! RSA signatures by the batch.
//!
//! [`BatchSigner`] turns keys of the `rsa` crate and messages into its own signature
//! types, which any verifier accepts: RSASSA-PKCS1-v1_5 and RSASSA-PSS (RFC 8017, section 8).
//!
//! * A key is prepared once, as a [`KeyHandle`], and used in as many calls as you like.
//! * One call may sign with many keys, of different sizes too ([`BatchSigner::sign_each`]).
//! * Every result is checked with the public exponent against the message representative that was to be
//!   signed before it leaves, above whatever backend computed it. This cannot be turned off: one wrong half of a CRT signature gives away the key
//!   (Boneh, DeMillo and Lipton, 1997). A lane that fails the check fails alone.
//! * The base is blinded unless you turn that off; see [`BatchSigner::blinding`].
//!
//! ```
//! use batch_modexp::backend::Auto;
//! use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
//! use rsa::{RsaPrivateKey, pkcs1v15, sha2::Sha256, signature::Verifier};
//! # let mut rng = rsa::rand_core::UnwrapErr(getrandom::SysRng);
//!
//! let private_key = RsaPrivateKey::new(&mut rng, 2048)?;
//! let key = KeyHandle::new(&private_key)?;
//! let signer = BatchSigner::new(Auto::new()?, Pkcs1v15::<Sha256>::new());
//!
//! let messages = ["one", "two", "three"];
//! let signatures = signer.sign(&mut rng, &key, &messages)?;
//!
//! let verifier = pkcs1v15::VerifyingKey::<Sha256>::new(private_key.to_public_key());
//! for (message, signature) in messages.iter().zip(signatures) {
//!     verifier.verify(message.as_bytes(), &signature?)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "hazmat")]
pub mod hazmat;
mod key;
#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
mod memcheck;
mod octets;
mod private_op;
mod scheme;
mod signer;

pub use key::KeyHandle;
pub use private_op::{Candidates, Checked, HostThreads, PrivateOp, RsaPrivateOp};
pub use scheme::{Pkcs1v15, Pss, Scheme};
pub use signer::{BatchSigner, Signatures};

/// The shortest modulus that is accepted, in bits.
pub const MIN_BITS: u32 = 1024;

/// The longest modulus that is accepted, in bits.
pub const MAX_BITS: u32 = 8192;
