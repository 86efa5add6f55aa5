//! The client's part: blinds a message, and unblinds the signature.
//!
//! The encoded message m and the random number r are secret until the client shows a signature. No
//! branch and no address depends on them. Their buffers are wiped.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::limbs::ct_eq;
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use batch_modexp_core::width::{WithLimbs, load_limbs, with_limbs};
use batch_modexp_core::{PublicExponent, Serial};
use crypto_bigint::{Limb, Odd, Uint};
use rand_core::TryCryptoRng;
use zeroize::Zeroize;

use super::Variant;
use crate::rsa::Error;
use crate::rsa::blocks::{Range, copy_block};
use crate::rsa::key::PublicKey;
use crate::rsa::limbs::{limbs_to_octets, octets_to_limbs};
use crate::rsa::random::draw_below;
use crate::rsa::scheme::Scheme;
use crate::rsa::signatures::Signature;

impl Variant {
    /// Blinds a prepared message for the issuer with `key` (RFC 9474, section 4.2). Returns the
    /// blinded message, as long as the modulus, and the state for
    /// [`finalize`](ClientState::finalize).
    ///
    /// Constant-time in the message and the random numbers; the length of the message is public.
    /// Computes on the calling thread. All clients must have the same key, or the issuer can tell
    /// them apart by it.
    ///
    /// # Errors
    ///
    /// [`Error::KeyRestricted`] with the index 0 for a key that may not sign by the variant,
    /// [`Error::Rng`], or [`Error::Blinding`].
    pub fn blind<R: TryCryptoRng + ?Sized>(
        self,
        rng: &mut R,
        key: &PublicKey,
        message: impl AsRef<[u8]>,
    ) -> Result<(Vec<u8>, ClientState), Error> {
        self.check_key(key.restriction())?;
        let n = key.parts().n().limbs;
        let zeros = || Secret::new(vec![Limb::ZERO; n.len()]);
        let mut octets = Secret::new(vec![0; key.size()]);

        // Enough to wipe what hash functions leave on the stack.
        scrubbed(|| self.encode(rng, key, message.as_ref(), &mut octets))?;
        let mut encoded = zeros();
        octets_to_limbs(&octets, &mut encoded);
        let mut r = zeros();
        draw_below(n, key.bits(), rng, &mut octets, &mut r)?;

        // m r is invertible only if m and r are. m (m r)^-1 is the inverse of r.
        let a = product(key, &encoded, &r);
        let inverse = with_limbs(n.len(), Inverse { n, a: &a }).ok_or(Error::Blinding)?;
        let inverse = product(key, &inverse, &encoded);

        let blinded = product(key, &power(key, &r), &encoded);
        let blinded = limbs_to_octets(&blinded, key.size()).into_inner();
        let state = ClientState {
            key: key.clone(),
            encoded,
            inverse,
        };
        Ok((blinded, state))
    }

    /// Hashes a message and encodes the digest in `encoded`, which is as long as the modulus.
    fn encode<R: TryCryptoRng + ?Sized>(
        self,
        rng: &mut R,
        key: &PublicKey,
        message: &[u8],
        encoded: &mut [u8],
    ) -> Result<(), Error> {
        let scheme = self.scheme();
        let mut digest = scheme.digest(message);
        let result = scheme.encode(&digest, key.bits(), rng, encoded);
        digest.as_mut_slice().zeroize();
        result
    }
}

/// The state of a client between blinding and finalizing: the key, the encoded message, and the
/// inverse of r.
///
/// It links a blinded message to its signature, and is wiped on drop.
pub struct ClientState {
    key: PublicKey,
    encoded: Secret<Vec<Limb>>,
    inverse: Secret<Vec<Limb>>,
}

impl ClientState {
    /// Unblinds the issuer's signature and verifies it (RFC 9474, section 4.4).
    ///
    /// The signature raised to e must equal the encoded message of the blinding. So it is a valid
    /// PSS signature with the salt that the client has drawn.
    ///
    /// # Errors
    ///
    /// [`Error::BlockOutOfRange`] if the blind signature is not as long as the modulus in bytes, or
    /// not below it; [`Error::Verification`] if the result is not a signature of the message. The
    /// index is 0. The state can be used again.
    pub fn finalize(&self, blind_signature: impl AsRef<[u8]>) -> Result<Signature, Error> {
        let (key, blind_signature) = (&self.key, blind_signature.as_ref());
        let mut block = vec![0; key.size()];
        copy_block(blind_signature, &mut block)?;
        let mut number = vec![Limb::ZERO; self.encoded.len()];
        octets_to_limbs(&block, &mut number);
        Range::BelowModulus.check(key.parts(), &number)?;
        let signature = product(key, &number, &self.inverse);
        let power = power(key, &signature);
        if !reveal(ct_eq(&power, &self.encoded)) {
            return Err(Error::Verification { index: 0 });
        }
        Ok(Signature::new(&limbs_to_octets(&signature, key.size())))
    }
}

impl fmt::Debug for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientState")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// `a * b mod n`, with the n of `key`.
fn product(key: &PublicKey, a: &[Limb], b: &[Limb]) -> Secret<Vec<Limb>> {
    Serial.products(&[key.parts().n()], a, b)
}

/// `base^e mod n`, with the n and e of `key`.
fn power(key: &PublicKey, base: &[Limb]) -> Secret<Vec<Limb>> {
    Serial.public_powers(
        &[key.parts().n()],
        &PublicExponent::of_limbs(key.parts().e.as_limbs()),
        base,
    )
}

/// The inverse of `a` modulo an odd n. Whether it exists becomes public.
struct Inverse<'a> {
    n: &'a [Limb],
    a: &'a [Limb],
}

impl WithLimbs for Inverse<'_> {
    type Output = Option<Secret<Vec<Limb>>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        let n = Odd::new(load_limbs::<LIMBS>(self.n)).expect("an RSA modulus is odd");
        let a = Secret::new(load_limbs::<LIMBS>(self.a));
        let inverse = a.invert_odd_mod(&n);
        if !reveal(inverse.is_some()) {
            return None;
        }
        let inverse = Secret::new(inverse.unwrap_or(Uint::ZERO));
        Some(Secret::new(inverse.as_limbs()[..self.n.len()].to_vec()))
    }
}
