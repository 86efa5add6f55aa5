//! Tests of RSA on GPUs. Without a GPU they report that they were skipped.

mod campaign;

use alloc::boxed::Box;
use alloc::vec;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use std::panic::{catch_unwind, resume_unwind};
use std::sync::Mutex;

use batch_modexp_core::Serial;
use chacha20::ChaCha20Rng;
use crypto_bigint::Limb;
use num_bigint::BigUint;
use rand_core::SeedableRng;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;

use super::*;
use crate::backend::cuda::DeviceInfo;
use crate::backend::cuda::crt::{ChangeInputs, Tampering};
use crate::backend::cuda::feed::{copy_in, copy_out};
use crate::rsa::backend::compute_by_class;
use crate::rsa::batch::Source;
use crate::rsa::key::PublicKey;
use crate::rsa::private_op::campaign::fault::Kind;
use crate::rsa::random::{Randomness, Streams};
use crate::rsa::signatures::SecretOctets;

/// The result of an item.
type Octets = Result<Vec<u8>, Error>;

fn gpu() -> Option<Cuda> {
    crate::need::available("cuda", Cuda::probe()).map(|_| Cuda::new().unwrap())
}

/// Keys of several classes, of widths between them, of widths without kernels, and with e = 3.
fn keys() -> Vec<KeyHandle> {
    let pems = [
        include_str!("../../../../tests/keys/rsa1024.pem"),
        include_str!("../../../../tests/keys/rsa1025.pem"),
        include_str!("../../../../tests/keys/rsa2048.pem"),
        include_str!("../../../../tests/keys/rsa2048-e3.pem"),
        include_str!("../../../../tests/keys/rsa2056.pem"),
        include_str!("../../../../tests/keys/rsa3072.pem"),
        include_str!("../../../../tests/keys/rsa4096.pem"),
    ];
    pems.map(|pem| KeyHandle::new(&PrivateKey::from_pkcs1_pem(pem).unwrap()).unwrap())
        .into()
}

/// Numbers below any modulus that differ between positions, with this period.
struct Numbered<'a>(usize, &'a [&'a KeyHandle]);

impl Source for Numbered<'_> {
    fn key(&self, position: usize) -> &KeyParts {
        self.1[position].parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, octets: &mut [u8]) -> Result<(), Error> {
        octets[0] = 0;
        let seed = (position % self.0) as u64 + 2;
        for (octets, i) in octets[1..].chunks_mut(8).zip(1..) {
            let word = seed
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_pow(2 * i + 1);
            octets.copy_from_slice(&word.to_be_bytes()[..octets.len()]);
        }
        Ok(())
    }
}

/// Private operations on `count` items, with `keys` in turn.
fn run(backend: &impl RsaBackend, keys: &[KeyHandle], count: usize, blinded: bool) -> Vec<Octets> {
    let items: Vec<_> = keys.iter().cycle().take(count).collect();
    let streams = Streams::seeded(&mut getrandom::SysRng).unwrap();
    let results = compute_by_class(backend, count, &Numbered(64, &items), &streams, blinded);
    let owned = |result: Result<&[u8], Error>| result.map(<[u8]>::to_vec);
    let results = SecretOctets::new(results.unwrap());
    results.iter().map(owned).collect()
}

/// A backend that changes batches on their way to the devices.
struct Tampered<'a>(&'a Cuda, Tampering<'a>);

impl<'a> Tampered<'a> {
    fn with_inputs(cuda: &'a Cuda, inputs: ChangeInputs<'a>) -> Self {
        let tampering = Tampering {
            inputs: Some(inputs),
            ..Tampering::default()
        };
        Self(cuda, tampering)
    }
}

impl RsaBackend for Tampered<'_> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        self.0.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), Error> {
        let Self(cuda, tampering) = *self;
        if !items.batch.class.is_private {
            return cuda.compute(items);
        }
        private_ops(cuda, items, |batch, items| {
            batch.run_tampered(items, tampering)
        })
    }

    fn engine(&self) -> HostEngine<'_> {
        self.0.engine()
    }
}

fn value(octets: &Octets) -> &Vec<u8> {
    octets.as_ref().unwrap()
}

fn passed(results: &[Octets]) -> Vec<bool> {
    let is_fault = |error: &Error| assert!(matches!(error, Error::Fault { .. }));
    results
        .iter()
        .map(|item| item.as_ref().inspect_err(|e| is_fault(e)).is_ok())
        .collect()
}

