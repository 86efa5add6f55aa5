//! Ring-Pedersen commitments `s^x t^y mod N`, as in threshold ECDSA, with tables for s and t.
//!
//! `cargo run --release --example pedersen`
//!
//! N has 3072 bits. x and y are secret and signed: x has 256 bits, y has 256 bits more than N. See
//! R. Canetti, R. Gennaro, S. Goldfeder, N. Makriyannis and U. Peled, "UC non-interactive,
//! proactive, threshold ECDSA with identifiable aborts", CCS 2020, section 2.3.

use std::error::Error;
use std::time::Instant;

use batch_modexp::backend::Auto;
use batch_modexp::rsa::KeyGenerator;
use batch_modexp::{BatchFixedBaseExp, BatchModMul, BatchMultiExp, ModMul, ModMultiExp};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Odd, U3072, Uint};
use getrandom::SysRng;
use getrandom::rand_core::TryRng;

/// As wide as the longest exponents, so that one type fits everything.
type Number = Uint<{ U3072::LIMBS + 256 / 64 }>;

const COUNT: usize = 200;
const X_BITS: u32 = 256;
const Y_BITS: u32 = 3072 + 256;

/// Octets of each of the two tables.
const TABLE: usize = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let backend = Auto::new()?;
    // A protocol needs safe primes (`KeyGenerator::safe_primes`), which take longer.
    let keys = KeyGenerator::new(&backend, 3072)?.generate(&mut SysRng, 1)?;
    let mut octets = [0; Number::BITS as usize / 8];
    octets[(Number::BITS - 3072) as usize / 8..].copy_from_slice(&keys[0].key().n());
    let modulus = Odd::new(Number::from_be_slice(&octets)).expect("an RSA modulus is odd");
    let params = FixedMontyParams::new(modulus);
    let t = random(3071)?;
    let [s, t] = [t.mul_mod(&t, modulus.as_nz_ref()), t];

    let begin = Instant::now();
    let table = |base: &Number, bits| -> Result<_, Box<dyn Error>> {
        let inverse = base.invert_odd_mod(&modulus).into_option();
        let inverse = inverse.ok_or("the base has a factor in common with the modulus")?;
        Ok(backend.signed_fixed_base(base, &inverse, &params, bits, TABLE)?)
    };
    let tables = [table(&s, X_BITS)?, table(&t, Y_BITS)?];
    let bytes: usize = tables.iter().map(|table| table.bytes()).sum();
    println!(
        "two tables, {:.1} MiB in all, in {:.0} ms",
        bytes as f64 / f64::from(1 << 20),
        begin.elapsed().as_secs_f64() * 1e3
    );

    let exponents = |bits| {
        (0..COUNT)
            .map(|_| random(bits))
            .collect::<Result<Vec<_>, _>>()
    };
    let (x, y) = (exponents(X_BITS)?, exponents(Y_BITS)?);
    let begin = Instant::now();
    let [mut powers_s, mut powers_t, mut commitments] = [(); 3].map(|()| vec![Number::ZERO; COUNT]);
    backend.batch_fixed_base_exp(&tables[0], &x, X_BITS, &mut powers_s)?;
    backend.batch_fixed_base_exp(&tables[1], &y, Y_BITS, &mut powers_t)?;
    let pairs: Vec<_> = powers_s
        .iter()
        .zip(&powers_t)
        .map(|(s, t)| ModMul::new(s, t, &params))
        .collect();
    backend.batch_mod_mul(&pairs, &mut commitments)?;
    let rate = COUNT as f64 / begin.elapsed().as_secs_f64();
    println!("{COUNT} commitments, {rate:.0} a second");

    // The same as products of powers with non-negative exponents, below half of the range.
    let half = |number: &Number, bits: u32| {
        *number & (Number::ONE << (bits - 1)).wrapping_sub(&Number::ONE)
    };
    let x: Vec<_> = x.iter().map(|x| half(x, X_BITS)).collect();
    let y: Vec<_> = y.iter().map(|y| half(y, Y_BITS)).collect();
    let terms: Vec<_> = x.iter().zip(&y).map(|(x, y)| [(&s, x), (&t, y)]).collect();
    let batch: Vec<_> = terms
        .iter()
        .map(|terms| ModMultiExp::new(terms, &params))
        .collect();
    let begin = Instant::now();
    let mut products = vec![Number::ZERO; COUNT];
    backend.batch_multi_exp(&batch, &[X_BITS, Y_BITS], &mut products)?;
    let by_products = COUNT as f64 / begin.elapsed().as_secs_f64();
    println!(
        "without tables {by_products:.0} a second: {:.1} times",
        rate / by_products
    );

    backend.batch_fixed_base_exp(&tables[0], &x, X_BITS, &mut powers_s)?;
    backend.batch_fixed_base_exp(&tables[1], &y, Y_BITS, &mut powers_t)?;
    for ((s, t), product) in powers_s.iter().zip(&powers_t).zip(&products) {
        assert_eq!(s.mul_mod(t, modulus.as_nz_ref()), *product);
    }
    println!("both agree");
    Ok(())
}

/// A random number of `bits` bits.
fn random(bits: u32) -> Result<Number, Box<dyn Error>> {
    let mut octets = [0; Number::BITS as usize / 8];
    let len = octets.len();
    SysRng.try_fill_bytes(&mut octets[len - bits.div_ceil(8) as usize..])?;
    Ok(Number::from_be_slice(&octets) >> (bits.next_multiple_of(8) - bits))
}
