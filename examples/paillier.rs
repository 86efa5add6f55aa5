//! Paillier encryption, addition and decryption in batches: exponentiations and products modulo
//! n^2.
//!
//! The scheme is that of P. Paillier, "Public-key cryptosystems based on composite degree
//! residuosity classes", EUROCRYPT 1999, scheme 1 with the generator n + 1. A message m below n and
//! a random number r become `(1 + m n) r^n mod n^2`. The product of two ciphertexts is a ciphertext
//! of the sum of their messages. With `l = (p - 1)(q - 1)`, the message of a ciphertext c is `((c^l
//! mod n^2) - 1) / n * l^-1 mod n`.
//!
//! No branch and no address depends on messages, random numbers or l: they are used in batches or
//! in constant-time operations of crypto-bigint. Those operations, and vectors of `BoxedUint`,
//! leave copies in freed memory. A program that must protect its secrets wraps them
//! (`batch_modexp::secret::Secret`). `cargo run --release --example paillier`

use std::error::Error;
use std::time::Instant;

use batch_modexp::backend::Auto;
use batch_modexp::{BatchModExp, BatchModMul, ModExp, ModMul};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, ConcatenatingMul, ConcatenatingSquare, Odd, RandomBits, Resize};
use getrandom::SysRng;
use num_bigint::BigUint;
use rsa::rand_core::UnwrapErr;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

/// Bits of n.
const BITS: u32 = 2048;

/// The number of messages, which may be votes, salaries or gradients to be added without being
/// revealed.
const MESSAGES: usize = 128;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let backend = Auto::new()?;
    println!("backend: {}, {}", backend.name(), backend.reason());
    let key = PrivateKey::generate()?;
    println!("key: n of {BITS} bits\n");

    let messages = random(MESSAGES, BITS - 1)?;
    let others = random(MESSAGES, BITS - 1)?;
    let [r, s] = [random(MESSAGES, BITS)?, random(MESSAGES, BITS)?];
    let public = &key.public;
    let first = timed("encrypted", || public.encrypt(&backend, &messages, &r))?;
    let second = timed("encrypted", || public.encrypt(&backend, &others, &s))?;
    let sums = timed("added", || public.add(&backend, &first, &second))?;
    let decrypted = timed("decrypted", || key.decrypt(&backend, &sums))?;

    check(public, &messages, &r, &first);
    let n = big(&public.n);
    for ((sum, a), b) in decrypted.iter().zip(&messages).zip(&others) {
        assert_eq!(big(sum), (big(a) + big(b)) % &n, "a sum is wrong");
    }
    println!("\nall {MESSAGES} sums and all ciphertexts are what num-bigint says");
    Ok(())
}

/// The public key, with precomputed values.
struct PublicKey {
    n: BoxedUint,
    /// Constants for numbers modulo n and modulo n^2.
    mod_n: BoxedMontyParams,
    mod_n2: BoxedMontyParams,
    /// `1 / n` modulo `2^BITS`, to divide multiples of n.
    inverse: BoxedUint,
}

impl PublicKey {
    fn new(n: BoxedUint) -> Result<Self> {
        let odd = |number| Odd::new(number).into_option().ok_or("n is odd");
        let (inverse, _) = n.invert_mod2k_vartime(BITS);
        Ok(Self {
            // Public moduli; for secret ones use `BoxedMontyParams::new`.
            mod_n: BoxedMontyParams::new_vartime(odd(n.clone())?),
            mod_n2: BoxedMontyParams::new_vartime(odd(n.concatenating_square())?),
            inverse,
            n,
        })
    }

    /// Encrypts: `(1 + m n) r^n mod n^2` for each message m and its r.
    fn encrypt(
        &self,
        backend: &Auto,
        messages: &[BoxedUint],
        r: &[BoxedUint],
    ) -> Result<Vec<BoxedUint>> {
        let params = self.mod_n2.as_ref();
        let multiples: Vec<_> = messages
            .iter()
            .map(|m| ModMul::new(m, &self.n, params))
            .collect();
        let mut one_plus_mn = vec![BoxedUint::zero(); messages.len()];
        backend.batch_mod_mul(&multiples, &mut one_plus_mn)?;
        for number in &mut one_plus_mn {
            // m n is at most n^2 - n.
            number.wrapping_add_assign(BoxedUint::one());
        }

        let powers: Vec<_> = r.iter().map(|r| ModExp::new(r, &self.n, params)).collect();
        let mut r_to_the_n = vec![BoxedUint::zero(); messages.len()];
        backend.batch_mod_exp(&powers, BITS, &mut r_to_the_n)?;
        self.add(backend, &one_plus_mn, &r_to_the_n)
    }

