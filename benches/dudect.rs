//! Whether the running time of the backends depends on secrets: `cargo bench --bench dudect`.
//!
//! After O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code constant time?", DATE 2017: two
//! classes of inputs take turns at random, and Welch's t-test compares their running times, all of them
//! and with the slow tail cut off at several percentiles. A |t| above 4.5 in every run shows a leak; one
//! just above it in one run of a busy machine does not. The last line is a negative control that
//! skips zero digits and must stand out.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "../tests/common/need.rs"]
mod need;

use core::hint::black_box;
use std::time::Instant;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use batch_modexp::backend::Fma;
#[cfg(target_arch = "x86_64")]
use batch_modexp::backend::Ifma;
use batch_modexp::backend::Serial;
use batch_modexp::{BatchModExp, Error, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, Random, U512};

type Backend = Box<dyn BatchModExp<U512, Error = Error>>;

/// Instances of a batch: one vector of the widest backend.
const BATCH: usize = 8;
/// Measurements of each comparison.
const MEASUREMENTS: usize = 8_000;
/// Percentiles above which running times are cut off.
const PERCENTILES: [usize; 4] = [100, 95, 80, 50];

/// The inputs of one instance.
#[derive(Clone)]
struct Input {
    base: U512,
    exponent: U512,
    params: FixedMontyParams<{ U512::LIMBS }>,
}

/// What makes an input of the second class of an input of the first.
type Change = fn(&mut Input);

/// What the two classes differ in.
const CLASSES: [(&str, Change); 4] = [
    ("exponent 0", |input| input.exponent = U512::ZERO),
    ("exponent of ones", |input| input.exponent = U512::MAX),
    ("base 0", |input| input.base = U512::ZERO),
    ("modulus 3", |input| {
        input.params = FixedMontyParams::new(Odd::new(U512::from(3u32)).unwrap());
    }),
];

fn random_input(rng: &mut ChaCha20Rng) -> Input {
    let modulus = Odd::new(U512::random_from_rng(rng) | U512::ONE).unwrap();
    Input {
        base: U512::random_from_rng(rng),
        exponent: U512::random_from_rng(rng),
        params: FixedMontyParams::new(modulus),
    }
}

/// The largest |t| between batches of random inputs and the same ones after `change`.
fn largest_t(backend: &Backend, change: Change, rng: &mut ChaCha20Rng) -> f64 {
    let mut times: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut chosen: Vec<Input> = (0..BATCH).map(|_| random_input(rng)).collect();
    for _ in 0..MEASUREMENTS {
        // Both classes are prepared in the same way and lie in the same place, so that they find the
        // caches alike.
        let class = (rng.next_u32() & 1) as usize;
        let random: Vec<Input> = (0..BATCH).map(|_| random_input(rng)).collect();
        let mut changed = random.clone();
        changed.iter_mut().for_each(change);
        chosen.clone_from_slice(&[random, changed][black_box(class)]);
        let batch: Vec<_> = chosen
            .iter()
            .map(|input| ModExp {
                base: &input.base,
                exponent: &input.exponent,
                params: &input.params,
            })
            .collect();
        let mut out = [U512::ZERO; BATCH];
        let start = Instant::now();
        // A short exponent: a leak shows as well, and more measurements fit into the time.
        backend.batch_mod_exp(&batch, 32, &mut out).unwrap();
        times[class].push(start.elapsed().as_nanos() as f64);
        black_box(out);
    }
    let mut all: Vec<f64> = times.concat();
    all.sort_by(f64::total_cmp);
    PERCENTILES
        .iter()
        .map(|percentile| {
            let limit = all[all.len() * percentile / 100 - 1];
            let cut = |times: &Vec<f64>| times.iter().copied().filter(|t| *t <= limit).collect();
            welch_t(&cut(&times[0]), &cut(&times[1])).abs()
        })
        .fold(0.0, f64::max)
}

/// Welch's t of two samples.
fn welch_t(a: &Vec<f64>, b: &Vec<f64>) -> f64 {
    let moments = |times: &Vec<f64>| {
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    };
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(a), moments(b));
    (mean_a - mean_b) / (error_a + error_b).sqrt()
}

/// Negative control: multiplies only where the exponent has a one.
struct SkipsZeros;

impl BatchModExp<U512> for SkipsZeros {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U512>],
        exponent_bits: u32,
        out: &mut [U512],
    ) -> Result<(), Error> {
        for (instance, out) in batch.iter().zip(out) {
            let base = FixedMontyForm::new(instance.base, instance.params);
            let mut power = FixedMontyForm::one(instance.params);
            for bit in (0..exponent_bits).rev() {
                power = power.square();
                if instance.exponent.bit_vartime(bit) {
                    power = power.mul(&base);
                }
            }
            *out = power.retrieve();
        }
        Ok(())
    }
}

fn main() {
    let mut backends: Vec<(&str, Backend)> = vec![("serial", Box::new(Serial))];
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let Some(fma) = need::available("fma", Fma::new().ok_or("no AVX2 and FMA, nor NEON")) {
        backends.push(("fma", Box::new(fma)));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(ifma) = need::available("ifma", Ifma::new().ok_or("no AVX-512 IFMA")) {
        backends.push(("ifma", Box::new(ifma)));
    }
    backends.push(("control", Box::new(SkipsZeros)));

    let mut rng = ChaCha20Rng::seed_from_u64(1);
    println!("largest |t| against random inputs; above 4.5 in every run is a leak");
    for (name, backend) in &backends {
        print!("{name:8}");
        for (class, change) in CLASSES {
            print!("   {class} {:6.1}", largest_t(backend, change, &mut rng));
        }
        println!();
    }
}
