//! No freed block holds a secret.

use batch_modexp::backend::{Auto, Cpu, Parallel, Serial};
use batch_modexp::rsa::{BatchDecryptor, KeyHandle, RsaesOaep, RsaesPkcs1v15};
use batch_modexp::secret::Secret;
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModExpEach as _, BatchModMul,
    BatchMultiExp, Error, ModExp, ModMul, MultiExpVartime,
};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd, U1024};
use num_bigint::BigUint;
use rsa::traits::PublicKeyParts;

use super::freed::Watch;
use super::needles::{Known, Needle, cases, fixed_case, product_case};
use super::simd::each_simd_backend;

const NOTHING: [&str; 0] = [];

/// A control: an ordinary vector is found.
#[test]
fn the_probe_finds_what_is_not_wiped() {
    let watch = Watch::begin();
    let secret = vec![0x1234_5678_9abc_def1u64; 8];
    let bytes: Vec<u8> = secret.iter().flat_map(|word| word.to_le_bytes()).collect();
    let needles = [Needle::new("secret", &BigUint::from_bytes_le(&bytes))];
    let copy = secret.clone();
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || drop(copy)),
        ["secret"]
    );
    let copy = Secret::new(secret.clone());
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || drop(copy)),
        NOTHING
    );
}

/// Uses and drops a handle, on every backend, with and without CRT and blinding. `import` checks
/// the blocks that its import frees, once they are overwritten.
#[test]
fn signing() {
    let watch = Watch::begin();
    for case in cases() {
        let found = |sign: &dyn Fn(KeyHandle)| {
            let handle = case.handle();
            watch.found_in_freed_blocks(&case.needles, || sign(handle))
        };
        assert_eq!(found(&|handle| case.sign(handle, Serial)), NOTHING);
        let parallel = || Parallel::with_threads(Serial, 2.try_into().unwrap()).unwrap();
        assert_eq!(found(&|handle| case.sign(handle, parallel())), NOTHING);
        let auto = || Auto::with_gpus().unwrap();
        assert_eq!(found(&|handle| case.sign(handle, auto())), NOTHING);
    }
}

/// Messages from ciphertexts, with valid and invalid padding.
#[test]
fn decrypting() {
    let watch = Watch::begin();
    let message: [u8; 32] = core::array::from_fn(|i| 0x80 + 3 * i as u8);
    for case in cases() {
        let size = case.key.size();
        let mut em = vec![0xd7; size];
        em[..2].copy_from_slice(&[0, 2]);
        em[size - message.len() - 1] = 0;
        em[size - message.len()..].copy_from_slice(&message);
        let mut wrong = em.clone();
        wrong[1] = 1;
        let [n, e] = [case.key.n().as_ref(), case.key.e()]
            .map(|number| BigUint::from_bytes_be(&number.to_be_bytes()));
        let encrypted = |em: &[u8]| {
            let c = BigUint::from_bytes_be(em).modpow(&e, &n).to_bytes_be();
            [vec![0; size - c.len()], c].concat()
        };
        let ciphertexts = [encrypted(&em), encrypted(&wrong)];
        let oaep = rsa::PublicKey::from(&case.key)
            .encrypt(
                &mut Known::default(),
                rsa::Oaep::<sha2::Sha256>::new(),
                &message,
            )
            .unwrap();
        let mut needles = case.needles.clone();
        // Without the intermediate values of signing.
        needles.retain(|needle| matches!(needle.name, "d" | "p" | "q" | "dp" | "dq" | "qinv"));
        needles.push(Needle::new("encoded message", &BigUint::from_bytes_be(&em)));
        needles.push(Needle {
            name: "message",
            bytes: message[8..24].try_into().unwrap(),
        });
        let handle = case.handle();
        let decrypt = || {
            let handle = handle;
            let rng = &mut Known::default();
            let pkcs1 = BatchDecryptor::new(Serial, RsaesPkcs1v15).blinding(case.blinded);
            let messages = pkcs1.decrypt(rng, &handle, &ciphertexts).unwrap();
            assert_eq!(*messages.get(0).unwrap(), message);
            assert_ne!(*messages.get(1).unwrap(), message);
            let scheme = RsaesOaep::<sha2::Sha256>::new();
            let decryptor = BatchDecryptor::new(Serial, scheme).blinding(case.blinded);
            let messages = decryptor.decrypt(rng, &handle, &[&oaep]).unwrap();
            assert_eq!(*messages.get(0).unwrap(), message);
        };
        assert!(needles.len() > 2);
        assert_eq!(watch.found_in_freed_blocks(&needles, decrypt), NOTHING);
        // A control: without its wrapper the message remains.
        let handle = case.handle();
        let leak = || {
            let decryptor = BatchDecryptor::new(Serial, RsaesPkcs1v15);
            let messages = decryptor
                .decrypt(&mut Known::default(), &handle, &ciphertexts)
                .unwrap();
            drop(messages.get(0).unwrap().to_vec());
        };
        assert_eq!(watch.found_in_freed_blocks(&needles, leak), ["message"]);
    }
}

/// `Uint`s, on every backend.
#[test]
fn fixed_widths() {
    let watch = Watch::begin();
    let parallel = Parallel::with_threads(Serial, 2.try_into().unwrap()).unwrap();
    let (cpu, auto) = (Cpu::new().unwrap(), Auto::with_gpus().unwrap());
    leaves_nothing(&watch, &Serial);
    leaves_nothing(&watch, &parallel);
    leaves_nothing(&watch, &cpu);
    leaves_nothing(&watch, &auto);
    macro_rules! simd_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = batch_modexp::backend::$Backend::new() {
                leaves_nothing(&watch, &backend);
            }
        };
    }
    each_simd_backend!(simd_backend);
}

