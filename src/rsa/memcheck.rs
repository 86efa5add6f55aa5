//! The RSA layer of the host under memcheck, with everything secret marked as undefined (see
//! `tests/common/valgrind.rs`). Covers import of a key, reduction modulo p and q, recombination,
//! blinding, inversion, octets and the check. Run it with `cargo test --release --lib memcheck`.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::hint::black_box;
use std::println;

use batch_modexp_core::Serial;
use batch_modexp_core::monty::Modulus;
use batch_modexp_core::secret::reveal;
use batch_modexp_cpu::Fma;
use chacha20::ChaCha8Rng;
use crypto_bigint::{BoxedUint, CtEq, CtLt, Limb, Resize};
use rand_core::{Rng as _, SeedableRng as _, TryCryptoRng, TryRng};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use sha2::{Digest as _, Sha256};

use super::backend::{RsaBackend, compute_by_class};
use super::batch::Source;
use super::blocks::Range;
use super::encryption::{oaep, pkcs1_v15};
use super::hash::add_mask;
use super::key::{KeyParts, Private};
use super::keygen::candidates::Candidates;
use super::keygen::numbers::Numbers;
use super::keygen::primality::{on_engine, pass};
use super::random::{Randomness, Streams};
use super::signatures::SecretOctets;
use super::{
    BatchEncryptor, EncryptionScheme, KeyHandle, PublicKey, RsaComponents, RsaesOaep, RsaesPkcs1v15,
};
use crate::need;
use crate::rsa::Error;
use crate::simd::each_simd_backend;
use crate::valgrind::{run_under_valgrind, set_modulus_undefined, set_undefined};

mod blind;

#[test]
fn no_branch_or_address_depends_on_a_secret() {
    let clean = [
        "serial",
        "serial_without_crt",
        "simd_backends",
        "import",
        "import_without_crt",
        "unpad_pkcs1_v15",
        "unpad_oaep",
        "encrypt",
        "draw_candidates",
        "test_primality",
        "combine_primes",
        "blind::blind_and_finalize",
    ];
    // Controls: each of these has a leak that memcheck must find.
    let leaks = [
        "leak_by_comparison",
        "leak_by_blind",
        "leak_by_padding",
        "leak_beside_a_verdict",
        "leak_by_candidate",
        "blind::leak_by_inversion",
    ];
    run_under_valgrind("rsa::memcheck", &clean, &leaks);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn serial() {
    private_operations(&Serial, rsa_keys());
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn serial_without_crt() {
    let mut keys = rsa_keys();
    keys.iter_mut().for_each(PrivateKey::clear_precomputed);
    private_operations(&Serial, keys);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn simd_backends() {
    // Valgrind does not know IFMA.
    need::available("fma", Fma::new().ok_or("no AVX2 and FMA"));
    macro_rules! on_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = crate::backend::$Backend::new() {
                private_operations(&backend, rsa_keys());
            }
        };
    }
    each_simd_backend!(on_backend);
}

/// Import of a key's numbers with all CRT values given.
#[test]
#[ignore = "run under valgrind by the test above"]
fn import() {
    for key in rsa_keys() {
        let octets = secret_octets(&key);
        let [d, p, q, dp, dq, qinv] = octets.each_ref().map(Vec::as_slice);
        let (n, e) = (key.n_bytes(), key.e_bytes());
        let components = RsaComponents::new(&n, &e, d).primes(p, q);
        let components = components.dp(dp).dq(dq).qinv(qinv);
        black_box(&KeyHandle::from_components(&components).unwrap());
        octets
            .iter()
            .for_each(|number| set_undefined(number, false));
    }
}

/// Import with computed CRT values, and with the private exponent alone.
#[test]
#[ignore = "run under valgrind by the test above"]
fn import_without_crt() {
    for key in rsa_keys() {
        let octets = secret_octets(&key);
        let [d, p, q, ..] = octets.each_ref().map(Vec::as_slice);
        let (n, e) = (key.n_bytes(), key.e_bytes());
        let components = RsaComponents::new(&n, &e, d);
        black_box(&KeyHandle::from_components(&components).unwrap());
        black_box(&KeyHandle::from_components(&components.primes(p, q)).unwrap());
        octets
            .iter()
            .for_each(|number| set_undefined(number, false));
    }
}

/// d, p, q, dP, dQ and qInv in marked octets, at full width.
fn secret_octets(key: &PrivateKey) -> [Vec<u8>; 6] {
    let [p, q] = [0, 1].map(|i| key.primes()[i].as_ref());
    let (dp, dq) = (key.dp().unwrap(), key.dq().unwrap());
    let qinv = key.crt_coefficient().unwrap();
    [key.d(), p, q, dp, dq, &qinv].map(|number| {
        let octets = number.to_be_bytes().to_vec();
        set_undefined(&octets, true);
        octets
    })
}

/// A branch on a comparison, as a careless recombination makes.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_comparison() {
    let key = KeyHandle::new(&rsa_keys().remove(0)).unwrap();
    set_secrets_undefined(&key);
    let Private::Crt(crt) = &key.parts().private().numbers else {
        unreachable!("the key has CRT values");
    };
    let [p, q] = [crt.p(), crt.q()].map(|prime| prime.limbs[prime.limbs.len() - 1]);
    if black_box(p.ct_lt(&q).to_bool()) {
        println!("p is the smaller one");
    }
}

