//! Needles: pieces of every secret number of a private key and of its use.

use core::convert::Infallible;
use std::sync::Mutex;

use batch_modexp::rsa::KeyHandle;
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModMul, BatchMultiExp, Error,
    ModExp, ModMul, ModMultiExp, MultiExpVartime,
};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Odd, U1024};
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::freed::contains;

/// Sixteen bytes from the middle of a secret.
#[derive(Clone)]
pub struct Needle {
    pub name: &'static str,
    pub bytes: [u8; 16],
}

impl Needle {
    /// A piece of `number` as in memory, in little-endian limbs.
    pub fn new(name: &'static str, number: &BigUint) -> Self {
        let bytes = number.to_bytes_le();
        let middle = bytes.len() / 2 / 8 * 8;
        Self {
            name,
            bytes: bytes[middle..middle + 16].try_into().unwrap(),
        }
    }

    /// A piece of `number` as in the vectors of `Ifma`: a limb of 52 bits, in two neighbouring
    /// lanes with the same number.
    pub fn in_lanes(name: &'static str, number: &BigUint) -> Self {
        let middle = number.bits() / 2 / 52 * 52;
        let limb = (number >> middle) % (1u64 << 52);
        let limb = u64::try_from(limb).unwrap().to_le_bytes();
        let bytes = [limb; 2].concat().try_into().unwrap();
        Self { name, bytes }
    }
}

/// The same limb of two numbers, side by side, as in a row of the table of a fixed base.
fn neighbours(name: &'static str, numbers: [&BigUint; 2], radix_bits: u64) -> Needle {
    let limb = |number: &BigUint| {
        let low = number >> (numbers[0].bits() / 2 / radix_bits * radix_bits);
        let limb = low % (BigUint::from(1u8) << radix_bits);
        u64::try_from(limb).unwrap().to_le_bytes()
    };
    let bytes = numbers.map(limb).concat().try_into().unwrap();
    Needle { name, bytes }
}

/// A key with a message representative and all intermediate values of signing it.
pub struct Case {
    pub key: PrivateKey,
    pub digest: [u8; 32],
    pub blinded: bool,
    pub needles: Vec<Needle>,
}

/// All four kinds of cases.
pub fn cases() -> Vec<Case> {
    [(true, false), (true, true), (false, false), (false, true)]
        .map(|(crt, blinded)| case(crt, blinded))
        .into()
}

/// A case with CRT values or with the private exponent alone, blinded or not.
pub fn case(crt: bool, blinded: bool) -> Case {
    let mut key = PrivateKey::from_pkcs1_pem(include_str!("../keys/rsa2048.pem")).unwrap();
    let big = |x: &crypto_bigint::BoxedUint| BigUint::from_bytes_be(&x.to_be_bytes());
    let digest = [0x5a; 32];
    let mut m = big(&representative(&key, &digest));
    let mut needles = Vec::new();
    if blinded {
        // From here on m is the blinded base.
        m = blind(&m, &big(key.n().as_ref()), &big(key.e()), &mut needles);
    }
    let (p, q, d) = (
        big(key.primes()[0].as_ref()),
        big(key.primes()[1].as_ref()),
        big(key.d()),
    );
    needles.extend(if crt {
        // The exponents less 1; their pieces equal those of dP and dQ.
        let (dp, dq) = (&d % (&p - 1u8) - 1u8, &d % (&q - 1u8) - 1u8);
        let qinv = q.modinv(&p).unwrap();
        let (m1, m2) = (m.modpow(&dp, &p), m.modpow(&dq, &q));
        let h = (&m1 + &p - &m2 % &p) * &qinv % &p;
        let table_entry = m.modpow(&7u8.into(), &p);
        vec![
            Needle::new("p", &p),
            Needle::new("q", &q),
            Needle::new("dp", &dp),
            Needle::new("dq", &dq),
            Needle::in_lanes("p in lanes", &p),
            Needle::in_lanes("q in lanes", &q),
            Needle::new("qinv", &qinv),
            Needle::new("m mod p", &(&m % &p)),
            Needle::new("m mod q", &(&m % &q)),
            Needle::new("m^(dp - 1) mod p", &m1),
            Needle::new("m^(dq - 1) mod q", &m2),
            Needle::new("m^(dp - 1) qinv mod p", &(&m1 * &qinv % &p)),
            Needle::new("m^(dq - 1) qinv mod p", &(&m2 * &qinv % &p)),
            Needle::new("h", &h),
            Needle::new(
                "m^7 mod p in Montgomery form",
                &((table_entry << 1024) % &p),
            ),
            Needle::new("R^2 mod p", &((BigUint::from(1u8) << 2048) % &p)),
        ]
    } else {
        key.clear_precomputed();
        let n = big(key.n().as_ref());
        let table_entry = m.modpow(&7u8.into(), &n);
        vec![
            Needle::new("d", &d),
            Needle::new(
                "m^7 mod n in Montgomery form",
                &((table_entry << 2048) % &n),
            ),
        ]
    });
    Case {
        key,
        digest,
        blinded,
        needles,
    }
}

