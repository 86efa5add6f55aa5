//! Backends that compute wrongly: what they return must never become a signature.

use batch_modexp::backend::{Parallel, Serial};
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, PrivateOps, RsaPrivateOp};
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, Limb};
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::sha2::Sha256;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

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

/// Breaks down in every exponentiation.
struct BreaksDown;

impl BatchModExp<BoxedUint> for BreaksDown {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        _: &[ModExp<'_, BoxedUint>],
        _: u32,
        _: &mut [BoxedUint],
    ) -> Result<(), Error> {
        Err(Error::ThreadPool { threads: 7 })
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
                    let fault = batch_modexp::rsa::Error::Fault { index: lane };
                    assert_eq!(signature.as_ref().unwrap_err(), &fault);
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
    assert_eq!(error, Error::ThreadPool { threads: 7 }.into());
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
    /// As if numbers were wider, or narrower.
    Shifted,
    /// The signature plus n, which is right modulo n, if there is room for it.
    NotReduced,
    /// Nothing is delivered.
    Forgotten,
}

/// Overrides the whole private operation.
struct Wrapper<'a> {
    wrong: Wrong,
    key: &'a PrivateKey,
    other_key: &'a PrivateKey,
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

/// The value of limbs.
fn value(limbs: &[Limb]) -> BigUint {
    let limbs = limbs.iter().rev();
    limbs.fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
}

/// Writes a value to limbs, without what does not fit.
fn write(value: &BigUint, limbs: &mut [Limb]) {
    for (limb, i) in limbs.iter_mut().zip(0..) {
        let low: BigUint = (value >> (i * Limb::BITS)) % (BigUint::from(1u8) << Limb::BITS);
        *limb = Limb(low.try_into().unwrap());
    }
}

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_be(&number.to_be_bytes())
}

impl RsaPrivateOp for Wrapper<'_> {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), batch_modexp::rsa::Error> {
        let chunk = ops.open()?;
        let limbs = chunk.limbs();
        let mut candidates = chunk.candidates(&Serial)?;
        match self.wrong {
            Wrong::Nothing => {}
            Wrong::FlippedBit => candidates[3] ^= Limb::ONE,
            Wrong::TooFew => candidates.truncate(2 * limbs),
            Wrong::TooMany => {
                let longer = [&candidates[..], &candidates[..limbs]].concat();
                return chunk.deliver(&longer);
            }
            Wrong::Swapped => {
                let (first, others) = candidates.split_at_mut(limbs);
                first.swap_with_slice(&mut others[..limbs]);
            }
            Wrong::OtherKey => {
                let (n, d) = (big(self.other_key.n()), big(self.other_key.d()));
                let representative = value(&chunk.representatives()[..limbs]);
                write(&representative.modpow(&d, &n), &mut candidates[..limbs]);
            }
            Wrong::Shifted => candidates[..limbs].rotate_right(1),
            Wrong::NotReduced => {
                let sum = value(&candidates[..limbs]) + big(self.key.n());
                write(&sum, &mut candidates[..limbs]);
            }
            Wrong::Forgotten => return Ok(()),
        }
        chunk.deliver(&candidates)
    }
}

/// Whatever a backend hands out, the check stands above it.
#[test]
fn no_wrong_candidate_gets_through() {
    use Wrong::*;
    // Two keys of 2048 bits.
    let (key, other_key) = (keys::rsa2048(), keys::all_sizes().remove(3));
    let handle = KeyHandle::new(&key).unwrap();
    let messages = ["a", "b", "c"];
    for (wrong, bad_lanes) in [
        (Nothing, &[][..]),
        (FlippedBit, &[0]),
        (TooFew, &[0, 1, 2]),
        (TooMany, &[0, 1, 2]),
        (Swapped, &[0, 1]),
        (OtherKey, &[0]),
        (Shifted, &[0]),
        (NotReduced, &[0]),
        (Forgotten, &[0, 1, 2]),
    ] {
        let backend = Wrapper {
            wrong,
            key: &key,
            other_key: &other_key,
        };
        let expected: Vec<_> = (0..messages.len())
            .map(|lane| {
                bad_lanes
                    .contains(&lane)
                    .then_some(batch_modexp::rsa::Error::Fault { index: lane })
            })
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

/// Delivers in parts, the later ones first, and some of them twice.
struct OutOfOrder;

impl BatchModExp<BoxedUint> for OutOfOrder {
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

impl RsaPrivateOp for OutOfOrder {
    fn private_op(&self, mut ops: PrivateOps<'_>) -> Result<(), batch_modexp::rsa::Error> {
        assert!(!ops.is_empty());
        Serial.private_op(ops.again())?;
        let middle = ops.len() / 2;
        let (head, tail) = ops.split_at(middle);
        for ops in [tail, head] {
            for ops in ops.chunks(1) {
                assert_eq!(ops.keys().len(), ops.len());
                Serial.private_op(ops)?;
            }
        }
        Ok(())
    }
}

#[test]
fn parts_may_come_in_any_order() {
    let handles = [keys::rsa1024(), keys::rsa2048()].map(|key| KeyHandle::new(&key).unwrap());
    let order = [0, 1, 1, 0, 1];
    let batch: Vec<_> = (0..order.len())
        .map(|lane| (&handles[order[lane]], [lane as u8; 9]))
        .collect();
    let sign = |backend: &dyn RsaPrivateOp| {
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
        signer.sign_each(&mut keys::rng(), &batch).unwrap()
    };
    assert_eq!(sign(&OutOfOrder), sign(&Serial));
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
                0 => Some(batch_modexp::rsa::Error::DigestLength {
                    index: 0,
                    len: 31,
                    expected: 32,
                }),
                2 | 4 => Some(batch_modexp::rsa::Error::Backend(Error::ModulusWidth {
                    index: lane,
                    bits: 2048,
                    max_bits: 1024,
                })),
                _ => None,
            };
            assert_eq!(signature.as_ref().err(), expected.as_ref());
        }
    }
}