#[test]
fn results_are_those_of_the_host() {
    let Some(cuda) = gpu() else { return };
    let keys = keys();
    for blinded in [false, true] {
        for count in [100, 1, 40, 0] {
            let device = run(&cuda, &keys, count, blinded);
            let host = run(&Serial, &keys, count, blinded);
            assert_eq!(device.len(), count);
            for (device, host) in device.iter().zip(&host) {
                assert_eq!(*value(device), *value(host));
            }
        }
    }
}

#[test]
fn large_batches_of_one_key() {
    let Some(cuda) = gpu() else { return };
    let key = &keys()[..1];
    let count = 40_000;
    for blinded in [false, true] {
        let device = run(&cuda, key, count, blinded);
        assert_eq!(device.len(), count);
        assert!(device.iter().all(Result::is_ok));
        let host = run(&Serial, key, 20, blinded);
        for (device, host) in device.iter().zip(&host) {
            assert_eq!(*value(device), *value(host));
        }
    }
    assert!(cuda.is_wiped());
}

/// Holds for the kernel of every number of lanes.
#[test]
fn nothing_is_compiled_for_prepared_keys() {
    if gpu().is_none() {
        return;
    }
    for key in keys() {
        let cuda = Cuda::new().unwrap();
        cuda.prepare_private_op(&key).unwrap();
        let prepared = cuda.compiled();
        assert!(prepared > 0);
        for (count, blinded) in [(1, false), (1, true), (9000, true)] {
            run(&cuda, core::slice::from_ref(&key), count, blinded);
            assert_eq!(cuda.compiled(), prepared, "{} bits", key.bits());
        }
    }
}

/// Also those that this chip would not choose. Families for other chips are skipped.
#[test]
fn every_family_computes_halves() {
    let Some(cuda) = gpu() else { return };
    let families = ["dpf", "rns", "rns_mma"].map(|family| {
        let mut done = 0;
        for key in &keys()[2..] {
            let keys = core::slice::from_ref(key);
            let has_kernels = |class: CrtClass| {
                let mut by_it = class.halves.iter();
                by_it.any(|entry| {
                    let runs = cuda.devices().any(|device| entry.runs_on(device));
                    entry.key.family == family && runs
                })
            };
            let prime_bits = key.bits().div_ceil(128) * 64;
            let class = cuda.crt_class(CrtShape::full(2 * prime_bits, prime_bits));
            if !class.is_some_and(has_kernels) {
                continue;
            }
            let tampering = Tampering {
                halves_by: Some(family),
                ..Tampering::default()
            };
            let host = run(&Serial, keys, 7, false);
            for blinded in [false, true] {
                let device = run(&Tampered(&cuda, tampering), keys, 7, blinded);
                for (device, host) in device.iter().zip(&host) {
                    assert_eq!(*value(device), *value(host), "{family}");
                }
            }
            done += 1;
        }
        done
    });
    // The DPF family computes all widths.
    assert_eq!(families[0], 5);
}

/// A device with too little shared memory for the CRT kernels exponentiates when the only one that
/// can run them is lost.
#[test]
fn devices_without_crt_kernels_go_on() {
    let Some(found) = crate::need::available("cuda", Cuda::probe()) else {
        return;
    };
    let weak = DeviceInfo::imaginary(found[0].multiprocessors(), 150 << 10);
    let cuda = Cuda::open(&[found[0].clone(), weak], None).unwrap();
    let keys = &keys()[2..3];
    let expected = run(&Serial, keys, 3, false);
    assert!(cuda.crt_class(CrtShape::full(2048, 1024)).is_some());
    let losing = Tampering {
        loses_first_device: true,
        ..Tampering::default()
    };
    let lost_on_the_way = run(&Tampered(&cuda, losing), keys, 3, true);
    assert!(cuda.lost().count() == 1 && cuda.crt_class(CrtShape::full(2048, 1024)).is_none());
    let later = run(&cuda, keys, 3, true);
    for results in [lost_on_the_way, later] {
        for (result, expected) in results.iter().zip(&expected) {
            assert_eq!(*value(result), *value(expected));
        }
    }
    cuda.prepare_private_op(&keys[0]).unwrap();
}

/// Flips a bit of the representative on the device.
#[test]
fn a_flipped_bit_fails_its_item_alone() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    let words = 2048 / 64;
    let flip = |[numbers, _]: [&mut [u64]; 2]| numbers[words + 3] ^= 1 << 17;
    for blinded in [false, true] {
        let results = run(&Tampered::with_inputs(&cuda, &flip), keys, 5, blinded);
        assert_eq!(passed(&results), [true, false, true, true, true]);
    }
}