/// Blinds m like the item with index [`ITEM`], and adds all intermediate values to the needles.
fn blind(m: &BigUint, n: &BigUint, e: &BigUint, needles: &mut Vec<Needle>) -> BigUint {
    let mut seed = [0; 32];
    let Ok(()) = Known::default().try_fill_bytes(&mut seed);
    // The first stream.
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut octets = [0; 256];
    for _ in 0..=ITEM {
        // The modulus has 2048 bits. Of numbers that are not below it, the first limb is drawn again.
        let mut missing = octets.len();
        loop {
            rng.fill_bytes(&mut octets[..missing]);
            if BigUint::from_bytes_be(&octets) < *n {
                break;
            }
            missing = 8;
        }
    }
    let r = BigUint::from_bytes_be(&octets);
    let power = r.modpow(&(e - 1u8), n);
    let factor = m * &power % n;
    let base = &factor * &r % n;
    let form = |number: &BigUint| (number << 2048) % n;
    needles.extend([
        Needle {
            name: "seed",
            bytes: seed[8..24].try_into().unwrap(),
        },
        Needle::new("r", &r),
        Needle::new("octets of r", &BigUint::from_bytes_le(&octets)),
        Needle::new("r in Montgomery form", &form(&r)),
        Needle::new("r^(e - 1)", &power),
        Needle::new("r^(e - 1) in Montgomery form", &form(&power)),
        Needle::new("m * r^(e - 1)", &factor),
        Needle::new("m * r^(e - 1) in Montgomery form", &form(&factor)),
        Needle::new("m * r^e", &base),
    ]);
    base
}

/// The item whose random number is searched for: one between others.
const ITEM: usize = 1;

/// A generator with known numbers that keeps no copies of them.
#[derive(Default)]
pub struct Known(u64);