/// Valid and wrong padding, with zeros in several places or none. Only lengths are revealed.
#[test]
#[ignore = "run under valgrind by the test above"]
fn unpad_pkcs1_v15() {
    let ciphertext = [0x39; 128];
    for (kind, zero) in [(2, 40), (2, 11), (2, 10), (2, 9), (2, 127), (1, 40), (2, 0)] {
        let mut em = [0xc5; 128];
        (em[0], em[1]) = (0, kind);
        em[zero] = 0;
        let d_hash = [0x11; 32];
        set_undefined(&em, true);
        set_undefined(&d_hash, true);
        let alternative = pkcs1_v15::Alternative::new(&d_hash, &ciphertext);
        let message = pkcs1_v15::decode(&em, &alternative);
        black_box(&message);
    }
}

/// Valid padding, and each kind of wrong padding. The verdict is revealed, and then the length.
#[test]
#[ignore = "run under valgrind by the test above"]
fn unpad_oaep() {
    let label_hash = Sha256::digest([]);
    for (first, label, end) in [(0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 2), (0, 0, 0)] {
        let mut em = [0; 128];
        let (octet, masked) = em.split_at_mut(1);
        let (seed, db) = masked.split_at_mut(32);
        octet[0] = first;
        db[..32].copy_from_slice(&label_hash);
        db[3] ^= label;
        db[50] = end;
        add_mask::<Sha256>(seed, db);
        add_mask::<Sha256>(db, seed);
        set_undefined(&em, true);
        let message = oaep::decode::<Sha256>(&mut em, &label_hash);
        assert_eq!(message.is_ok(), (first, label, end) == (0, 0, 1));
        black_box(&message);
    }
}

/// Encryption of secret messages with secret seeds. A padding octet that is zero is revealed and
/// drawn again.
#[test]
#[ignore = "run under valgrind by the test above"]
fn encrypt() {
    fn with<S: EncryptionScheme + Sync>(scheme: S) {
        let messages = [vec![0x5a; 20], Vec::new(), vec![0; 62]];
        for message in &messages {
            set_undefined(message, true);
        }
        let keys: Vec<_> = rsa_keys()
            .iter()
            .map(|key| PublicKey::try_from(&key.to_public_key()).unwrap())
            .collect();
        let batch: Vec<_> = keys.iter().cycle().zip(&messages).collect();
        let encryptor = BatchEncryptor::new(Serial, scheme);
        let ciphertexts = encryptor.encrypt_each(&mut SecretRandom::new(4), &batch);
        for ciphertext in &ciphertexts.unwrap() {
            black_box(ciphertext.unwrap());
        }
        for message in &messages {
            set_undefined(message, false);
        }
    }
    with(RsaesOaep::<Sha256>::new());
    with(RsaesPkcs1v15);
}

/// Candidates from marked random numbers. The rejections are revealed.
#[test]
#[ignore = "run under valgrind by the test above"]
fn draw_candidates() {
    for is_safe in [false, true] {
        let candidates = Candidates::new(512, &[3, 65_537], 1 << 13, is_safe);
        let mut randomness = Streams::seeded(&mut SecretRandom::new(5)).unwrap().next();
        let drawn = candidates.draw(&mut randomness, 4, &mut 100_000).unwrap();
        assert_eq!(black_box(&drawn).len(), 4 * 512 / Limb::BITS as usize);
    }
}

/// Tests of a marked prime and of a product of two. The verdicts are revealed.
#[test]
#[ignore = "run under valgrind by the test above"]
fn test_primality() {
    for key in rsa_keys() {
        let (p, n) = (key.primes()[0].as_ref(), key.n().as_ref());
        for (number, passes) in [(p, true), (n, false)] {
            let width = number.bits_precision().next_multiple_of(64);
            let number = number.clone().resize(width);
            // With a length that is known, as of candidates, and without.
            let min_bits = if passes {
                number.bit_width_vartime()
            } else {
                0
            };
            set_undefined(number.as_limbs(), true);
            let modulus = Modulus::new(number.as_limbs(), min_bits);
            let mut randomness = Streams::seeded(&mut SecretRandom::new(6)).unwrap().next();
            let moduli = [modulus.by_ref(); 3];
            let mut verdicts = pass(&on_engine(&Serial), &moduli, None).unwrap();
            verdicts.extend(pass(&on_engine(&Serial), &moduli, Some(&mut randomness)).unwrap());
            set_undefined(number.as_limbs(), false);
            set_modulus_undefined(modulus.by_ref(), false);
            assert_eq!(verdicts.contains(&true), passes);
        }
    }
}

