//! The import of a key leaves no secret behind, whether it succeeds or fails.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{KeyFault, KeyHandle, RsaComponents};
use crypto_bigint::modular::BoxedMontyParams;
use num_bigint::BigUint;
use rsa::pkcs1::EncodeRsaPrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::freed::{Watch, contains};
use super::needles::{Case, Needle, case};
use super::stack::stack_after;

const PEM: &str = include_str!("../keys/rsa2048.pem");
const NOTHING: [&str; 0] = [];

/// The intermediate values of an import.
fn needles(case: &Case) -> Vec<Needle> {
    let big = |x: &crypto_bigint::BoxedUint| BigUint::from_bytes_be(&x.to_be_bytes());
    let [p, q] = [0, 1].map(|i| big(case.key.primes()[i].as_ref()));
    let radix = |prime: &BigUint, power: u32| (BigUint::from(1u8) << (1024 * power)) % prime;
    let mut needles = case.needles.clone();
    needles.extend([
        Needle::new("d", &big(case.key.d())),
        Needle::new("p - 1", &(&p - 1u8)),
        Needle::new("R mod p", &radix(&p, 1)),
        Needle::new("R mod q", &radix(&q, 1)),
        Needle::new("R^2 mod q", &radix(&q, 2)),
        Needle {
            name: "p in DER",
            bytes: p.to_bytes_be()[64..80].try_into().unwrap(),
        },
        // From line 20 of 25, which is within dP.
        Needle {
            name: "base64",
            bytes: PEM.lines().nth(20).unwrap().as_bytes()[..16]
                .try_into()
                .unwrap(),
        },
    ]);
    needles
}

fn from_pem() {
    assert!(KeyHandle::from_pem(PEM).unwrap().has_crt());
}

/// Imports text whose base64 is damaged after the secrets.
fn refused_pem(pem: &str) {
    let error = KeyHandle::from_pem(pem).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Pem));
}

fn damaged_pem() -> String {
    PEM.replace("\n-----END", "?\n-----END")
}

/// The numbers of the case in octets: n, e, d, p, q.
fn octets(case: &Case) -> [Vec<u8>; 5] {
    let key = &case.key;
    let [p, q] = [0, 1].map(|i| key.primes()[i].as_ref());
    [key.n().as_ref(), key.e(), key.d(), p, q].map(|number| number.to_be_bytes().to_vec())
}

/// Imports a key and computes its CRT values.
fn from_components([n, e, d, p, q]: &[Vec<u8>; 5]) {
    KeyHandle::from_components(&RsaComponents::new(n, e, d).primes(p, q)).unwrap();
}

/// Imports the private exponent alone.
fn without_primes([n, e, d, ..]: &[Vec<u8>; 5]) {
    KeyHandle::from_components(&RsaComponents::new(n, e, d)).unwrap();
}

/// Imports a key for which the last checked relation does not hold.
fn refused(der: &[u8]) {
    let error = KeyHandle::from_pkcs1_der(der).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Qinv));
}

/// A key whose last number, qInv, is wrong.
fn damaged(case: &Case) -> Vec<u8> {
    let mut der = case.key.to_pkcs1_der().unwrap().as_bytes().to_vec();
    *der.last_mut().unwrap() ^= 1;
    der
}

#[test]
fn heap() {
    let watch = Watch::begin();
    let case = case(true, false);
    let (needles, octets, damaged) = (needles(&case), octets(&case), damaged(&case));
    let damaged_pem = damaged_pem();
    let imports: [(&str, &dyn Fn()); 6] = [
        ("PEM", &from_pem),
        ("damaged PEM", &|| refused_pem(&damaged_pem)),
        ("a key of the rsa crate", &|| drop(case.handle())),
        ("components", &|| from_components(&octets)),
        ("without primes", &|| without_primes(&octets)),
        ("refused", &|| refused(&damaged)),
    ];
    for (name, import) in imports {
        let found = watch.found_in_freed_blocks(&needles, import);
        assert_eq!(found, NOTHING, "{name}");
    }
}

/// A control: values that crypto-bigint leaves in the heap are found.
#[test]
fn the_probe_finds_what_is_not_overwritten() {
    let watch = Watch::begin();
    let case = case(true, false);
    let p = case.key.primes()[0].clone();
    let found = watch.found_in_freed_blocks(&needles(&case), || drop(BoxedMontyParams::new(p)));
    assert!(found.contains(&"p"), "{found:?}");
}

#[test]
fn stack() {
    let _watch = Watch::begin();
    // The case stays alive until the threads have ended.
    let case: &Case = Box::leak(Box::new(case(true, false)));
    let (needles, damaged) = (needles(case), damaged(case));
    let octets: &[Vec<u8>; 5] = Box::leak(Box::new(octets(case)));
    type Import = Box<dyn FnOnce() + Send>;
    let damaged_pem = damaged_pem();
    let imports: [(&str, Import); 6] = [
        ("PEM", Box::new(from_pem)),
        ("a key of the rsa crate", Box::new(|| drop(case.handle()))),
        ("damaged PEM", Box::new(move || refused_pem(&damaged_pem))),
        ("components", Box::new(|| from_components(octets))),
        ("without primes", Box::new(|| without_primes(octets))),
        ("refused", Box::new(move || refused(&damaged))),
    ];
    for (name, import) in imports {
        let stack = stack_after(import);
        let left: Vec<_> = needles
            .iter()
            .filter(|needle| contains(&stack, &needle.bytes))
            .map(|needle| needle.name)
            .collect();
        assert!(left.is_empty(), "{name}: left on the stack: {left:?}");
    }
}
