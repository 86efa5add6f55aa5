//! Generated keys, compared with FIPS 186-5, the `rsa` crate and OpenSSL.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use batch_modexp::backend::{Auto, Cpu, Serial};
use batch_modexp::rsa::backend::{HostEngine, PerThread, RsaBackend, SecretPowers};
use batch_modexp::rsa::{
    BatchSigner, BatchVerifier, Error, GeneratedKey, KeyGenerator, KeyHandle, Pkcs1v15,
};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::Limb;
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::sha2::Sha256;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::need;

fn generate(bits: u32, e: u32, count: usize, seed: u64) -> Vec<GeneratedKey> {
    let generator = KeyGenerator::new(Cpu::new().unwrap(), bits).unwrap();
    let generator = generator.public_exponent(e).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    generator.generate(&mut rng, count).unwrap()
}

/// Checks the numbers of a key with num-bigint: FIPS 186-5, appendix A.1. Reads its document with
/// the `rsa` crate.
fn check(key: &GeneratedKey, bits: u32, e: u32) -> [BigUint; 2] {
    let reference = PrivateKey::from_pkcs8_der(&key.to_pkcs8_der()).unwrap();
    assert_eq!(
        reference,
        PrivateKey::from_pkcs1_der(&key.to_pkcs1_der()).unwrap()
    );
    assert_eq!(
        reference,
        PrivateKey::from_pkcs8_pem(&key.to_pkcs8_pem()).unwrap()
    );
    reference.validate().unwrap();
    let big = |octets: &[u8]| BigUint::from_bytes_be(octets);
    let (n, d) = (big(&reference.n_bytes()), big(&reference.d().to_be_bytes()));
    assert_eq!(big(&reference.e_bytes()), BigUint::from(e));
    assert_eq!(n.bits(), u64::from(bits));
    let primes: Vec<_> = reference
        .primes()
        .iter()
        .map(|p| big(&p.as_ref().to_be_bytes()))
        .collect();
    let [p, q] = primes.try_into().unwrap();
    assert_eq!(&p * &q, n);
    let given = key.primes().map(|prime| big(&prime.to_be_bytes()));
    assert_eq!(given, [p.clone(), q.clone()]);
    for prime in [&p, &q] {
        let square = prime * prime;
        assert_eq!(square.bits(), u64::from(bits));
        assert_eq!(prime % 4u8, BigUint::from(3u8));
        for base in [2u8, 3, 5, 7] {
            assert_eq!(
                BigUint::from(base).modpow(&(prime - 1u8), prime),
                BigUint::from(1u8)
            );
        }
    }
    let distance = if p > q { &p - &q } else { &q - &p };
    assert!(distance > BigUint::from(1u8) << (bits / 2 - 100));
    assert!(d > BigUint::from(1u8) << (bits / 2));
    let [p_less_1, q_less_1] = [&p, &q].map(|prime| prime - 1u8);
    let lcm = &p_less_1 * &q_less_1 / gcd(&p_less_1, &q_less_1);
    assert!(d < lcm);
    assert_eq!(d * e % lcm, BigUint::from(1u8));
    [p, q]
}

fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// Keys of several lengths, with exponents for which e - 1 and e have many factors.
#[test]
fn numbers_are_as_fips_186_5_wants_them() {
    for (bits, e, count) in [
        (1024, 65_537, 12),
        (1152, 3 * 5 * 7 * 11 * 13 * 17, 4),
        (1024, u32::MAX, 4),
        (2048, 65_537, 2),
    ] {
        let keys = generate(bits, e, count, u64::from(bits));
        assert_eq!(keys.len(), count);
        let primes: BTreeSet<_> = keys.iter().flat_map(|key| check(key, bits, e)).collect();
        assert_eq!(primes.len(), 2 * count, "all primes are different");
    }
}

/// Signatures of generated keys are valid, and the document gives the same key.
#[test]
fn keys_are_ready_for_use() {
    let key = generate(1024, 65_537, 1, 5).remove(0);
    let scheme = Pkcs1v15::<Sha256>::new();
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let signatures = BatchSigner::new(Serial, scheme).sign(&mut rng, key.key(), &["m"]);
    let signature = signatures.unwrap().into_vec().unwrap();
    let again = KeyHandle::from_pem(&*key.to_pkcs8_pem()).unwrap();
    assert_eq!(again.public_key(), key.key().public_key());
    let verifier = BatchVerifier::new(Serial, scheme);
    let verdicts = verifier.verify(&again.public_key(), &[("m", signature)]);
    verdicts.unwrap().all_valid().unwrap();
    assert_eq!(format!("{key:?}"), "GeneratedKey { bits: 1024, .. }");
}

