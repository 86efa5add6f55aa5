//! The processor cycles of our exponentiations, independent of changes of the clock rate.

use std::hint::black_box;
use std::time::{Duration, Instant};

use batch_modexp::ModExp;
use crypto_bigint::BoxedUint;

use crate::backends::{At, Backend};
use crate::exponentiation::instances;

/// The latency of a multiplication of 64-bit integers in cycles, on AMD's processors since Zen and
/// Intel's since Sandy Bridge.
const MULTIPLICATION: f64 = 3.0;

/// Prints the cycles for a batch and each bit of its exponents, without fixed costs, and the clock
/// rate: medians of `rounds`.
pub(crate) fn print(
    width: u32,
    batch: usize,
    backends: &[(&'static str, Box<dyn Backend>)],
    rounds: u32,
) {
    let instances = instances(width, batch);
    let instances = instances.batch();
    println!("|        | cycles a bit | least |  GHz |");
    println!("|--------|-------------:|------:|-----:|");
    for (name, backend) in backends {
        let (mut cycles, mut clocks): (Vec<f64>, Vec<f64>) = (0..rounds)
            .map(|_| cycles_a_bit(backend.boxed(), &instances, width))
            .unzip();
        cycles.sort_by(f64::total_cmp);
        clocks.sort_by(f64::total_cmp);
        let (least, middle) = (cycles[0], cycles.len() / 2);
        println!(
            "| {name:6} | {:12.0} | {least:5.0} | {:4.2} |",
            cycles[middle], clocks[middle]
        );
    }
}

/// The difference between exponents of `width` bits and of half as many, and the cycles per
/// nanosecond.
fn cycles_a_bit(
    backend: &At<BoxedUint>,
    batch: &[ModExp<'_, BoxedUint>],
    width: u32,
) -> (f64, f64) {
    let (long, clock) = timed(backend, batch, width);
    let (short, clock_then) = timed(backend, batch, width / 2);
    let cycles = long * clock - short * clock_then;
    (cycles / f64::from(width - width / 2), clock)
}

/// The nanoseconds of one call, and the cycles per nanosecond right after it.
fn timed(
    backend: &At<BoxedUint>,
    batch: &[ModExp<'_, BoxedUint>],
    exponent_bits: u32,
) -> (f64, f64) {
    let width = batch[0].base.bits_precision();
    let mut out = vec![BoxedUint::zero_with_precision(width); batch.len()];
    let start = Instant::now();
    backend
        .batch_mod_exp(black_box(batch), exponent_bits, &mut out)
        .expect("a valid batch");
    let call = start.elapsed();
    black_box(&out);
    (call.as_nanos() as f64, clock())
}

/// The cycles per nanosecond, by the fastest of several chains of multiplications.
fn clock() -> f64 {
    const LENGTH: u32 = 16_384;
    let chain = |_| {
        let number = black_box(3_u64);
        let start = Instant::now();
        black_box((0..LENGTH).fold(number, |number, _| number.wrapping_mul(number)));
        start.elapsed()
    };
    let fastest = (0..3).map(chain).min().unwrap_or(Duration::MAX);
    f64::from(LENGTH) * MULTIPLICATION / fastest.as_nanos() as f64
}
