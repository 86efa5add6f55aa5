//! A batch of signatures with one fault in it, and what comes of that.

use alloc::vec::Vec;
use core::ptr;

use chacha20::ChaCha20Rng;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};
use num_bigint::BigUint;
use rand_core::{Rng, SeedableRng};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs1v15::SigningKey;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::PublicKeyParts;
use sha2::Sha256;

use super::LANES;
use super::fault::{Form, Kind, Place};
use super::faulty::{Check, Faulty};
use crate::Error;
use crate::rsa::key::{Crt, Private};
use crate::rsa::{BatchSigner, KeyHandle, Pkcs1v15, RsaPrivateOp};
use crate::secret::Secret;

/// One fault, which follows from these values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) form: Form,
    pub(super) blinded: bool,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) seed: u64,
}

/// What a fault led to; the later ones matter more.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Outcome {
    /// All results are right: the fault changed nothing, or nothing that matters.
    Harmless,
    /// The lanes that were hit failed, one of them at least.
    Caught,
    /// The call failed as a whole.
    Refused,
    /// The right signature, not of what the caller gave but of what the block was when the computation began.
    OtherBlock,
    /// Something else left.
    Escaped,
}

/// Two keys of one size with some lanes each, and their signatures by the `rsa` crate.
pub(super) struct Rig {
    keys: Vec<(KeyHandle, PrivateKey)>,
    lanes: Vec<Lane>,
}

struct Lane {
    key: usize,
    message: [u8; 5],
    signature: Vec<u8>,
}

impl Rig {
    pub(super) fn new(form: Form) -> Self {
        let pems = [
            include_str!("../../../../../tests/keys/rsa1024.pem"),
            include_str!("../../../../../tests/keys/rsa1024-other.pem"),
        ];
        let rsa_keys = pems.map(|pem| PrivateKey::from_pkcs1_pem(pem).unwrap());
        let mut keys: Vec<_> = rsa_keys
            .map(|key| {
                let mut imported = key.clone();
                if form == Form::Plain {
                    imported.clear_precomputed();
                }
                let handle = KeyHandle::new(&imported).unwrap();
                assert_eq!(handle.has_crt(), form == Form::Crt);
                (handle, key)
            })
            .into();
        // As a batch sorts them, so that lanes stand there as they stand here.
        keys.sort_by_key(|(handle, _)| ptr::from_ref(handle.parts()));
        let lanes = (0..LANES).map(|i| {
            let (key, message) = (usize::from(2 * i > LANES), [b'0' + i as u8; 5]);
            let one_by_one = SigningKey::<Sha256>::new(keys[key].1.clone());
            Lane {
                key,
                message,
                signature: one_by_one.sign(&message).to_vec(),
            }
        });
        let lanes = lanes.collect();
        Self { keys, lanes }
    }

    /// Signs all lanes on `backend` with `fault`, and says what comes of it. Then signs them once more on the same
    /// backend.
    ///
    /// # Panics
    ///
    /// If the fault never came, if a lane that was not hit has no result or a wrong one, or if a result of the second call
    /// is wrong.
    pub(super) fn run<B: RsaPrivateOp>(&self, backend: B, fault: &Fault, check: Check) -> Outcome {
        let mut random = ChaCha20Rng::seed_from_u64(fault.seed);
        let faulty = Faulty::new(backend, fault.place, fault.kind, check, random.next_u64());
        let mut handles: Vec<_> = self.lanes.iter().map(|l| &self.keys[l.key].0).collect();

        let outcome = match fault.place {
            Place::CrtValues | Place::Exponent | Place::Modulus => {
                let lane = random.next_u32() as usize % LANES;
                let struck = struck(handles[lane], fault, &mut random);
                handles[lane] = &struck;
                let results = self.sign(&faulty, &handles, fault, &mut random);
                self.judge(results, &[lane], &[], fault)
            }
            _ => {
                let results = self.sign(&faulty, &handles, fault, &mut random);
                assert!(!faulty.is_armed(), "{fault:?} never came");
                self.judge(results, &faulty.hit_lanes(), &faulty.blocks(), fault)
            }
        };

        let handles: Vec<_> = self.lanes.iter().map(|l| &self.keys[l.key].0).collect();
        let later = self.sign(&faulty, &handles, fault, &mut random).unwrap();
        for (lane, later) in self.lanes.iter().zip(later) {
            assert_eq!(later.unwrap(), lane.signature, "{fault:?}: a later call");
        }
        outcome
    }