/// The same seed gives the same keys on one engine; another seed gives others. Several threads
/// generate the requested number.
#[test]
fn keys_follow_from_the_generator() {
    let of = |seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let keys = KeyGenerator::new(Serial, 1024)
            .unwrap()
            .generate(&mut rng, 1);
        keys.unwrap().remove(0).key().n()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    let cpu = Cpu::with_threads(NonZeroUsize::new(3).unwrap()).unwrap();
    let generator = KeyGenerator::new(&cpu, 1024).unwrap();
    for count in [0, 1, 2, 3, 5] {
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let keys = generator.generate(&mut rng, count).unwrap();
        let moduli: BTreeSet<_> = keys.iter().map(|key| key.key().n()).collect();
        assert_eq!(moduli.len(), count);
    }
}

/// A generation that would take days ends with the keys that are complete.
#[test]
fn generation_stops() {
    let stop = Arc::new(AtomicBool::new(false));
    let generator = KeyGenerator::new(Cpu::new().unwrap(), 1024).unwrap();
    let generator = generator.stop_on(stop.clone());
    let keys = thread::scope(|scope| {
        let generation = scope.spawn(|| generator.generate(&mut getrandom::SysRng, 1 << 30));
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Relaxed);
        generation.join().unwrap().unwrap()
    });
    for key in &keys {
        check(key, 1024, 65_537);
    }
    let more = generator.generate(&mut getrandom::SysRng, 1);
    assert!(more.unwrap().is_empty());
}

/// As many keys as a call computes at a time, but not too many for a test. Uses GPUs where there
/// are some.
#[test]
fn keys_by_the_group() {
    let auto = Auto::with_gpus().unwrap();
    for (bits, e) in [(1024, 65_537), (2048, 65_539)] {
        let generator = KeyGenerator::new(&auto, bits).unwrap();
        let generator = generator.public_exponent(e).unwrap();
        let count = generator.granularity().min(64 * 1024 / bits as usize);
        let mut rng = ChaCha20Rng::seed_from_u64(u64::from(bits));
        let keys = generator.generate(&mut rng, count).unwrap();
        let primes: BTreeSet<_> = keys.iter().flat_map(|key| check(key, bits, e)).collect();
        assert_eq!(primes.len(), 2 * count);
    }
}

/// Half of a safe prime less 1 is a prime; `check` has looked at the prime itself.
#[test]
fn safe_primes() {
    let generator = KeyGenerator::new(Cpu::new().unwrap(), 1024).unwrap();
    let generator = generator.safe_primes().public_exponent(65_539).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let keys = generator.generate(&mut rng, 3).unwrap();
    assert_eq!(keys.len(), 3);
    for prime in keys.iter().flat_map(|key| check(key, 1024, 65_539)) {
        assert_eq!(&prime % 8u8, BigUint::from(7u8));
        let half: BigUint = prime >> 1u32;
        for base in [2u8, 3, 5, 7] {
            let power = BigUint::from(base).modpow(&(&half - 1u8), &half);
            assert_eq!(power, BigUint::from(1u8));
        }
    }
}

/// The answers of a device.
#[derive(Clone, Copy, Debug)]
enum Answers {
    Powers,
    /// 1, with which every candidate passes.
    One,
    /// 2, with which none does.
    Two,
    AnError,
}

/// Computes batches as devices do, beside a processor with two threads.
struct Device {
    host: Cpu,
    answers: Answers,
    calls: AtomicUsize,
}

impl Device {
    fn new(answers: Answers) -> Self {
        Self {
            host: Cpu::with_threads(NonZeroUsize::new(2).unwrap()).unwrap(),
            answers,
            calls: AtomicUsize::new(0),
        }
    }
}

impl RsaBackend for Device {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp::Error> {
        self.calls.fetch_add(1, Relaxed);
        let constant = match self.answers {
            Answers::Powers => return self.host.exponentiate(powers),
            Answers::One => Limb::ONE,
            Answers::Two => Limb::from(2u8),
            Answers::AnError => return Err(batch_modexp::Error::ThreadPool { threads: 3 }),
        };
        let limbs = powers.limbs();
        for power in powers.out.chunks_exact_mut(limbs) {
            power.fill(Limb::ZERO);
            power[0] = constant;
        }
        Ok(())
    }