impl TryRng for Known {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| word as u32)
    }

    /// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.0;
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(z ^ z >> 31)
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        for chunk in octets.chunks_mut(8) {
            let word = self.try_next_u64()?.to_be_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Known {}

/// The encoded message of PKCS#1 v1.5 for a SHA-256 digest.
fn representative(key: &PrivateKey, digest: &[u8]) -> crypto_bigint::BoxedUint {
    let prefix = rsa::Pkcs1v15Sign::new::<sha2::Sha256>().prefix;
    let mut em = vec![0xff; key.size()];
    let info = em.len() - prefix.len() - digest.len();
    em[..2].copy_from_slice(&[0, 1]);
    em[info - 1] = 0;
    em[info..].copy_from_slice(&[&prefix[..], digest].concat());
    crypto_bigint::BoxedUint::from_be_slice(&em, key.n_bits_precision()).unwrap()
}

impl Case {
    pub fn handle(&self) -> KeyHandle {
        KeyHandle::new(&self.key).unwrap()
    }

    /// Signs with the key, and drops it.
    pub fn sign<B: batch_modexp::rsa::backend::RsaBackend>(&self, handle: KeyHandle, backend: B) {
        use batch_modexp::rsa::{BatchSigner, Pkcs1v15};
        let signer =
            BatchSigner::new(backend, Pkcs1v15::<sha2::Sha256>::new()).blinding(self.blinded);
        let digests = [self.digest; 3];
        let signatures = signer
            .sign_prehash(&mut Known::default(), &handle, &digests)
            .unwrap();
        assert!(signatures.iter().all(|signature| signature.is_ok()));
    }
}

/// One exponentiation in `Uint`s of 1024 bits, with all intermediate values.
pub struct FixedCase {
    base: U1024,
    exponent: U1024,
    /// The same exponent for each instance.
    exponents: [U1024; 3],
    params: FixedMontyParams<{ U1024::LIMBS }>,
    /// The place for results; at first it holds numbers that are secrets too.
    out: Mutex<[U1024; 3]>,
    pub needles: Vec<Needle>,
}

pub fn fixed_case() -> FixedCase {
    let mut rng = Known(7);
    let mut number = || {
        let mut octets = [0; 128];
        let Ok(()) = rng.try_fill_bytes(&mut octets);
        U1024::from_be_slice(&octets)
    };
    let (base, exponent, modulus, old) = (number(), number(), number() | U1024::ONE, number());
    let big = |number: &U1024| BigUint::from_bytes_be(&number.to_be_bytes());
    let (b, e, m) = (big(&base), big(&exponent), big(&modulus));
    let params = FixedMontyParams::new(Odd::new(modulus).unwrap());
    let form = |number: BigUint| (number << 1024) % &m;
    let entries = [2u8, 3].map(|exponent| b.modpow(&exponent.into(), &m));
    let entries = [&entries[0], &entries[1]];
    let needles = vec![
        neighbours("entries in limbs of 64 bits", entries, 64),
        neighbours("entries in limbs of 52 bits", entries, 52),
        neighbours("entries in limbs of 51 bits", entries, 51),
        Needle::new("modulus", &m),
        Needle::new("R^2", &form(form(1u8.into()))),
        Needle::new("base", &b),
        Needle::new("base in Montgomery form", &form(b.clone())),
        Needle::new(
            "base^7 in Montgomery form",
            &form(b.modpow(&7u8.into(), &m)),
        ),
        Needle::new("exponent", &e),
        Needle::new("result", &b.modpow(&e, &m)),
        Needle::new("result in Montgomery form", &form(b.modpow(&e, &m))),
        Needle::new("old output", &big(&old)),
    ];
    FixedCase {
        base,
        exponent,
        exponents: [exponent; 3],
        params,
        out: Mutex::new([old; 3]),
        needles,
    }
}

impl FixedCase {
    /// Computes a batch of three.
    pub fn compute<B: BatchModExp<U1024, Error = Error>>(&self, backend: &B) {
        let batch = [ModExp {
            base: &self.base,
            exponent: &self.exponent,
            params: &self.params,
        }; 3];
        let mut out = self.out.lock().unwrap();
        backend
            .batch_mod_exp(&batch, U1024::BITS, &mut *out)
            .unwrap();
    }

    /// Computes the batch by tables, and as a product with another power.
    pub fn compute_by_table<B>(&self, backend: &B)
    where
        B: BatchFixedBaseExp + BatchFixedBaseExpVartime + BatchMultiExp,
    {
        let mut out = self.out.lock().unwrap();
        let terms = [
            (&self.base, &self.exponent),
            (&self.exponent, &self.exponent),
        ];
        let batch = [ModMultiExp::new(&terms, &self.params); 3];
        backend
            .batch_multi_exp(&batch, &[U1024::BITS, 0], &mut *out)
            .unwrap();
        let table = backend
            .fixed_base_vartime(&self.base, &self.params, U1024::BITS, usize::MAX)
            .unwrap();
        backend
            .batch_fixed_base_exp_vartime(&table, &self.exponents, U1024::BITS, &mut *out)
            .unwrap();
        let table = backend
            .fixed_base(&self.base, &self.params, U1024::BITS, usize::MAX)
            .unwrap();
        backend
            .batch_fixed_base_exp(&table, &self.exponents, U1024::BITS, &mut *out)
            .unwrap();
    }

    /// Computes the power as a product of few and of many powers with public exponents.
    pub fn compute_products<B: MultiExpVartime>(&self, backend: &B) {
        let mut out = self.out.lock().unwrap();
        let mut terms = vec![(&U1024::ONE, &U1024::ONE); 1000];
        terms[2] = (&self.base, &self.exponent);
        for (out, count) in out.iter_mut().zip([3, 30, 1000]) {
            *out = backend
                .multi_exp_vartime(&terms[..count], &self.params)
                .unwrap();
        }
    }

    /// The needles without the exponent, which such a product takes for public, and the result,
    /// which it returns.
    pub fn needles_of_products(&self) -> Vec<Needle> {
        let is_secret = |needle: &&Needle| !["exponent", "result"].contains(&needle.name);
        self.needles.iter().filter(is_secret).cloned().collect()
    }

    /// Whether the results are right. Not for the thread that computes, whose stack is searched.
    pub fn is_right(&self) -> bool {
        let result = self.needles.iter().find(|needle| needle.name == "result");
        let out = self.out.lock().unwrap();
        out.iter()
            .all(|out| contains(&out.to_le_bytes(), &result.unwrap().bytes))
    }
}

/// Products in `Uint`s of 1024 bits, with all intermediate values.
pub struct ProductCase {
    a: U1024,
    b: U1024,
    params: FixedMontyParams<{ U1024::LIMBS }>,
    /// The place for results; at first it holds numbers that are secrets too.
    out: Mutex<[U1024; 3]>,
    pub needles: Vec<Needle>,
}

pub fn product_case() -> ProductCase {
    let mut rng = Known(11);
    let mut number = || {
        let mut octets = [0; 128];
        let Ok(()) = rng.try_fill_bytes(&mut octets);
        U1024::from_be_slice(&octets)
    };
    let (a, b, modulus, old) = (number(), number(), number() | U1024::ONE, number());
    let big = |number: &U1024| BigUint::from_bytes_be(&number.to_be_bytes());
    let (big_a, big_b, m) = (big(&a), big(&b), big(&modulus));
    let params = FixedMontyParams::new(Odd::new(modulus).unwrap());
    let form = |number: &BigUint| (number << 1024) % &m;
    let needles = vec![
        Needle::new("modulus", &m),
        Needle::new("R^2", &form(&form(&1u8.into()))),
        Needle::new("a", &big_a),
        Needle::new("a in Montgomery form", &form(&big_a)),
        Needle::new("b", &big_b),
        Needle::new("b in Montgomery form", &form(&big_b)),
        Needle::new("product", &(&big_a * &big_b % &m)),
        Needle::new("old output", &big(&old)),
    ];
    ProductCase {
        a,
        b,
        params,
        out: Mutex::new([old; 3]),
        needles,
    }
}

impl ProductCase {
    /// Computes a batch of three, first in Montgomery form and then in ordinary form.
    pub fn compute<B: BatchModMul<U1024, Error = Error>>(&self, backend: &B) {
        let batch = [ModMul::new(&self.a, &self.b, &self.params); 3];
        let mut out = self.out.lock().unwrap();
        backend.batch_monty_mul(&batch, &mut *out).unwrap();
        backend.batch_mod_mul(&batch, &mut *out).unwrap();
    }

    /// Whether the results are right. Not for the thread that computes, whose stack is searched.
    pub fn is_right(&self) -> bool {
        let product = self.needles.iter().find(|needle| needle.name == "product");
        let out = self.out.lock().unwrap();
        out.iter()
            .all(|out| contains(&out.to_le_bytes(), &product.unwrap().bytes))
    }
}
