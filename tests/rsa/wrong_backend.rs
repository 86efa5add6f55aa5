//! Backends that compute wrongly: what they return must never become a signature.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, RsaPrivateOp};
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, Limb};
use rsa::sha2::Sha256;

use super::keys;

/// Flips the lowest bit of one result of every call with long exponents, that is, of every private
/// exponentiation and of no check.
struct OneBadLane(usize);

impl BatchModExp<BoxedUint> for OneBadLane {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        Serial.batch_mod_exp(batch, exponent_bits, out)?;
        if exponent_bits > 64 {
            out[self.0].as_mut_limbs()[0] ^= Limb::ONE;
        }
        Ok(())
    }
}

impl RsaPrivateOp for OneBadLane {}

/// Breaks down in every exponentiation by e: that of the blinding factors, since the check is not its business.
struct BreaksDown;

impl BatchModExp<BoxedUint> for BreaksDown {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        if exponent_bits > 64 {
            Serial.batch_mod_exp(batch, exponent_bits, out)
        } else {
            Err(Error::ThreadPool { threads: 7 })
        }
    }
}

impl RsaPrivateOp for BreaksDown {}

#[test]
fn a_bad_lane_fails_alone() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let messages = ["a", "b", "c", "d"];
    for blinding in [true, false] {
        let sign = |backend: &dyn RsaPrivateOp| {
            let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            signer.sign(&mut keys::rng(), &handle, &messages).unwrap()
        };
        let sound = sign(&Serial);
        // Each lane has two halves.
        for bad in 0..2 * messages.len() {
            for (lane, (signature, sound)) in sign(&OneBadLane(bad)).iter().zip(&sound).enumerate()
            {
                if lane == bad % messages.len() {
                    assert_eq!(signature.as_ref().unwrap_err(), &Error::Fault);
                } else {
                    assert_eq!(signature, sound);
                }
            }
        }
    }
}

#[test]
fn a_backend_that_breaks_down_fails_the_batch() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(BreaksDown, Pkcs1v15::<Sha256>::new());
    let error = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap_err();
    assert_eq!(error, Error::ThreadPool { threads: 7 });
}

/// The check does not ask the backend for anything.
#[test]
fn a_backend_that_cannot_check_signs() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(BreaksDown, Pkcs1v15::<Sha256>::new()).blinding(false);
    let signatures = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap();
    assert!(signatures[0].is_ok());
}