    fn sign<B: RsaPrivateOp>(
        &self,
        backend: &B,
        handles: &[&KeyHandle],
        fault: &Fault,
        random: &mut ChaCha20Rng,
    ) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        let messages = self.lanes.iter().map(|lane| lane.message);
        let batch: Vec<_> = handles.iter().copied().zip(messages).collect();
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(fault.blinded);
        let signatures = signer.sign_each(random, &batch)?;
        Ok(signatures
            .into_iter()
            .map(|signature| signature.map(|s| s.to_vec()))
            .collect())
    }

    fn judge(
        &self,
        results: Result<Vec<Result<Vec<u8>, Error>>, Error>,
        hit: &[usize],
        blocks: &[Vec<Limb>],
        fault: &Fault,
    ) -> Outcome {
        let results = match results {
            // No random number is found below what n has become.
            Err(Error::Rng) if fault.place == Place::Modulus && fault.blinded => {
                return Outcome::Refused;
            }
            results => results.unwrap(),
        };
        assert_eq!(results.len(), LANES);
        let outcomes = self.lanes.iter().zip(results).enumerate();
        let outcomes = outcomes.map(|(i, (lane, result))| match result {
            Ok(signature) if signature == lane.signature => Outcome::Harmless,
            other => {
                assert!(hit.contains(&i), "{fault:?}: lane {i} was not hit");
                match other {
                    Ok(signature) if fault.place == Place::Block => {
                        self.signs_block(lane, &signature, &blocks[i])
                    }
                    Ok(_) => Outcome::Escaped,
                    Err(error) => {
                        assert_eq!(error, Error::Fault { index: i }, "{fault:?}");
                        Outcome::Caught
                    }
                }
            }
        });
        outcomes.max().unwrap()
    }

    /// Whether a signature is right for a block, by num-bigint.
    fn signs_block(&self, lane: &Lane, signature: &[u8], block: &[Limb]) -> Outcome {
        let key = &self.keys[lane.key].1;
        let [n, e] = [key.n_bytes(), key.e_bytes()].map(|octets| BigUint::from_bytes_be(&octets));
        let octets: Vec<u8> = block.iter().flat_map(|l| l.0.to_le_bytes()).collect();
        match BigUint::from_bytes_be(signature).modpow(&e, &n)
            == BigUint::from_bytes_le(&octets) % n
        {
            true => Outcome::OtherBlock,
            false => Outcome::Escaped,
        }
    }
}

/// The key with a fault in its numbers.
fn struck(key: &KeyHandle, fault: &Fault, random: &mut ChaCha20Rng) -> KeyHandle {
    let odd = |mut number: BoxedUint| {
        let lowest = &mut number.as_mut_limbs()[0];
        *lowest |= Limb::ONE;
        BoxedMontyParams::new(Odd::new(number).unwrap())
    };
    key.altered(|parts| match (fault.place, &mut parts.private) {
        (Place::Modulus, _) => {
            let mut n = parts.n.modulus().as_ref().clone();
            fault.kind.strike(&mut [n.as_mut_limbs()], random);
            parts.n = odd(n);
        }
        (_, Private::Plain { d_less_1 }) => {
            fault.kind.strike(&mut [d_less_1.as_mut_limbs()], random);
        }
        (_, Private::Crt(crt)) => {
            let mut primes =
                [Crt::p(crt), Crt::q(crt)].map(|prime| prime.modulus().as_ref().clone());
            let [p, q] = &mut primes;
            let numbers = [
                p,
                q,
                &mut *crt.dp_less_1,
                &mut *crt.dq_less_1,
                &mut *crt.qinv,
            ];
            let mut numbers = numbers.map(|number| number.as_mut_limbs());
            fault.kind.strike(&mut numbers, random);
            let [p, q] = primes.map(|prime| Secret::new(odd(prime).as_ref().clone()));
            (crt.p, crt.q) = (p, q);
        }
    })
}
