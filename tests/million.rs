//! A million powers of each kind on GPUs, compared with those of the processor, and a few of them
//! with num-bigint.
//!
//! ```sh
//! cargo test --release -p batch-modexp-tests --test million -- --ignored --nocapture
//! ```
//!
//! It prints what was compared. `BATCH_MODEXP_INSTANCES` sets another number. Without a GPU a small
//! test compares the processor's backends in the same way.

#[path = "common/need.rs"]
mod need;

use std::time::Instant;

use batch_modexp::backend::{Cpu, Cuda, Serial};
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModMul, BatchMultiExp, ModExp,
    ModMul, ModMultiExp,
};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};
use num_bigint::BigUint;

/// Widths of moduli in bits. A share of a million for each: 1 is all of them, 5 a fifth.
const SHARES: [(u32, usize); 4] = [(2048, 1), (1024, 5), (3072, 10), (4096, 20)];

/// Instances that are computed in one call.
const CHUNK: usize = 50_000;

/// The length of most exponents, in bits. Every fourth chunk has exponents as long as the modulus.
const SHORT: u32 = 256;

/// Moduli of a chunk, except with fixed bases. No factor in common with the distance of edge cases,
/// so that each modulus meets them.
const MODULI: usize = 49;

/// Instances of a chunk that are compared with num-bigint.
const SAMPLE: usize = 10;

/// The most octets of a table.
const TABLE_BYTES: usize = 128 << 20;

/// The tested side.
trait Subject: BatchModExp<BoxedUint, Error = batch_modexp::Error> {
    /// Powers of one base by a table.
    fn fixed(
        &self,
        base: &BoxedUint,
        params: &BoxedMontyParams,
        exponents: &[BoxedUint],
        bits: u32,
    ) -> Vec<BoxedUint>;

    /// Powers of many bases.
    fn powers(&self, batch: &[ModExp<'_, BoxedUint>], bits: u32) -> Vec<BoxedUint> {
        let mut out = zeros(batch.len());
        self.batch_mod_exp(batch, bits, &mut out).unwrap();
        out
    }
}

fn zeros(count: usize) -> Vec<BoxedUint> {
    vec![BoxedUint::zero(); count]
}

impl Subject for Cuda {
    fn fixed(
        &self,
        base: &BoxedUint,
        params: &BoxedMontyParams,
        exponents: &[BoxedUint],
        bits: u32,
    ) -> Vec<BoxedUint> {
        let table = self.fixed_base(base, params.as_ref(), bits, TABLE_BYTES);
        let table = table.unwrap();
        if !table.is_on_devices() {
            // The processor would compute.
            let instance = |exponent| ModExp::new(base, exponent, params.as_ref());
            let batch: Vec<_> = exponents.iter().map(instance).collect();
            return self.powers(&batch, bits);
        }
        let mut out = zeros(exponents.len());
        self.batch_fixed_base_exp(&table, exponents, bits, &mut out)
            .unwrap();
        out
    }
}

impl Subject for Serial {
    fn fixed(
        &self,
        base: &BoxedUint,
        params: &BoxedMontyParams,
        exponents: &[BoxedUint],
        bits: u32,
    ) -> Vec<BoxedUint> {
        let table = self.fixed_base(base, params.as_ref(), bits, TABLE_BYTES);
        let mut out = zeros(exponents.len());
        self.batch_fixed_base_exp(&table.unwrap(), exponents, bits, &mut out)
            .unwrap();
        out
    }
}

/// A number of `width` bits, below `2^bits`.
fn number(rng: &mut ChaCha8Rng, width: u32, bits: u32) -> BoxedUint {
    let mut number = BoxedUint::zero_with_precision(width);
    let used = bits.div_ceil(Limb::BITS) as usize;
    for limb in &mut number.as_mut_limbs()[..used] {
        *limb = Limb(rng.next_u64() as _);
    }
    number
}

fn power_of_two(width: u32, bit: u32) -> BoxedUint {
    BoxedUint::one_with_precision(width)
        .shl_vartime(bit)
        .unwrap()
}

/// Random moduli, and some with few bits, many bits, and all bits set.
fn moduli(rng: &mut ChaCha8Rng, width: u32) -> Vec<BoxedMontyParams> {
    let one = BoxedUint::one_with_precision(width);
    let modulus = |i: usize| match i {
        0 => BoxedUint::max(width),
        1 => power_of_two(width, width - 1) | &one,
        2 => power_of_two(width, width / 2) | &one,
        3 => one.wrapping_add(power_of_two(width, 1)),
        4 => one.clone(),
        _ => number(rng, width, width) | power_of_two(width, width - 1) | &one,
    };
    let moduli: Vec<_> = (0..MODULI).map(modulus).collect();
    let params = |modulus| BoxedMontyParams::new(Odd::new(modulus).unwrap());
    moduli.into_iter().map(params).collect()
}

/// A base of any value below `2^width`: every 50th is an edge case.
fn base(rng: &mut ChaCha8Rng, i: usize, params: &BoxedMontyParams) -> BoxedUint {
    let modulus = params.modulus().as_ref();
    let width = modulus.bits_precision();
    let one = BoxedUint::one_with_precision(width);
    match i % 250 {
        0 => BoxedUint::zero_with_precision(width),
        50 => one,
        100 => modulus.wrapping_sub(&one),
        150 => modulus.clone(),
        200 => BoxedUint::max(width),
        _ => number(rng, width, width),
    }
}

/// An exponent: every 30th is an edge case. Bits above `bits` do not count.
fn exponent(rng: &mut ChaCha8Rng, i: usize, width: u32, bits: u32) -> BoxedUint {
    match i % 150 {
        0 => BoxedUint::zero_with_precision(width),
        30 => BoxedUint::one_with_precision(width),
        60 => power_of_two(width, bits - 1),
        90 => BoxedUint::max(width),
        120 => power_of_two(width, bits / 2),
        _ => number(rng, width, bits),
    }
}

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_le(&number.to_le_bytes())
}

