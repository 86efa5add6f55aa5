//! Fixed bases and products of powers, compared with single exponentiations on one thread, in
//! turns: `cargo bench -p batch-modexp-benches --bench powers`. Arguments are parts of names.
#![allow(missing_docs)]

#[path = "../../tests/common/simd.rs"]
mod simd;

use std::hint::black_box;
use std::time::Instant;

use batch_modexp::backend::*;
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchMultiExp, Error, ModExp,
    ModMultiExp,
};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};

/// Rounds; the median counts.
const ROUNDS: usize = 9;

/// Instances in a batch.
const COUNT: usize = 128;

/// Powers of a fixed base in a batch. Larger batches read less of the table for each power.
const FIXED_COUNT: usize = 1024;

/// Widths of moduli and lengths of exponents: full exponents; ElectionGuard; CGGMP with N of 3072
/// bits and N^2.
const SHAPES: [(u32, u32); 7] = [
    (1024, 1024),
    (2048, 2048),
    (3072, 256),
    (3072, 3072),
    (4096, 256),
    (6144, 256),
    (6144, 3072),
];

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    println!("backend modulus exponent what | us each | times batch_mod_exp | table");
    for (modulus_bits, exponent_bits) in SHAPES {
        let case = Case::new(modulus_bits, exponent_bits);
        let name = |backend: &str| format!("{backend} {modulus_bits} {exponent_bits}");
        macro_rules! measure {
            ($name:ident: $Backend:ident) => {
                let name = name(stringify!($name));
                if let Some(backend) = $Backend::new().filter(|_| is_wanted(&name)) {
                    case.measure(&name, &backend);
                }
            };
        }
        simd::each_simd_backend!(measure);
        if is_wanted(&name("serial")) {
            case.measure(&name("serial"), &Serial);
        }
    }
}

struct Case {
    params: BoxedMontyParams,
    exponent_bits: u32,
    bases: Vec<BoxedUint>,
    exponents: Vec<BoxedUint>,
}

impl Case {
    fn new(modulus_bits: u32, exponent_bits: u32) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut number = |bits: u32| {
            let mut number = BoxedUint::zero_with_precision(bits.next_multiple_of(64));
            for limb in number.as_mut_limbs() {
                limb.0 = rng.next_u64() as _;
            }
            number
        };
        let odd = number(modulus_bits) | BoxedUint::one_with_precision(modulus_bits);
        Self {
            params: BoxedMontyParams::new(Odd::new(odd).expect("an odd number")),
            exponent_bits,
            bases: (0..COUNT).map(|_| number(modulus_bits)).collect(),
            exponents: (0..FIXED_COUNT).map(|_| number(exponent_bits)).collect(),
        }
    }

    fn measure<B>(&self, name: &str, backend: &B)
    where
        B: BatchModExp<BoxedUint, Error = Error>
            + BatchFixedBaseExp
            + BatchFixedBaseExpVartime
            + BatchMultiExp,
    {
        let (params, bits) = (self.params.as_ref(), self.exponent_bits);
        let batch: Vec<_> = self
            .bases
            .iter()
            .zip(&self.exponents)
            .map(|(base, exponent)| ModExp::new(base, exponent, params))
            .collect();
        let begin = Instant::now();
        // With long exponents even the smallest table may be too large.
        let tables: Vec<_> = [2 << 20, 16 << 20]
            .iter()
            .filter_map(|&bytes| backend.fixed_base(&self.bases[0], params, bits, bytes).ok())
            .collect();
        let making = begin.elapsed().as_secs_f64() / tables.len() as f64;
        let begin = Instant::now();
        let public_tables: Vec<_> = [2 << 20, 16 << 20, 32 << 20]
            .iter()
            .filter_map(|&bytes| {
                let base = &self.bases[0];
                backend.fixed_base_vartime(base, params, bits, bytes).ok()
            })
            .collect();
        let making_public = begin.elapsed().as_secs_f64() / public_tables.len() as f64;
        let terms = |count: usize| {
            let pairs = self.bases.iter().zip(&self.exponents);
            pairs.cycle().take(count).collect::<Vec<_>>()
        };
        let terms = [2, 3, 8].map(terms);
        let form = BoxedMontyForm::new(self.bases[0].clone(), &self.params);
        let mut out = vec![BoxedUint::zero(); FIXED_COUNT];
        let mut times = vec![Vec::new(); 2 + tables.len() + public_tables.len() + terms.len()];
        for _ in 0..ROUNDS {
            let mut all = times.iter_mut();
            let mut time = |count: usize, compute: &mut dyn FnMut()| {
                let begin = Instant::now();
                compute();
                let each = begin.elapsed().as_secs_f64() * 1e6 / count as f64;
                all.next().expect("a place").push(each);
            };
            time(COUNT, &mut || {
                backend
                    .batch_mod_exp(&batch, bits, &mut out[..COUNT])
                    .expect("powers");
            });
            for table in &tables {
                time(FIXED_COUNT, &mut || {
                    backend
                        .batch_fixed_base_exp(table, &self.exponents, bits, &mut out)
                        .expect("powers");
                });
            }
            for table in &public_tables {
                time(FIXED_COUNT, &mut || {
                    backend
                        .batch_fixed_base_exp_vartime(table, &self.exponents, bits, &mut out)
                        .expect("powers");
                });
            }
            for terms in &terms {
                let products = [ModMultiExp::new(terms, params); 16];
                let lengths = vec![bits; terms.len()];
                time(products.len(), &mut || {
                    backend
                        .batch_multi_exp(&products, &lengths, &mut out[..products.len()])
                        .expect("products");
                });
            }
            time(2, &mut || {
                for exponent in &self.exponents[..2] {
                    black_box(form.pow_bounded_exp(exponent, bits));
                }
            });
        }
        let mut medians = times.into_iter().map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        });
        let mut next = || medians.next().expect("one of each");
        let one = next();
        println!("{name} batch_mod_exp | {one:.1} | 1.00 |");
        let secret = tables.iter().map(|x| ("", x.window_bits(), x.bytes()));
        let public = public_tables
            .iter()
            .map(|x| (", public exponents", x.window_bits(), x.bytes()));
        for (exponents, window, bytes) in secret.chain(public) {
            let (each, mebibytes) = (next(), bytes as f64 / f64::from(1 << 20));
            let ratio = one / each;
            println!(
                "{name} fixed base{exponents} | {each:.1} | {ratio:.2} | {window} bits, {mebibytes:.1} MiB"
            );
        }
        for terms in &terms {
            let each = next();
            let (count, ratio) = (terms.len(), one * terms.len() as f64 / each);
            println!(
                "{name} product of {count} powers | {each:.1} | {ratio:.2} of {count} powers |"
            );
        }
        let each = next();
        println!("{name} crypto-bigint pow | {each:.1} | {:.2} |", one / each);
        for (exponents, seconds) in [("", making), (" for public exponents", making_public)] {
            println!(
                "{name} making a table{exponents} | {:.0} | {:.1} exponentiations |",
                seconds * 1e6,
                seconds * 1e6 / one
            );
        }
    }
}