    /// Adds messages: returns the ciphertexts of the sums.
    fn add(&self, backend: &Auto, a: &[BoxedUint], b: &[BoxedUint]) -> Result<Vec<BoxedUint>> {
        let pairs = a.iter().zip(b);
        let products: Vec<_> = pairs
            .map(|(a, b)| ModMul::new(a, b, self.mod_n2.as_ref()))
            .collect();
        let mut out = vec![BoxedUint::zero(); products.len()];
        backend.batch_mod_mul(&products, &mut out)?;
        Ok(out)
    }
}

struct PrivateKey {
    public: PublicKey,
    /// `(p - 1)(q - 1)`.
    l: BoxedUint,
    /// `1 / l` modulo n.
    inverse: BoxedUint,
}

impl PrivateKey {
    /// Generates a key from two primes of equal length, as in RSA.
    fn generate() -> Result<Self> {
        let key = rsa::PrivateKey::new(&mut UnwrapErr(SysRng), BITS as usize)?;
        let n = key.n().as_ref().clone();
        let [p, q] = [&key.primes()[0], &key.primes()[1]]
            .map(|prime| prime.as_ref().wrapping_sub(BoxedUint::one()));
        let l = p.concatenating_mul(&q).resize(BITS);
        let modulus = Odd::new(n.clone()).into_option().ok_or("n is odd")?;
        let inverse = l.invert_odd_mod(&modulus).into_option();
        Ok(Self {
            public: PublicKey::new(n)?,
            inverse: inverse.ok_or("l has an inverse for primes of equal length")?,
            l,
        })
    }

    /// Decrypts ciphertexts.
    fn decrypt(&self, backend: &Auto, ciphertexts: &[BoxedUint]) -> Result<Vec<BoxedUint>> {
        let params = self.public.mod_n2.as_ref();
        let powers: Vec<_> = ciphertexts
            .iter()
            .map(|c| ModExp::new(c, &self.l, params))
            .collect();
        let mut numbers = vec![BoxedUint::zero(); ciphertexts.len()];
        backend.batch_mod_exp(&powers, BITS, &mut numbers)?;
        for number in &mut numbers {
            // A multiple of n, plus 1. The quotient is below n, so it is the low bits of a product
            // with 1 / n.
            let multiple = number.wrapping_sub(BoxedUint::one()).resize_unchecked(BITS);
            *number = multiple.wrapping_mul(&self.public.inverse);
        }
        let products: Vec<_> = numbers
            .iter()
            .map(|number| ModMul::new(number, &self.inverse, self.public.mod_n.as_ref()))
            .collect();
        let mut messages = vec![BoxedUint::zero(); ciphertexts.len()];
        backend.batch_mod_mul(&products, &mut messages)?;
        Ok(messages)
    }
}

/// Random numbers of up to `bits` bits, as wide as n.
fn random(count: usize, bits: u32) -> Result<Vec<BoxedUint>> {
    let number = |_| BoxedUint::try_random_bits_with_precision(&mut SysRng, bits, BITS);
    Ok((0..count)
        .map(number)
        .collect::<std::result::Result<_, _>>()?)
}

/// Runs `action`, and prints its time.
fn timed<T>(what: &str, action: impl FnOnce() -> Result<Vec<T>>) -> Result<Vec<T>> {
    let started = Instant::now();
    let numbers = action()?;
    let seconds = started.elapsed().as_secs_f64();
    let rate = numbers.len() as f64 / seconds;
    let count = numbers.len();
    println!(
        "{what:>9}: {count} in {:8.2} ms, {rate:9.0}/s",
        seconds * 1e3
    );
    Ok(numbers)
}

/// Compares ciphertexts with those computed by num-bigint.
fn check(key: &PublicKey, messages: &[BoxedUint], r: &[BoxedUint], ciphertexts: &[BoxedUint]) {
    let n = big(&key.n);
    let n2 = &n * &n;
    for ((m, r), c) in messages.iter().zip(r).zip(ciphertexts) {
        let expected = (big(m) * &n + 1u8) * big(r).modpow(&n, &n2) % &n2;
        assert_eq!(big(c), expected, "a ciphertext is wrong");
    }
}

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_be(&number.to_be_bytes())
}