/// The power by num-bigint.
fn expected(
    base: &BoxedUint,
    exponent: &BoxedUint,
    bits: u32,
    params: &BoxedMontyParams,
) -> BigUint {
    let mask = (BigUint::from(1u8) << bits) - 1u8;
    let modulus = big(params.modulus().as_ref());
    big(base).modpow(&(big(exponent) & mask), &modulus)
}

/// Compares results, and counts them.
struct Comparison {
    width: u32,
    bits: u32,
    compared: usize,
}

impl Comparison {
    #[track_caller]
    fn same(&mut self, what: &str, subject: &[BoxedUint], cpu: &[BoxedUint]) {
        assert_eq!(subject.len(), cpu.len());
        let wrong = subject.iter().zip(cpu).position(|(a, b)| a != b);
        let Self { width, bits, .. } = *self;
        assert_eq!(
            wrong, None,
            "{what}: first wrong instance, {width} bits, exponents of {bits}"
        );
        self.compared += subject.len();
    }

    #[track_caller]
    fn sample(&self, out: &[BoxedUint], expected: impl Fn(usize) -> BigUint) {
        let step = out.len().div_ceil(SAMPLE);
        for (k, first) in (0..out.len()).step_by(step).enumerate() {
            // An exponent that is an edge case, then another one.
            let i = (first / 30 * 30 + k % 2).min(out.len() - 1);
            assert_eq!(big(&out[i]), expected(i), "instance {i}, num-bigint");
        }
    }
}

/// Powers of one base; constant-time on both sides, and on the processor also for public exponents.
fn fixed_bases(
    comparison: &mut Comparison,
    subject: &impl Subject,
    cpu: &Cpu,
    seed: u64,
    count: usize,
) {
    let Comparison { width, bits, .. } = *comparison;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let all = moduli(&mut rng, width);
    // Mostly random ones, which GPUs compute.
    let params = &all[match seed % 4 {
        3 => seed as usize / 4 % MODULI,
        _ => MODULI - 1,
    }];
    // Every other one is an edge case.
    let base = match seed % 2 {
        0 => base(&mut rng, seed as usize / 2 * 50, params),
        _ => base(&mut rng, 1, params),
    };
    let exponents: Vec<_> = (0..count)
        .map(|i| exponent(&mut rng, i, width, bits))
        .collect();
    let out = subject.fixed(&base, params, &exponents, bits);

    let mut powers = zeros(count);
    let table = cpu.fixed_base(&base, params.as_ref(), bits, TABLE_BYTES);
    cpu.batch_fixed_base_exp(&table.unwrap(), &exponents, bits, &mut powers)
        .unwrap();
    comparison.same("fixed base", &out, &powers);
    let table = cpu.fixed_base_vartime(&base, params.as_ref(), bits, TABLE_BYTES);
    cpu.batch_fixed_base_exp_vartime(&table.unwrap(), &exponents, bits, &mut powers)
        .unwrap();
    comparison.same("fixed base, public exponents", &out, &powers);
    comparison.sample(&out, |i| expected(&base, &exponents[i], bits, params));
}

