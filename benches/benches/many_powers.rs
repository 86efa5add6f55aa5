//! A product of many powers with public 128-bit exponents, by three methods on one thread, in
//! turns: `cargo bench -p batch-modexp-benches --bench many_powers`. Arguments are parts of names.
#![allow(missing_docs)]

use std::time::Instant;

use batch_modexp::backend::*;
use batch_modexp::{
    BatchModExp, BatchModMul, BatchMultiExp, Error, ModExp, ModMul, ModMultiExp, MultiExpVartime,
};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};

/// Rounds; the median counts.
const ROUNDS: usize = 9;

/// The length of the exponents, in bits.
const EXPONENT_BITS: u32 = 128;

/// Products of at most this many terms share their squarings: more tables do not fit into a cache.
const MOST_TERMS: usize = 16;

/// The lanes of the widest vectors.
const LANES: usize = 8;

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    println!("backend modulus terms | us a term | of powers | of shared squarings");
    for modulus_bits in [256, 1024, 2048, 3072] {
        for count in [8, 64, 256, 1024, 16_384] {
            let case = Case::new(modulus_bits, count);
            let name = |backend: &str| format!("{backend} {modulus_bits} {count}");
            let cpu = Cpu::with_threads(1.try_into().expect("not 0")).expect("no other thread");
            if is_wanted(&name("cpu")) {
                case.measure(&name("cpu"), &cpu);
            }
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            if let Some(fma) = Fma::new().filter(|_| is_wanted(&name("fma"))) {
                case.measure(&name("fma"), &fma);
            }
            if is_wanted(&name("serial")) {
                case.measure(&name("serial"), &Serial);
            }
        }
    }
}

struct Case {
    params: BoxedMontyParams,
    bases: Vec<BoxedUint>,
    exponents: Vec<BoxedUint>,
}

impl Case {
    fn new(modulus_bits: u32, count: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut number = |bits: u32| {
            let mut number = BoxedUint::zero_with_precision(bits);
            for limb in number.as_mut_limbs() {
                limb.0 = rng.next_u64() as _;
            }
            number
        };
        let odd = number(modulus_bits) | BoxedUint::one_with_precision(modulus_bits);
        Self {
            params: BoxedMontyParams::new(Odd::new(odd).expect("an odd number")),
            bases: (0..count).map(|_| number(modulus_bits)).collect(),
            exponents: (0..count).map(|_| number(EXPONENT_BITS)).collect(),
        }
    }

    fn measure<B>(&self, name: &str, backend: &B)
    where
        B: BatchModExp<BoxedUint, Error = Error>
            + BatchMultiExp
            + BatchModMul<BoxedUint, Error = Error>
            + MultiExpVartime,
    {
        let params = self.params.as_ref();
        let terms: Vec<_> = self.bases.iter().zip(&self.exponents).collect();
        let buckets = || {
            let product = backend.multi_exp_vartime(&terms, params);
            product.expect("a product")
        };
        let powers = || {
            let powers = terms
                .iter()
                .map(|(base, exponent)| ModExp::new(*base, *exponent, params));
            let mut out = vec![BoxedUint::zero(); terms.len()];
            let powers: Vec<_> = powers.collect();
            backend
                .batch_mod_exp(&powers, EXPONENT_BITS, &mut out)
                .expect("powers");
            self.product(backend, out)
        };
        let shared = || {
            let size = terms.len().div_ceil(LANES).min(MOST_TERMS);
            let products = terms
                .chunks_exact(size)
                .map(|terms| ModMultiExp::new(terms, params));
            let products: Vec<_> = products.collect();
            let mut out = vec![BoxedUint::zero(); products.len()];
            backend
                .batch_multi_exp(&products, &vec![EXPONENT_BITS; size], &mut out)
                .expect("products");
            self.product(backend, out)
        };
        let methods: [&dyn Fn() -> BoxedUint; 3] = [&buckets, &powers, &shared];
        let mut times = [(); 3].map(|()| Vec::new());
        for _ in 0..ROUNDS {
            let mut results = Vec::new();
            for (method, times) in methods.iter().zip(&mut times) {
                let begin = Instant::now();
                results.push(method());
                times.push(begin.elapsed().as_secs_f64() * 1e6 / terms.len() as f64);
            }
            assert!(results.iter().all(|result| *result == results[0]), "{name}");
        }
        let [buckets, powers, shared] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        });
        println!(
            "{name} | {buckets:.2} | {:.2} | {:.2}",
            powers / buckets,
            shared / buckets
        );
    }

    /// The product of all numbers.
    fn product(
        &self,
        backend: &impl BatchModMul<BoxedUint, Error = Error>,
        mut numbers: Vec<BoxedUint>,
    ) -> BoxedUint {
        while numbers.len() > 1 {
            let half = numbers.len() / 2;
            let pairs = numbers.iter().zip(&numbers[half..]).take(half);
            let pairs = pairs.map(|(a, b)| ModMul::new(a, b, self.params.as_ref()));
            let mut products = vec![BoxedUint::zero(); half];
            backend
                .batch_mod_mul(&pairs.collect::<Vec<_>>(), &mut products)
                .expect("products");
            products.extend(numbers.drain(2 * half..));
            numbers = products;
        }
        numbers.remove(0)
    }
}