/// n and d of two marked numbers. The verdict whether they fit together is revealed.
#[test]
#[ignore = "run under valgrind by the test above"]
fn combine_primes() {
    // Both are 3 modulo 4. They need not be primes.
    let p = BoxedUint::max(512).wrapping_sub(BoxedUint::from(568u32));
    let q = BoxedUint::from(13u8)
        .resize(512)
        .shl(508)
        .wrapping_add(BoxedUint::from(3783u32));
    set_undefined(p.as_limbs(), true);
    set_undefined(q.as_limbs(), true);
    assert!(black_box(Numbers::new(65_537, &p, &q)).is_some());
    set_undefined(p.as_limbs(), false);
    set_undefined(q.as_limbs(), false);
}

/// A branch on a candidate before its rejection is revealed, as careless trial division makes.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_candidate() {
    let candidates = Candidates::new(512, &[65_537], 1 << 13, false);
    let mut randomness = Streams::seeded(&mut SecretRandom::new(5)).unwrap().next();
    let drawn = candidates.draw(&mut randomness, 1, &mut 100_000).unwrap();
    if black_box(drawn[0].0) % 3 == 1 {
        println!("1 modulo 3");
    }
}

/// A branch on padding, as careless unpadding makes.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_padding() {
    let em = [0xc5; 128];
    set_undefined(&em, true);
    if black_box(&em)[1] != 2 {
        println!("the padding is wrong");
    }
}

/// A revealed value may reach a branch, but not the secret it was computed from.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_beside_a_verdict() {
    let octet = [0xc5];
    set_undefined(&octet, true);
    let is_seven = reveal(black_box(&octet)[0].ct_eq(&7));
    if black_box(&octet)[0] == 5 && !is_seven {
        println!("five");
    }
}

/// A branch on a random number.
#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_blind() {
    let mut octets = [0; 8];
    let Ok(()) = SecretRandom::new(1).try_fill_bytes(&mut octets);
    if black_box(octets[3] & 1) == 1 {
        println!("odd");
    }
}

fn rsa_keys() -> Vec<PrivateKey> {
    let pems = [
        include_str!("../../tests/keys/rsa1024.pem"),
        include_str!("../../tests/keys/rsa1025.pem"),
    ];
    pems.map(|pem| PrivateKey::from_pkcs1_pem(pem).unwrap())
        .into()
}

/// Private operations from octets to octets, with and without blinding. Keys are marked secret
/// after their import, which `import` covers.
fn private_operations(backend: &impl RsaBackend, rsa_keys: Vec<PrivateKey>) {
    let keys: Vec<_> = rsa_keys
        .iter()
        .map(|key| KeyHandle::new(key).unwrap())
        .collect();
    keys.iter().for_each(set_secrets_undefined);
    let order = [0, 1, 0, 0, 1];
    let items: Vec<_> = order.iter().map(|&key| &keys[key]).collect();
    for blinded in [false, true] {
        // Blinding factors and messages are derived from marked random numbers.
        let streams = Streams::seeded(&mut SecretRandom::new(2)).unwrap();
        let source = RandomBlocks {
            keys: &items,
            streams: Streams::seeded(&mut SecretRandom::new(3)).unwrap(),
        };
        let results = compute_by_class(backend, items.len(), &source, &streams, blinded);
        let results = SecretOctets::new(results.unwrap());
        for (result, key) in results.iter().zip(order) {
            let result = result.expect("a result that passes its check");
            assert_eq!(black_box(result).len(), keys[key].size());
        }
    }
}

/// Random numbers below any modulus, and above 1.
struct RandomBlocks<'a> {
    keys: &'a [&'a KeyHandle],
    streams: Streams,
}

impl Source for RandomBlocks<'_> {
    fn key(&self, position: usize) -> &KeyParts {
        self.keys[position].parts()
    }

    fn encode(&self, _: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        em[0] = 0;
        let drawn = self.streams.next().try_fill_bytes(&mut em[1..]);
        drawn.map_err(|_| Error::Rng)
    }

    /// The range with the most comparisons.
    fn check(&self, key: &KeyParts, em: &[Limb]) -> Result<(), Error> {
        Range::Sp800_56b.check(key, em)
    }
}

/// Marks all secrets of a key, until it is wiped.
fn set_secrets_undefined(key: &KeyHandle) {
    let mark = |number: &BoxedUint| set_undefined(number.as_limbs(), true);
    let parts = key.parts();
    match &parts.private().numbers {
        Private::Crt(crt) => {
            set_modulus_undefined(crt.p(), true);
            set_modulus_undefined(crt.q(), true);
            for number in [&crt.dp_less_1, &crt.dq_less_1, &crt.qinv] {
                mark(number);
            }
        }
        Private::Plain { d_less_1 } => mark(d_less_1),
    }
    set_undefined(&*parts.private().d_hash, true);
}

/// A generator of marked random numbers.
struct SecretRandom(ChaCha8Rng);

impl SecretRandom {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }
}

impl TryRng for SecretRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(octets);
        set_undefined(octets, true);
        Ok(())
    }
}

impl TryCryptoRng for SecretRandom {}
