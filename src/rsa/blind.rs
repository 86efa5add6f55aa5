//! Blind RSA signatures (RFC 9474): an issuer signs messages that it never sees.
//!
//! A client hides a message in a *blinded message*. The issuer makes a *blind signature* of it,
//! which the client turns into a PSS signature of the message. Neither message nor signature can be
//! linked to what the issuer saw.
//!
//! * Issuers use a [`BlindSigner`], which signs batches on any backend.
//! * Clients use a [`Variant`]: [`prepare`](Variant::prepare), [`blind`](Variant::blind), and then
//!   [`ClientState::finalize`].
//! * Verifiers use [`BatchVerifier`](super::BatchVerifier) with [`Variant::scheme`].
//!
//! An issuer's key must be used for one variant only, and only for blind signatures (RFC 9474,
//! section 6.2).
//!
//! ```
//! use batch_modexp::backend::Serial;
//! use batch_modexp::rsa::blind::{BlindSigner, Variant};
//! use batch_modexp::rsa::{BatchVerifier, KeyHandle};
//!
//! # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
//! let key = KeyHandle::from_pkcs8_pem(&pem)?;
//! let (public, rng) = (key.public_key(), &mut getrandom::SysRng);
//! let variant = Variant::PssRandomized;
//!
//! // The client.
//! let message = variant.prepare(rng, "a vote")?;
//! let (blinded, state) = variant.blind(rng, &public, &*message)?;
//! // The issuer.
//! let blind_signatures = BlindSigner::new(Serial).sign(rng, &key, &[blinded])?;
//! // The client again.
//! let signature = state.finalize(blind_signatures.get(0)?)?;
//!
//! // A verifier, which gets the message and its signature.
//! let verdicts = BatchVerifier::new(Serial, variant.scheme()).verify(&public, &[(&*message, signature)])?;
//! assert!(verdicts.is_valid(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::secret::Secret;
use rand_core::TryCryptoRng;
use sha2::Sha384;

use super::key::{PublicKey, Restriction};
use super::scheme::sealed::Sealed;
use super::scheme::{AnyScheme, Pss, permit};
use crate::rsa::Error;

mod client;
mod issuer;

pub use client::ClientState;
pub use issuer::BlindSigner;

/// The length of the random prefix of a prepared message in bytes (RFC 9474, section 4.1).
const PREFIX_LEN: usize = 32;

/// The named variants of RSABSSA (RFC 9474, section 5). All hash with SHA-384, also for the mask
/// generation.
///
/// A *randomized* variant prefixes a message with 32 random octets, so that an issuer with a
/// malicious key cannot guess it. A *deterministic* variant leaves the message unchanged, so the
/// message itself must be unpredictable (RFC 9474, section 7.3).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Variant {
    /// RSABSSA-SHA384-PSS-Randomized: a salt of 48 bytes. Use it unless a protocol names another.
    PssRandomized,
    /// RSABSSA-SHA384-PSSZERO-Randomized: no salt, so that a prepared message has one signature.
    PssZeroRandomized,
    /// RSABSSA-SHA384-PSS-Deterministic: a salt of 48 bytes. Privacy Pass uses it (RFC 9578, token
    /// type 0x0002).
    PssDeterministic,
    /// RSABSSA-SHA384-PSSZERO-Deterministic: no salt, so that a message has one signature.
    PssZeroDeterministic,
}

impl Variant {
    /// The length of the salt in bytes: 48 or 0.
    #[must_use]
    pub const fn salt_len(self) -> usize {
        match self {
            Self::PssRandomized | Self::PssDeterministic => 48,
            Self::PssZeroRandomized | Self::PssZeroDeterministic => 0,
        }
    }

    /// Whether [`prepare`](Self::prepare) adds a random prefix.
    #[must_use]
    pub const fn is_randomized(self) -> bool {
        matches!(self, Self::PssRandomized | Self::PssZeroRandomized)
    }

    /// The scheme that verifies signatures of prepared messages.
    #[must_use]
    pub const fn scheme(self) -> Pss<Sha384> {
        Pss::with_salt_len(self.salt_len())
    }

    /// Prepares a message (RFC 9474, section 4.1): with a randomized variant 32 random octets
    /// followed by the message, else the message itself.
    ///
    /// The prepared message is signed. A verifier needs all of it, with its prefix.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`].
    pub fn prepare<R: TryCryptoRng + ?Sized>(
        self,
        rng: &mut R,
        message: impl AsRef<[u8]>,
    ) -> Result<Secret<Vec<u8>>, Error> {
        let message = message.as_ref();
        let prefix_len = if self.is_randomized() { PREFIX_LEN } else { 0 };
        let mut prepared = Secret::new(alloc::vec![0; prefix_len + message.len()]);
        let (prefix, rest) = prepared.split_at_mut(prefix_len);
        if self.is_randomized() {
            rng.try_fill_bytes(prefix).map_err(|_| Error::Rng)?;
        }
        rest.copy_from_slice(message);
        Ok(prepared)
    }

    /// The public key that an issuer publishes (RFC 9474, section 6.2; RFC 9578, section 6.5).
    ///
    /// SubjectPublicKeyInfo in DER of the type id-RSASSA-PSS, with the variant's hash functions and
    /// salt length. Identifiers of hash functions have no parameters, as in the vectors of RFC
    /// 9578; in [`PublicKey::as_der`] they have NULL. The identifier of a Privacy Pass key is the
    /// SHA-256 digest of these octets.
    ///
    /// # Errors
    ///
    /// [`Error::KeyRestricted`] if the key is for another hash function or a longer salt.
    pub fn public_key_der(self, key: &PublicKey) -> Result<Vec<u8>, Error> {
        self.check_key(key.restriction())?;
        Ok(key.to_pss_der::<Sha384>(self.salt_len() as u8))
    }

    /// Fails if the key may not sign by this variant; the error is that of a batch of one.
    fn check_key(self, restriction: Restriction) -> Result<(), Error> {
        // Faster than the typed scheme, and an issuer asks for each item.
        permit(restriction, AnyScheme::from(self.scheme()).narrowest())
    }
}

/// The name in RFC 9474.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PssRandomized => "RSABSSA-SHA384-PSS-Randomized",
            Self::PssZeroRandomized => "RSABSSA-SHA384-PSSZERO-Randomized",
            Self::PssDeterministic => "RSABSSA-SHA384-PSS-Deterministic",
            Self::PssZeroDeterministic => "RSABSSA-SHA384-PSSZERO-Deterministic",
        })
    }
}

/// The program in `docs/blind-rsa.md`, run as a doc test.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../../docs/blind-rsa.md")]
struct Guide;