/// Powers, and products of two powers. The tested side multiplies powers, the processor shares
/// squarings.
fn powers(comparison: &mut Comparison, subject: &impl Subject, cpu: &Cpu, seed: u64, count: usize) {
    let Comparison { width, bits, .. } = *comparison;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let moduli = moduli(&mut rng, width);
    let params = |i: usize| &moduli[i % MODULI];
    let terms: Vec<[_; 2]> = (0..count)
        .map(|i| {
            [i, 7 * i + 1].map(|j| {
                (
                    base(&mut rng, j, params(i)),
                    exponent(&mut rng, j, width, bits),
                )
            })
        })
        .collect();
    let batches = [0, 1].map(|term| {
        let instances = terms.iter().enumerate().map(|(i, terms)| {
            let (base, exponent) = &terms[term];
            ModExp::new(base, exponent, params(i).as_ref())
        });
        instances.collect::<Vec<_>>()
    });
    let [out, others] = batches.each_ref().map(|batch| subject.powers(batch, bits));
    let mut results = zeros(count);
    cpu.batch_mod_exp(&batches[0], bits, &mut results).unwrap();
    comparison.same("powers", &out, &results);
    let power = |i: usize, term: usize| {
        let (base, exponent) = &terms[i][term];
        expected(base, exponent, bits, params(i))
    };
    comparison.sample(&out, |i| power(i, 0));

    let pairs = out.iter().zip(&others).enumerate();
    let pairs: Vec<_> = pairs
        .map(|(i, (a, b))| ModMul::new(a, b, params(i).as_ref()))
        .collect();
    let mut products = zeros(count);
    Serial.batch_mod_mul(&pairs, &mut products).unwrap();
    let terms_by_ref: Vec<_> = terms
        .iter()
        .map(|terms| terms.each_ref().map(|(base, exponent)| (base, exponent)))
        .collect();
    let batch = terms_by_ref.iter().enumerate();
    let batch: Vec<_> = batch
        .map(|(i, terms)| ModMultiExp::new(terms, params(i).as_ref()))
        .collect();
    cpu.batch_multi_exp(&batch, &[bits; 2], &mut results)
        .unwrap();
    comparison.same("products of two powers", &products, &results);
    comparison.sample(&products, |i| {
        power(i, 0) * power(i, 1) % big(params(i).modulus().as_ref())
    });
}

/// Compares `count` instances of each kind at 2048 bits, and fewer at other widths. Returns how many
/// results were compared.
fn compare(subject: &impl Subject, cpu: &Cpu, count: usize) -> usize {
    let mut compared = 0;
    for (width, share) in SHARES {
        let (begin, count) = (Instant::now(), count / share);
        let mut done = 0;
        for (seed, first) in (0..).zip((0..count).step_by(CHUNK)) {
            let len = CHUNK.min(count - first);
            // The first chunk has long exponents, because it may be the only one.
            let bits = if seed % 4 == 0 { width } else { SHORT };
            let mut comparison = Comparison {
                width,
                bits,
                compared: 0,
            };
            fixed_bases(&mut comparison, subject, cpu, seed, len);
            powers(&mut comparison, subject, cpu, seed, len);
            done += comparison.compared;
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!("{width} bits: {done} results equal, {count} of each kind, {seconds:.1} s");
        compared += done;
    }
    compared
}

#[test]
#[ignore = "takes minutes, and needs a GPU; the first lines of this file have the command"]
fn gpu_and_cpu() {
    let Some(_) = need::available("cuda", Cuda::probe()) else {
        return;
    };
    let asked = std::env::var("BATCH_MODEXP_INSTANCES").ok();
    let count = asked.map_or(1_000_000, |count| {
        count.parse().expect("a number of instances")
    });
    assert!(count >= 20, "instances of the widest moduli");
    let compared = compare(&Cuda::new().unwrap(), &Cpu::new().unwrap(), count);
    println!("{compared} results of the GPUs equal those of the processor");
    assert!(compared >= 4 * count);
}

#[test]
fn serial_and_cpu() {
    let cpu = Cpu::with_threads(2.try_into().unwrap()).unwrap();
    assert_eq!(compare(&Serial, &cpu, 200), 4 * (200 + 40 + 20 + 10));
}

/// A wrong result is found.
#[test]
#[should_panic(expected = "fixed base: first wrong instance, 1024 bits")]
fn a_wrong_result_is_found() {
    let mut comparison = Comparison {
        width: 1024,
        bits: SHORT,
        compared: 0,
    };
    let cpu = Cpu::with_threads(1.try_into().unwrap()).unwrap();
    fixed_bases(&mut comparison, &Wrong, &cpu, 1, 40);
}

/// Computes one power by a table wrongly.
struct Wrong;

impl BatchModExp<BoxedUint> for Wrong {
    type Error = batch_modexp::Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Self::Error> {
        Serial.batch_mod_exp(batch, bits, out)
    }
}

impl Subject for Wrong {
    fn fixed(
        &self,
        base: &BoxedUint,
        params: &BoxedMontyParams,
        exponents: &[BoxedUint],
        bits: u32,
    ) -> Vec<BoxedUint> {
        let mut out = Serial.fixed(base, params, exponents, bits);
        out[33].as_mut_limbs()[0].0 ^= 1;
        out
    }
}