/// No fault in the operands makes a wrong result, affects another item, or affects the next call.
#[test]
fn faults_of_every_kind_fail_their_items_alone() {
    let Some(cuda) = gpu() else { return };
    let (keys, count) = (&keys()[2..3], 5);
    let sound = run(&Serial, keys, count, false);
    let mut failures = 0;
    for (seed, kind) in (0..400).zip(Kind::ALL.into_iter().cycle()) {
        let hit = Mutex::new(vec![]);
        let inject = |[words, _]: [&mut [u64]; 2]| {
            let size = words.len() / count;
            let mut numbers = vec![Limb::ZERO; words.len() * (u64::BITS / Limb::BITS) as usize];
            let limbs = numbers.len() / count;
            let places = numbers.chunks_exact_mut(limbs);
            let mut items: Vec<_> = places.collect();
            for (item, words) in items.iter_mut().zip(words.chunks_exact(size)) {
                copy_out(words, item);
            }
            let mut random = ChaCha20Rng::seed_from_u64(seed);
            *hit.lock().unwrap() = kind.inject(&mut items, &mut random);
            for (item, words) in items.iter().zip(words.chunks_exact_mut(size)) {
                copy_in(item, words);
            }
        };
        let blinded = seed % 3 != 0;
        let results = run(&Tampered::with_inputs(&cuda, &inject), keys, count, blinded);
        let later = run(&cuda, keys, count, blinded);
        for (item, passed) in passed(&results).into_iter().enumerate() {
            let is_hit = hit.lock().unwrap().contains(&item);
            assert_eq!(passed, !is_hit, "{kind:?}, seed {seed}, item {item}");
            failures += usize::from(!passed);
            if passed {
                assert_eq!(*value(&results[item]), *value(&sound[item]));
            }
            assert_eq!(*value(&later[item]), *value(&sound[item]));
        }
    }
    assert!(failures > 400 / 2);
}

/// A key with a wrong CRT value never gives a result, and does not affect the others.
#[test]
fn a_wrong_key_fails_its_item_alone() {
    let Some(cuda) = gpu() else { return };
    let right = &keys()[2];
    let wrong = [
        right.with_crt(|crt| crt.dp_less_1.clone_from(&crt.dq_less_1)),
        right.with_crt(|crt| crt.qinv.clone_from(&crt.dp_less_1)),
        right.with_crt(|crt| core::mem::swap(&mut crt.p, &mut crt.q)),
    ];
    for wrong in wrong {
        let keys = [right.clone(), wrong, right.clone()];
        for blinded in [false, true] {
            let results = run(&cuda, &keys, 3, blinded);
            assert_eq!(passed(&results), [true, false, true]);
        }
    }
}

/// With the index of another key all steps agree, and the result is right for that key. The check
/// on the host uses the item's own key.
#[test]
fn the_index_of_another_key_is_a_fault() {
    let Some(cuda) = gpu() else { return };
    let other = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
    let other = PrivateKey::from_pkcs8_pem(other).unwrap();
    let keys = [keys()[2].clone(), KeyHandle::new(&other).unwrap()];
    // Items are sorted by key: two of each, with two 32-bit indices in a word.
    let swap = |[_, indices]: [&mut [u64]; 2]| {
        let (first, second) = (indices[0] as u32, indices[1] as u32);
        indices[0] = indices[0] & !0xffff_ffff | u64::from(second);
        indices[1] = indices[1] & !0xffff_ffff | u64::from(first);
    };
    for blinded in [false, true] {
        let results = run(&Tampered::with_inputs(&cuda, &swap), &keys, 4, blinded);
        let failed: Vec<_> = (0..4).filter(|&item| !passed(&results)[item]).collect();
        // The first item of each key.
        assert_eq!(failed, [0, 1]);
    }
}

/// Enough items for several chunks, with short-lived keys.
#[test]
fn large_batches_and_short_lived_keys() {
    let Some(cuda) = gpu() else { return };
    let mut expected = vec![];
    for blinded in [false, true, true] {
        let keys = keys()[2..4].to_vec();
        if expected.is_empty() {
            expected = run(&Serial, &keys, 64, false);
        }
        let results = run(&cuda, &keys, 40_000, blinded);
        for (i, result) in results.iter().enumerate() {
            assert_eq!(*value(result), *value(&expected[i % 64]));
        }
    }
}

/// The devices' buffers keep nothing of keys, messages and blinds after the call.
#[test]
fn buffers_are_wiped() {
    let Some(cuda) = gpu() else { return };
    for blinded in [false, true] {
        run(&cuda, &keys()[2..3], 20_000, blinded);
        assert!(cuda.is_wiped());
    }
}

