//! Runs a batch of private operations with one fault, and classifies the outcome.

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::monty::Modulus;
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{Limb, Odd};
use num_bigint::BigUint;
use rand_core::{Rng, SeedableRng};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs1v15::SigningKey;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use sha2::Sha256;

use super::super::testing::Hooked;
use super::ITEMS;
use super::fault::{Form, Kind, Place};
use super::faulty::{Check, Faulty};
use crate::rsa::hazmat::rsasp1;
use crate::rsa::key::Private;
use crate::rsa::{Error, KeyHandle};

/// One fault, determined by these values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) form: Form,
    pub(super) blinded: bool,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) seed: u64,
}

/// The outcome of a fault; of several the last one in this order counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Outcome {
    /// All results are right: the fault had no effect.
    Harmless,
    /// At least one of the items hit failed.
    Caught,
    /// The call failed as a whole, or refused a block that was hit.
    Refused,
    /// A right signature of the changed block, not of the caller's.
    OtherBlock,
    /// A wrong result was returned.
    Escaped,
}

/// Two keys of one size with some items each.
pub(super) struct Rig {
    keys: Vec<Key>,
}

struct Key {
    handle: KeyHandle,
    n: BigUint,
    e: BigUint,
    /// Blocks with their private operations.
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Key {
    fn new(key: &PrivateKey, form: Form) -> Self {
        let mut imported = key.clone();
        if form == Form::Plain {
            imported.clear_precomputed();
        }
        let handle = KeyHandle::new(&imported).unwrap();
        assert_eq!(handle.has_crt(), form == Form::Crt);

        let number = |octets: &[u8]| BigUint::from_bytes_be(octets);
        let [n, e, d] =
            [key.n_bytes(), key.e_bytes(), key.d().to_be_bytes()].map(|octets| number(&octets));
        let [p, q] = [0, 1].map(|i| number(&key.primes()[i].as_ref().to_be_bytes()));
        let signature = SigningKey::<Sha256>::new(key.clone()).sign(b"message");
        let signature = number(&signature.to_vec());
        let half = n.bits() / 2;
        let blocks = [
            signature.modpow(&e, &n),
            (&n >> (half + 1)) << half,
            &n % (BigUint::from(1u8) << half),
            BigUint::ZERO,
            BigUint::from(1u8),
            &n - 1u8,
            &p * (&q >> 3),
            &q * (&p >> 3),
        ];
        let octets = |number: &BigUint| {
            let octets = number.to_bytes_be();
            [vec![0; handle.size() - octets.len()], octets].concat()
        };
        let with_result = |block: &BigUint| (octets(block), octets(&block.modpow(&d, &n)));
        let blocks = Vec::from(blocks.each_ref().map(with_result));
        assert_eq!(number(&blocks[0].1), signature);
        Self {
            handle,
            n,
            e,
            blocks,
        }
    }
}

/// The input of an item, and its right result.
struct Item<'a> {
    key: &'a Key,
    block: &'a [u8],
    result: &'a [u8],
}

impl Rig {
    pub(super) fn new(form: Form) -> Self {
        let pems = [
            include_str!("../../../../tests/keys/rsa1024.pem"),
            include_str!("../../../../tests/keys/rsa1024-other.pem"),
        ];
        let key = |pem| Key::new(&PrivateKey::from_pkcs1_pem(pem).unwrap(), form);
        let mut keys = Vec::from(pems.map(key));
        // Sorted as a batch sorts them, so that items keep their order.
        keys.sort_by_key(|key| ptr::from_ref(key.handle.parts()));
        Self { keys }
    }

    fn items(&self, random: &mut ChaCha20Rng) -> Vec<Item<'_>> {
        let mut item = |i| {
            let key = &self.keys[usize::from(2 * i > ITEMS)];
            let (block, result) = &key.blocks[random.next_u32() as usize % key.blocks.len()];
            Item { key, block, result }
        };
        (0..ITEMS).map(&mut item).collect()
    }

    /// Computes blocks on `engine` with `fault`, classifies the outcome, and computes them again on
    /// the same backend.
    ///
    /// # Panics
    ///
    /// If the fault never happened, if an item that was not hit has no or a wrong result, or if a
    /// result of the second call is wrong.
    pub(super) fn run(&self, engine: &dyn Engine, fault: &Fault, check: Check) -> Outcome {
        let mut random = ChaCha20Rng::seed_from_u64(fault.seed);
        let items = self.items(&mut random);
        let faulty = Faulty::new(engine, fault.place, fault.kind, check, random.next_u64());
        let mut handles: Vec<_> = items.iter().map(|item| &item.key.handle).collect();

        let outcome = match fault.place {
            Place::CrtValues | Place::Exponent | Place::Modulus | Place::Constants => {
                let item = random.next_u32() as usize % ITEMS;
                let faulty_key = match fault.place {
                    Place::Constants => with_faulty_constants(handles[item], fault, &mut random),
                    _ => with_faulty_part(handles[item], fault, &mut random),
                };
                handles[item] = &faulty_key;
                let results = faulty
                    .with_backend(|backend| compute(backend, &items, &handles, fault, &mut random));
                classify(&items, results, &[item], &[], fault)
            }
            _ => {
                let results = faulty
                    .with_backend(|backend| compute(backend, &items, &handles, fault, &mut random));
                assert!(!faulty.is_armed(), "{fault:?} never came");
                classify(
                    &items,
                    results,
                    &faulty.hit_items(),
                    &faulty.blocks(),
                    fault,
                )
            }
        };

        let handles: Vec<_> = items.iter().map(|item| &item.key.handle).collect();
        let later = compute(
            &Hooked::new(engine, &|_, _, _| ()),
            &items,
            &handles,
            fault,
            &mut random,
        )
        .unwrap();
        for (item, later) in items.iter().zip(later) {
            assert_eq!(later.unwrap(), item.result, "{fault:?}: a later call");
        }
        outcome
    }
}

