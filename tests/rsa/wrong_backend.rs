//! Backends that compute wrongly: what they return must never become a signature.

use batch_modexp::backend::{Parallel, Serial};
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{BatchSigner, Candidates, KeyHandle, Pkcs1v15, PrivateOp, RsaPrivateOp};
use batch_modexp::secret::Secret;
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, Limb, Resize};
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

/// What goes wrong between a sound private operation and the caller.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Nothing,
    FlippedBit,
    TooFew,
    TooMany,
    Swapped,
    /// The valid signature of the first lane's representative by another key.
    OtherKey,
    Wider,
    Narrower,
}

/// Overrides the whole private operation.
struct Wrapper<'a> {
    wrong: Wrong,
    other_key: &'a KeyHandle,
}

impl BatchModExp<BoxedUint> for Wrapper<'_> {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        Serial.batch_mod_exp(batch, exponent_bits, out)
    }
}

impl RsaPrivateOp for Wrapper<'_> {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        let mut candidates = Serial.private_op(batch)?;
        let mut first = BoxedUint::clone(candidates[0].as_ref().unwrap());
        match self.wrong {
            Wrong::Nothing => {}
            Wrong::FlippedBit => first.as_mut_limbs()[3] ^= Limb::ONE,
            Wrong::TooFew => drop(candidates.pop()),
            Wrong::TooMany => candidates.push(Ok(Secret::new(first.clone()))),
            Wrong::Swapped => candidates.swap(0, 1),
            Wrong::OtherKey => {
                let op = [PrivateOp::new(self.other_key, batch[0].block(), None)];
                return Serial.private_op(&op).map(|mut of_other_key| {
                    candidates[0] = of_other_key.remove(0);
                    candidates
                });
            }
            Wrong::Wider => first = first.resize(2 * batch[0].block().bits_precision()),
            Wrong::Narrower => first = first.resize_unchecked(64),
        }
        if !matches!(self.wrong, Wrong::TooFew | Wrong::TooMany | Wrong::Swapped) {
            candidates[0] = Ok(Secret::new(first));
        }
        Ok(candidates)
    }
}

/// Whatever a backend hands out, the check stands above it.
#[test]
fn no_wrong_candidate_gets_through() {
    use Wrong::*;
    // Two keys of 2048 bits.
    let (key, other) = (keys::rsa2048(), keys::all_sizes().remove(3));
    let (handle, other_key) = (
        KeyHandle::new(&key).unwrap(),
        KeyHandle::new(&other).unwrap(),
    );
    let messages = ["a", "b", "c"];
    for (wrong, bad_lanes) in [
        (Nothing, &[][..]),
        (FlippedBit, &[0]),
        (TooFew, &[0, 1, 2]),
        (TooMany, &[0, 1, 2]),
        (Swapped, &[0, 1]),
        (OtherKey, &[0]),
        (Wider, &[0]),
        (Narrower, &[0]),
    ] {
        let backend = Wrapper {
            wrong,
            other_key: &other_key,
        };
        let expected: Vec<_> = (0..messages.len())
            .map(|lane| bad_lanes.contains(&lane).then_some(Error::Fault))
            .collect();
        for blinding in [true, false] {
            let signer = BatchSigner::new(&backend, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            let signatures = signer.sign(&mut keys::rng(), &handle, &messages).unwrap();
            let verdicts: Vec<_> = signatures.into_iter().map(Result::err).collect();
            assert_eq!(verdicts, expected, "{wrong:?}, blinding: {blinding}");
        }
        let blocks = [1, 2, 3].map(|octet| (&handle, vec![octet; handle.size()]));
        let results = rsasp1(&backend, Some(&mut keys::rng()), &blocks).unwrap();
        let verdicts: Vec<_> = results.into_iter().map(Result::err).collect();
        assert_eq!(verdicts, expected, "{wrong:?}, raw");
    }
}

/// Serves moduli of up to 1024 bits.
struct Narrow;

impl BatchModExp<BoxedUint> for Narrow {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        let bits = |instance: &ModExp<'_, BoxedUint>| instance.params.modulus().bits_precision();
        match batch.iter().position(|instance| bits(instance) > 1024) {
            Some(index) => Err(Error::ModulusWidth {
                index,
                bits: bits(&batch[index]),
                max_bits: 1024,
            }),
            None => Serial.batch_mod_exp(batch, exponent_bits, out),
        }
    }
}

impl RsaPrivateOp for Narrow {}

/// A width that the backend does not serve is an error of the lanes that have it, at the caller's positions.
#[test]
fn an_error_of_one_key_stays_in_its_lanes() {
    let (narrow, wide) = (keys::rsa1024(), keys::all_sizes().remove(7));
    let (narrow, wide) = (
        KeyHandle::new(&narrow).unwrap(),
        KeyHandle::new(&wide).unwrap(),
    );
    // The digest of the first lane is too short, so that it never reaches the backend.
    let batch = [
        (&narrow, &[0; 31][..]),
        (&narrow, &[1; 32]),
        (&wide, &[2; 32]),
        (&narrow, &[3; 32]),
        (&wide, &[4; 32]),
    ];
    let parallel = Parallel::with_threads(Narrow, 2.try_into().unwrap()).unwrap();
    for backend in [&Narrow as &dyn RsaPrivateOp, &parallel] {
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(false);
        let signatures = signer.sign_prehash_each(&mut keys::rng(), &batch).unwrap();
        for (lane, signature) in signatures.iter().enumerate() {
            let expected = match lane {
                0 => Some(Error::DigestLength {
                    index: 0,
                    len: 31,
                    expected: 32,
                }),
                2 | 4 => Some(Error::ModulusWidth {
                    index: lane,
                    bits: 2048,
                    max_bits: 1024,
                }),
                _ => None,
            };
            assert_eq!(signature.as_ref().err(), expected.as_ref());
        }
    }
}