/// Also if a panic leaves chunks on the device whose launches share a stream.
#[test]
fn buffers_are_wiped_after_a_panic() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    for (last, blinded) in [1, 2, 6].into_iter().flat_map(|n| [(n, false), (n, true)]) {
        let chunks = AtomicUsize::new(0);
        let panic = |_: [&mut [u64]; 2]| {
            if chunks.fetch_add(1, Relaxed) == last {
                resume_unwind(Box::new("on the way"));
            }
        };
        let tampered = Tampered::with_inputs(&cuda, &panic);
        let unwound = catch_unwind(AssertUnwindSafe(|| run(&tampered, keys, 100_000, blinded)));
        assert!(unwound.is_err());
        assert!(cuda.is_wiped());
        assert!(run(&cuda, keys, 100, blinded).iter().all(Result::is_ok));
    }
}

/// Bases as from [`Numbered`], except for some positions without one; powers as outputs.
struct Raised<'a>(&'a [&'a PublicKey]);

impl Source for Raised<'_> {
    fn key(&self, position: usize) -> &KeyParts {
        self.0[position].parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, base: &mut [u8]) -> Result<(), Error> {
        match position % 7 {
            3 => Err(Error::Verification { index: 0 }),
            _ => {
                base.copy_from_slice(&base_at(position, self.0[position]));
                Ok(())
            }
        }
    }

    fn decode(&self, position: usize, power: &mut [u8], output: &mut [u8]) -> Result<usize, Error> {
        match position % 11 {
            5 => {
                return Err(Error::DigestLength {
                    index: 0,
                    len: 1,
                    expected: 2,
                });
            }
            _ => output.copy_from_slice(power),
        }
        Ok(output.len())
    }
}

fn base_at(position: usize, key: &PublicKey) -> Vec<u8> {
    let seed = (position as u64 + 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut octets: Vec<_> = (1..)
        .flat_map(|i| seed.wrapping_pow(2 * i + 1).to_be_bytes())
        .take(key.size())
        .collect();
    octets[0] = 0;
    octets
}

/// Keys of several widths and exponents, alone and in runs, in batches of one chunk and of several.
/// A family refuses the modulus of one of them.
#[test]
fn public_powers_are_those_of_num_bigint() {
    let Some(cuda) = gpu() else { return };
    let refused: BigUint =
        BigUint::from((1u32 << 29) - 3) * ((BigUint::from(1u32) << 2018u32) - 1u32);
    let refused = PublicKey::from_numbers(&refused.to_bytes_be(), &[1, 0, 1]).unwrap();
    let mut public: Vec<_> = keys().iter().map(KeyHandle::public_key).collect();
    public.push(refused);
    for (run, count) in [(1, 1), (1, 500), (97, 3000), (60_000, 100_000)] {
        let items: Vec<_> = (0..count)
            .map(|i| &public[(i / run + 2) % public.len()])
            .collect();
        let outputs = compute_by_class(&cuda, count, &Raised(&items), &Streams::none(), false);
        let outputs = outputs.unwrap();
        for (i, key) in items.iter().enumerate() {
            let found = outputs.get(i);
            match (i % 7, i % 11) {
                (3, _) => assert_eq!(found, Err(Error::Verification { index: i })),
                (_, 5) => assert_eq!(
                    found,
                    Err(Error::DigestLength {
                        index: i,
                        len: 1,
                        expected: 2
                    })
                ),
                // Compares all of a small batch, and a sample of a large one.
                _ if i % (1 + count / 1000) == 0 => {
                    let [n, e] = [key.n(), key.e()].map(|octets| BigUint::from_bytes_be(&octets));
                    let power = BigUint::from_bytes_be(&base_at(i, key)).modpow(&e, &n);
                    assert_eq!(
                        BigUint::from_bytes_be(found.unwrap()),
                        power,
                        "item {i} of {count}"
                    );
                }
                _ => assert!(found.is_ok()),
            }
        }
    }
}

#[test]
fn runs_are_as_long_as_they_are() {
    let pems = [
        include_str!("../../../../tests/keys/rsa1024.pem"),
        include_str!("../../../../tests/keys/rsa1025.pem"),
        include_str!("../../../../tests/keys/rsa1024-other.pem"),
    ];
    let keys = pems.map(|pem| KeyHandle::from_pkcs1_pem(pem).unwrap());
    assert_eq!(runs(&[]).count(), 0);
    for first in 0..20 {
        for second in 0..20 {
            let lens = [first, second, 3];
            let items = keys
                .iter()
                .zip(lens)
                .map(|(key, len)| vec![key.parts(); len]);
            let items = items.collect::<Vec<_>>().concat();
            let found = runs(&items).map(|run| (ptr::from_ref(run[0]), run.len()));
            let there = keys.iter().map(|key| ptr::from_ref(key.parts())).zip(lens);
            assert!(found.eq(there.filter(|(_, len)| *len > 0)));
        }
    }
}