fn leaves_nothing<B>(watch: &Watch, backend: &B)
where
    B: BatchModExp<U1024, Error = Error>
        + BatchModMul<U1024, Error = Error>
        + BatchFixedBaseExp
        + BatchFixedBaseExpVartime
        + BatchMultiExp
        + MultiExpVartime,
{
    let case = fixed_case();
    let found = watch.found_in_freed_blocks(&case.needles, || case.compute(backend));
    assert_eq!(found, NOTHING);
    assert!(case.is_right());
    let case = fixed_case();
    let found = watch.found_in_freed_blocks(&case.needles, || case.compute_by_table(backend));
    assert_eq!(found, NOTHING);
    assert!(case.is_right());
    let case = fixed_case();
    let needles = case.needles_of_products();
    let found = watch.found_in_freed_blocks(&needles, || case.compute_products(backend));
    assert_eq!(found, NOTHING);
    assert!(case.is_right());
    let case = product_case();
    let found = watch.found_in_freed_blocks(&case.needles, || case.compute(backend));
    assert_eq!(found, NOTHING);
    assert!(case.is_right());
}

/// Replaced results and failed batches leave nothing behind either.
#[test]
fn products() {
    let watch = Watch::begin();
    let number = |byte: u8| BoxedUint::from_be_slice(&[byte; 64], 512).unwrap();
    let wide = BoxedUint::from_be_slice(&[0x35; 128], 1024).unwrap();
    let modulus = number(0xc3);
    let params = BoxedMontyParams::new(Odd::new(modulus.clone()).unwrap());
    let (a, b) = (number(0x71), number(0xa9));
    let [m, big_a, big_b] = [&modulus, &a, &b].map(|x| BigUint::from_bytes_be(&x.to_be_bytes()));
    let needles = [
        Needle::new("modulus", &m),
        Needle::new("a", &big_a),
        Needle::new("b", &big_b),
        Needle::new("product", &(&big_a * &big_b % &m)),
        Needle::new("old output", &BigUint::from_bytes_be(&[0x3c; 128])),
    ];
    let run = |backend: &dyn BatchModMul<BoxedUint, Error = Error>, a: &BoxedUint| {
        let batch = [ModMul::new(&b, a, params.as_ref()); 2];
        let old = || BoxedUint::from_be_slice(&[0x3c; 128], 1024).unwrap();
        let mut out = Secret::new(vec![old(), old()]);
        backend.batch_mod_mul(&batch, &mut out).is_ok()
            && backend.batch_monty_mul(&batch, &mut out).is_ok()
    };
    let mut backends: Vec<Box<dyn BatchModMul<BoxedUint, Error = Error>>> = vec![Box::new(Serial)];
    macro_rules! simd_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = batch_modexp::backend::$Backend::new() {
                backends.push(Box::new(backend));
            }
        };
    }
    each_simd_backend!(simd_backend);
    for backend in &backends {
        let found = watch.found_in_freed_blocks(&needles, || assert!(run(backend, &a)));
        assert_eq!(found, NOTHING);
        let found = watch.found_in_freed_blocks(&needles, || assert!(!run(backend, &wide)));
        assert_eq!(found, NOTHING);
    }
}

/// Replaced results and failed batches leave nothing behind either.
#[test]
fn exponentiations() {
    let watch = Watch::begin();
    let number = |byte: u8| BoxedUint::from_be_slice(&[byte; 64], 512).unwrap();
    let modulus = number(0xc3);
    let params = BoxedMontyParams::new(Odd::new(modulus.clone()).unwrap());
    let (base, exponent) = (number(0x71), number(0xa9));
    let [m, b, e] = [&modulus, &base, &exponent].map(|x| BigUint::from_bytes_be(&x.to_be_bytes()));
    let needles = [
        Needle::new("modulus", &m),
        Needle::new("base", &b),
        Needle::new("exponent", &e),
        Needle::new("result", &b.modpow(&e, &m)),
        Needle::new("old output", &BigUint::from_bytes_be(&[0x3c; 128])),
    ];
    let run = |exponent_bits: u32| {
        let batch = [ModExp {
            base: &base,
            exponent: &exponent,
            params: params.as_ref(),
        }; 2];
        let old = || BoxedUint::from_be_slice(&[0x3c; 128], 1024).unwrap();
        let mut out = Secret::new(vec![old(), old()]);
        Serial
            .batch_mod_exp(&batch, exponent_bits, &mut out)
            .is_ok()
    };
    let run_each = |exponent_bits: u32| {
        let batch = [ModExp::new(&base, &exponent, params.as_ref()); 3];
        let old = || BoxedUint::from_be_slice(&[0x3c; 128], 1024).unwrap();
        let mut out = Secret::new(vec![old(), old(), old()]);
        let lengths = [512, 300, exponent_bits];
        Serial
            .batch_mod_exp_each(&batch, &lengths, &mut out)
            .is_ok()
    };
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || assert!(run_each(512))),
        NOTHING
    );
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || assert!(!run_each(513))),
        NOTHING
    );
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || assert!(run(512))),
        NOTHING
    );
    assert_eq!(
        watch.found_in_freed_blocks(&needles, || assert!(!run(513))),
        NOTHING
    );
}