    fn engine(&self) -> HostEngine<'_> {
        self.host.engine()
    }

    fn per_host_thread(&self) -> Option<PerThread<'_>> {
        self.host.per_thread()
    }
}

/// Devices compute the tests, but a prime must pass one round on the processor too.
#[test]
fn keys_do_not_depend_on_a_device() {
    for answers in [
        Answers::Powers,
        Answers::One,
        Answers::Two,
        Answers::AnError,
    ] {
        let device = Device::new(answers);
        let generator = KeyGenerator::new(&device, 1024).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let keys = generator.generate(&mut rng, 3);
        assert!(device.calls.load(Relaxed) > 0);
        match (answers, keys) {
            (Answers::Powers | Answers::One, Ok(keys)) => {
                assert_eq!(keys.len(), 3);
                for key in &keys {
                    check(key, 1024, 65_537);
                }
            }
            (Answers::Two, Err(Error::Rng))
            | (
                Answers::AnError,
                Err(Error::Backend(batch_modexp::Error::ThreadPool { threads: 3 })),
            ) => {}
            (_, result) => panic!("{answers:?}: {:?}", result.map(|keys| keys.len())),
        }
    }
}

/// Primes modulo small numbers are evenly distributed.
#[test]
fn residues_are_even() {
    let keys = generate(1024, 65_537, 100, 77);
    let moduli: Vec<_> = keys
        .iter()
        .map(|key| BigUint::from_bytes_be(&key.key().n()))
        .collect();
    // n is 1 or 2 modulo 3, 1 to 4 modulo 5, and 1 or 5 modulo 8: each about equally often.
    for (modulus, residues) in [(3u8, &[1u8, 2][..]), (5, &[1, 2, 3, 4]), (8, &[1, 5])] {
        let expected = moduli.len() / residues.len();
        let mut all = 0;
        for residue in residues {
            let count = moduli
                .iter()
                .filter(|n| *n % modulus == BigUint::from(*residue))
                .count();
            // Five standard deviations.
            assert!(
                count.abs_diff(expected) < 27,
                "{count} are {residue} modulo {modulus}"
            );
            all += count;
        }
        assert_eq!(all, moduli.len());
    }
    // The top octets: n is at least half of 2^1024.
    let above = moduli.iter().filter(|n| n.bit(1022)).count();
    assert!((25..85).contains(&above), "{above}");
}

#[test]
fn openssl_accepts_them() {
    if need::available("openssl", Command::new("openssl").arg("version").output()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    for key in generate(1024, 65_537, 3, 31)
        .iter()
        .chain(&generate(2048, 65_539, 1, 32))
    {
        fs::write(&file, key.to_pkcs8_pem().as_bytes()).unwrap();
        let output = Command::new("openssl")
            .args(["pkey", "-check", "-noout", "-in"])
            .arg(&file)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("Key is valid"),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_generated() {
    for bits in [0, 512, 1023, 1025, 1088, 2047, 8320, u32::MAX] {
        let refused = KeyGenerator::new(Serial, bits).map(|_| ());
        assert_eq!(refused, Err(Error::GeneratedKeySize { bits }));
    }
    for e in [0, 1, 3, 17, 65_535, 65_536, 65_538] {
        let refused = KeyGenerator::new(Serial, 1024).unwrap().public_exponent(e);
        assert_eq!(refused.map(|_| ()), Err(Error::GeneratedExponent { e }));
    }
}

/// A generator that always returns the same octets, or fails, is detected.
#[test]
fn generators_that_fail() {
    use rand_core::{TryCryptoRng, TryRng};

    struct Broken(Option<u8>);

    #[derive(Debug)]
    struct Failed;

    impl core::fmt::Display for Failed {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("failed")
        }
    }

    impl core::error::Error for Failed {}

    impl TryRng for Broken {
        type Error = Failed;

        fn try_next_u32(&mut self) -> Result<u32, Failed> {
            Err(Failed)
        }

        fn try_next_u64(&mut self) -> Result<u64, Failed> {
            Err(Failed)
        }

        fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Failed> {
            octets.fill(self.0.ok_or(Failed)?);
            Ok(())
        }
    }

    impl TryCryptoRng for Broken {}

    let generator = KeyGenerator::new(Serial, 1024).unwrap();
    for broken in [None, Some(0), Some(0xff)] {
        let keys = generator.generate(&mut Broken(broken), 1);
        assert!(matches!(keys, Err(Error::Rng)));
    }
}
