//! What to look for: pieces of every secret number of a private key and of its use.

use batch_modexp::rsa::KeyHandle;
use num_bigint::BigUint;
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

/// Sixteen bytes out of the middle of a secret.
#[derive(Clone)]
pub struct Needle {
    pub name: &'static str,
    pub bytes: [u8; 16],
}

impl Needle {
    /// A piece of `number` as it lies in memory, in little-endian limbs.
    pub fn new(name: &'static str, number: &BigUint) -> Self {
        let bytes = number.to_bytes_le();
        let middle = bytes.len() / 2 / 8 * 8;
        Self {
            name,
            bytes: bytes[middle..middle + 16].try_into().unwrap(),
        }
    }
}

/// A key with a message representative and everything that comes up when it is signed without blinding.
pub struct Case {
    pub key: RsaPrivateKey,
    pub digest: [u8; 32],
    pub needles: Vec<Needle>,
}

/// A case with CRT values, or with the private exponent alone.
pub fn case(crt: bool) -> Case {
    let mut key = RsaPrivateKey::from_pkcs1_pem(include_str!("../keys/rsa2048.pem")).unwrap();
    let big = |x: &crypto_bigint::BoxedUint| BigUint::from_bytes_be(&x.to_be_bytes());
    let digest = [0x5a; 32];
    let m = big(&representative(&key, &digest));
    let (p, q, d) = (
        big(key.primes()[0].as_ref()),
        big(key.primes()[1].as_ref()),
        big(key.d()),
    );
    let needles = if crt {
        let (dp, dq) = (&d % (&p - 1u8), &d % (&q - 1u8));
        let qinv = q.modinv(&p).unwrap();
        let (m1, m2) = (m.modpow(&dp, &p), m.modpow(&dq, &q));
        let h = (&m1 + &p - &m2 % &p) * &qinv % &p;
        let table_entry = m.modpow(&7u8.into(), &p);
        vec![
            Needle::new("p", &p),
            Needle::new("q", &q),
            Needle::new("dp", &dp),
            Needle::new("dq", &dq),
            Needle::new("qinv", &qinv),
            Needle::new("m mod p", &(&m % &p)),
            Needle::new("m mod q", &(&m % &q)),
            Needle::new("m^dp mod p", &m1),
            Needle::new("m^dq mod q", &m2),
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
    };
    Case {
        key,
        digest,
        needles,
    }
}

/// The block that PKCS#1 v1.5 makes of a SHA-256 digest.
fn representative(key: &RsaPrivateKey, digest: &[u8]) -> crypto_bigint::BoxedUint {
    let prefix = rsa::Pkcs1v15Sign::new::<sha2::Sha256>().prefix;
    let mut em = vec![0xff; key.size()];
    let info = em.len() - prefix.len() - digest.len();
    em[..2].copy_from_slice(&[0, 1]);
    em[info - 1] = 0;
    em[info..].copy_from_slice(&[&prefix[..], digest].concat());
    crypto_bigint::BoxedUint::from_be_slice(&em, key.n_bits_precision()).unwrap()
}

impl Case {
    /// Prepares the key, signs with it without blinding, and drops it again.
    pub fn sign<B: batch_modexp::rsa::RsaPrivateOp>(&self, backend: B) {
        use batch_modexp::rsa::{BatchSigner, Pkcs1v15};
        let handle = KeyHandle::new(&self.key).unwrap();
        let signer = BatchSigner::new(backend, Pkcs1v15::<sha2::Sha256>::new()).blinding(false);
        let digests = [self.digest; 3];
        let signatures = signer
            .sign_prehash(&mut getrandom::SysRng, &handle, &digests)
            .unwrap();
        assert!(signatures.iter().all(Result::is_ok));
    }
}
