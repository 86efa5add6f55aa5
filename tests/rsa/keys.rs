//! The test keys, made by OpenSSL. They protect nothing.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

pub fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(0x7369_676e)
}

macro_rules! pem {
    ($name:literal) => {
        include_str!(concat!("../keys/", $name, ".pem"))
    };
}

pub fn rsa1024() -> PrivateKey {
    PrivateKey::from_pkcs1_pem(pem!("rsa1024")).unwrap()
}

pub fn rsa2048() -> PrivateKey {
    PrivateKey::from_pkcs1_pem(pem!("rsa2048")).unwrap()
}

/// Keys of common and unusual sizes, in both encodings, with public exponents 65537 and 3.
pub fn all_sizes() -> Vec<PrivateKey> {
    let pkcs1 = [
        pem!("rsa1024"),
        pem!("rsa1025"),
        pem!("rsa2048"),
        pem!("rsa2048-e3"),
        pem!("rsa2056"),
        pem!("rsa3072"),
        pem!("rsa3104"),
        pem!("rsa4096"),
        pem!("rsa8192"),
    ];
    let pkcs8 = PrivateKey::from_pkcs8_pem(pem!("rsa2048-pkcs8")).unwrap();
    pkcs1
        .into_iter()
        .map(|pem| PrivateKey::from_pkcs1_pem(pem).unwrap())
        .chain([pkcs8])
        .collect()
}

/// A key without its CRT values.
pub fn without_crt() -> PrivateKey {
    let mut key = rsa2048();
    key.clear_precomputed();
    key
}

/// A key whose primes are stored as wide as its modulus.
pub fn wide_primes() -> PrivateKey {
    let key = rsa1024();
    let primes = key
        .primes()
        .iter()
        .map(|prime| prime.as_ref().clone())
        .collect();
    let (n, e, d) = (key.n().as_ref().clone(), key.e().clone(), key.d().clone());
    PrivateKey::from_components_with_wide_primes(n, e, d, primes).unwrap()
}

/// A key whose components are all imported as integers of 4096 bits.
pub fn wide_integers() -> PrivateKey {
    use crypto_bigint::Resize;
    let key = rsa2048();
    let wide = |number: &crypto_bigint::BoxedUint| number.clone().resize(4096);
    let primes = key.primes().iter().map(|prime| wide(prime.as_ref()));
    PrivateKey::from_components(
        wide(key.n().as_ref()),
        wide(key.e()),
        wide(key.d()),
        primes.collect(),
    )
    .unwrap()
}

/// A key whose first prime is the smaller one.
pub fn swapped_primes() -> PrivateKey {
    let key = rsa1024();
    let [p, q] = [0, 1].map(|i| key.primes()[i].as_ref().clone());
    PrivateKey::from_p_q(q, p, key.e().clone()).unwrap()
}

/// A key with three primes.
pub fn three_primes() -> PrivateKey {
    use crypto_bigint::BoxedUint;
    let hex = |digits: &str| BoxedUint::from_str_radix_vartime(digits, 16).unwrap();
    let primes = include_str!("../keys/three-primes.txt")
        .lines()
        .map(hex)
        .collect();
    PrivateKey::from_primes(primes, BoxedUint::from(65537u32)).unwrap()
}