/// The results of all items.
type Results = Result<Vec<Result<Vec<u8>, Error>>, Error>;

fn compute(
    backend: &Hooked<'_>,
    items: &[Item<'_>],
    handles: &[&KeyHandle],
    fault: &Fault,
    random: &mut ChaCha20Rng,
) -> Results {
    let blocks = items.iter().map(|item| item.block);
    let batch: Vec<_> = handles.iter().copied().zip(blocks).collect();
    let results = rsasp1(backend, fault.blinded.then_some(random), &batch)?;
    let owned = |result: Result<&[u8], Error>| result.map(<[u8]>::to_vec);
    Ok(results.iter().map(owned).collect())
}

fn classify(
    items: &[Item<'_>],
    results: Results,
    hit: &[usize],
    blocks: &[Vec<Limb>],
    fault: &Fault,
) -> Outcome {
    let results = match results {
        // No random number is found below the changed n.
        Err(Error::Rng) if fault.place == Place::Modulus && fault.blinded => {
            return Outcome::Refused;
        }
        results => results.unwrap(),
    };
    assert_eq!(results.len(), ITEMS);
    let outcomes = items.iter().zip(results).enumerate();
    let outcomes = outcomes.map(|(i, (item, result))| match result {
        Ok(result) if result == item.result => Outcome::Harmless,
        other => {
            assert!(hit.contains(&i), "{fault:?}: item {i} was not hit");
            match other {
                Ok(result) if fault.place == Place::Block => {
                    is_result_of(item, &result, &blocks[i])
                }
                Ok(_) => Outcome::Escaped,
                // The block is not below the changed n.
                Err(Error::BlockOutOfRange { .. }) if fault.place == Place::Modulus => {
                    Outcome::Refused
                }
                Err(error) => {
                    assert_eq!(error, Error::Fault { index: i }, "{fault:?}");
                    Outcome::Caught
                }
            }
        }
    });
    outcomes.max().unwrap()
}

/// Whether the result is right for the changed block, by num-bigint.
fn is_result_of(item: &Item<'_>, result: &[u8], block: &[Limb]) -> Outcome {
    let Key { n, e, .. } = item.key;
    let octets: Vec<u8> = block.iter().flat_map(|l| l.0.to_le_bytes()).collect();
    match BigUint::from_bytes_be(result).modpow(e, n) == BigUint::from_bytes_le(&octets) % n {
        true => Outcome::OtherBlock,
        false => Outcome::Escaped,
    }
}

/// The key with a fault in its numbers.
fn with_faulty_part(key: &KeyHandle, fault: &Fault, random: &mut ChaCha20Rng) -> KeyHandle {
    key.altered(|parts| {
        match (
            fault.place,
            &mut parts.private.as_mut().expect("a private key").numbers,
        ) {
            (Place::Modulus, _) => {
                let mut n = parts.n.modulus().as_ref().clone();
                fault.kind.inject(&mut [n.as_mut_limbs()], random);
                n.as_mut_limbs()[0] |= Limb::ONE;
                parts.n = BoxedMontyParams::new(Odd::new(n).unwrap());
            }
            (_, Private::Plain { d_less_1 }) => {
                fault.kind.inject(&mut [d_less_1.as_mut_limbs()], random);
            }
            (_, Private::Crt(crt)) => {
                let mut primes = [crt.p(), crt.q()].map(|prime| prime.limbs.to_vec());
                let [p, q] = &mut primes;
                let mut numbers = [
                    &mut p[..],
                    q,
                    crt.dp_less_1.as_mut_limbs(),
                    crt.dq_less_1.as_mut_limbs(),
                    crt.qinv.as_mut_limbs(),
                ];
                fault.kind.inject(&mut numbers, random);
                [crt.p, crt.q] = primes.map(|mut prime| {
                    prime[0] |= Limb::ONE;
                    Modulus::new(&prime, 0)
                });
            }
        }
    })
}

/// The key with a fault in a Montgomery constant, written to its memory.
#[cfg(target_os = "linux")]
fn with_faulty_constants(key: &KeyHandle, fault: &Fault, random: &mut ChaCha20Rng) -> KeyHandle {
    // A deep copy: handles share n.
    let copy = key.altered(|parts| parts.n = BoxedMontyParams::new(parts.n.modulus().clone()));
    let parts = copy.parts();
    let mut moduli = Vec::from([parts.n()]);
    if let Private::Crt(crt) = &parts.private().numbers {
        moduli.extend([crt.p(), crt.q()]);
    }
    let constants = moduli
        .iter()
        .flat_map(|modulus| [modulus.r2, modulus.mod_inv.as_limbs()]);
    let constants: Vec<_> = constants.collect();
    let mut values: Vec<_> = constants.iter().map(|constant| constant.to_vec()).collect();
    let mut numbers: Vec<_> = values.iter_mut().map(|value| &mut value[..]).collect();
    fault.kind.inject(&mut numbers, random);
    for (constant, value) in constants.iter().zip(&values) {
        super::memory::overwrite(constant, value);
    }
    copy
}

#[cfg(not(target_os = "linux"))]
fn with_faulty_constants(_: &KeyHandle, _: &Fault, _: &mut ChaCha20Rng) -> KeyHandle {
    unreachable!("there is no such place")
}
