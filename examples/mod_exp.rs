//! A batch of modular exponentiations without RSA: Fermat's primality test on many candidates at
//! once.
//!
//! An odd number n is composite if 2^(n-1) is not 1 modulo n. Every candidate is its own modulus,
//! so this is a batch of mixed moduli. `cargo run --release --example mod_exp`

use core::error::Error;

use batch_modexp::backend::Auto;
use batch_modexp::{BatchModExp, ModExp};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Odd, Random, U512};
use getrandom::SysRng;

/// About one odd number in 177 of this size is prime.
const CANDIDATES: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let odd_number = || U512::try_random_from_rng(&mut SysRng).map(|number| number | U512::ONE);
    let candidates = (0..CANDIDATES)
        .map(|_| odd_number())
        .collect::<Result<Vec<_>, _>>()?;

    let exponents: Vec<_> = candidates
        .iter()
        .map(|n| n.wrapping_sub(&U512::ONE))
        .collect();
    let params: Vec<_> = candidates
        .iter()
        .filter_map(|n| Odd::new(*n).into_option())
        .map(MontyParams::new)
        .collect();
    let base = U512::from(2u8);
    let batch: Vec<_> = exponents
        .iter()
        .zip(&params)
        .map(|(exponent, params)| ModExp {
            base: &base,
            exponent,
            params,
        })
        .collect();

    let backend = Auto::new()?;
    let mut powers = vec![U512::ZERO; batch.len()];
    backend.batch_mod_exp(&batch, U512::BITS, &mut powers)?;

    let primes: Vec<_> = candidates
        .iter()
        .zip(&powers)
        .filter(|(_, power)| **power == U512::ONE)
        .collect();
    println!("backend: {}, {}", backend.name(), backend.reason());
    println!(
        "{} of {CANDIDATES} odd numbers of 512 bits are probably prime",
        primes.len()
    );
    if let Some((prime, _)) = primes.first() {
        println!("one of them: {prime:x}");
    }
    Ok(())
}
