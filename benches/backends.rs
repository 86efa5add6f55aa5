//! Exponentiations per second of the CPU backends, one thread, in one run:
//! `cargo bench --bench backends -- [bits ...] [--batch N] [--exponent-bits N]`.
//!
//! Every instance has a modulus of its own and exponents of full length, unless asked otherwise. The
//! backends take turns, so that a change of clock rate meets all of them; the figure is the median.

use core::time::Duration;
use std::time::Instant;

use batch_modexp::backend::{Fma, Ifma, Serial};
use batch_modexp::{BatchModExp, Error, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use clap::Parser;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd, RandomBits};

/// Command line.
#[derive(Parser)]
struct Args {
    /// Widths of the moduli in bits.
    #[arg(default_values_t = [512, 768, 1024, 1536, 2048, 3072, 4096])]
    bits: Vec<u32>,
    /// Instances in a batch.
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Length of the exponents; that of the moduli if left out.
    #[arg(long)]
    exponent_bits: Option<u32>,
    /// Turns of each backend.
    #[arg(long, default_value_t = 7)]
    turns: usize,
    /// Set by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

type Backend = Box<dyn BatchModExp<BoxedUint, Error = Error>>;

/// The backends that this machine has, the reference first.
fn backends() -> Vec<(&'static str, Backend)> {
    let mut backends: Vec<(&str, Backend)> = vec![("serial", Box::new(Serial))];
    match Fma::new() {
        Some(fma) => backends.push(("fma", Box::new(fma))),
        None => println!("skipped: no FMA on this machine"),
    }
    match Ifma::new() {
        Some(ifma) => backends.push(("ifma", Box::new(ifma))),
        None => println!("skipped: no AVX-512 IFMA on this machine"),
    }
    backends
}

/// One instance in owned form.
struct Owned {
    base: BoxedUint,
    exponent: BoxedUint,
    params: BoxedMontyParams,
}

fn random_instance(rng: &mut ChaCha20Rng, bits: u32) -> Owned {
    let modulus = BoxedUint::random_bits(rng, bits) | BoxedUint::one_with_precision(bits);
    Owned {
        base: BoxedUint::random_bits(rng, bits),
        exponent: BoxedUint::random_bits(rng, bits),
        params: BoxedMontyParams::new(Odd::new(modulus).unwrap()),
    }
}

/// Exponentiations per second over at least 0.1 s.
fn measure(backend: &Backend, batch: &[ModExp<'_, BoxedUint>], exponent_bits: u32) -> f64 {
    let mut out = vec![BoxedUint::zero(); batch.len()];
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(100) {
        backend
            .batch_mod_exp(batch, exponent_bits, &mut out)
            .unwrap();
        done += batch.len();
    }
    done as f64 / start.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let args = Args::parse();
    let backends = backends();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    println!(
        "exponentiations/s on one thread, batch {}; in brackets, against serial",
        args.batch
    );
    for bits in args.bits {
        let owned: Vec<Owned> = (0..args.batch)
            .map(|_| random_instance(&mut rng, bits))
            .collect();
        let batch: Vec<_> = owned
            .iter()
            .map(|x| ModExp {
                base: &x.base,
                exponent: &x.exponent,
                params: x.params.as_ref(),
            })
            .collect();
        let exponent_bits = args.exponent_bits.unwrap_or(bits);
        let mut rates = vec![Vec::new(); backends.len()];
        for _ in 0..args.turns {
            for ((_, backend), rates) in backends.iter().zip(&mut rates) {
                rates.push(measure(backend, &batch, exponent_bits));
            }
        }
        let medians: Vec<f64> = rates.into_iter().map(median).collect();
        print!("{bits:5} bits");
        for ((name, _), rate) in backends.iter().zip(&medians) {
            print!("   {name} {rate:9.1} ({:5.2})", rate / medians[0]);
        }
        println!();
    }
}
