//! Measures products a second between host memory, on the devices and on the processor in turn. The
//! copies cost a device more than the arithmetic.

use core::error::Error;
use core::time::Duration;
use std::time::Instant;

use batch_modexp::backend::{Cpu, Cuda, Serial};
use batch_modexp::{BatchModMul, ModMul};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Limb, Odd, Uint};

use crate::{milliseconds, percentile};

/// More moduli do not change the measurement.
const MOST_MODULI: usize = 1 << 14;

/// Measures all widths that have kernels.
pub(crate) fn measure(cuda: &Cuda, sizes: &[usize], seconds: f64) -> Result<(), Box<dyn Error>> {
    println!("processor: {} threads", cuda.host_threads());
    println!(
        "{:>5} {:>8} {:>7} {:>11} {:>5} {:>12} {:>12} {:>14} {:>14} {:>8}",
        "bits",
        "batch",
        "moduli",
        "form",
        "runs",
        "GPU ms",
        "processor ms",
        "GPU/s",
        "processor/s",
        "of GPU"
    );
    each_size::<2>(cuda, sizes, seconds)?;
    each_size::<3>(cuda, sizes, seconds)?;
    each_size::<4>(cuda, sizes, seconds)?;
    each_size::<6>(cuda, sizes, seconds)?;
    each_size::<8>(cuda, sizes, seconds)
}

/// Measures numbers of `WORDS` 64-bit words, on targets with 64-bit limbs.
fn each_size<const WORDS: usize>(
    cuda: &Cuda,
    sizes: &[usize],
    seconds: f64,
) -> Result<(), Box<dyn Error>> {
    let cpu = Cpu::with_threads(cuda.host_threads().try_into()?)?;
    let most = sizes.iter().copied().max().unwrap_or(0);
    let mut rng = ChaCha20Rng::seed_from_u64(WORDS as u64);
    let factors: Vec<_> = (0..most).map(|_| random::<WORDS>(&mut rng)).collect();
    let moduli = (0..most.min(MOST_MODULI)).map(|_| {
        let modulus =
            random::<WORDS>(&mut rng) | Uint::ONE | Uint::ONE.shl(Uint::<WORDS>::BITS - 1);
        FixedMontyParams::new(Odd::new(modulus).expect("an odd number"))
    });
    let moduli: Vec<_> = moduli.collect();
    for &size in sizes {
        for own_moduli in [false, true] {
            let params = |i: usize| &moduli[if own_moduli { i % moduli.len() } else { 0 }];
            let batch: Vec<_> = (0..size)
                .map(|i| ModMul::new(&factors[i], &factors[size - 1 - i], params(i)))
                .collect();
            for montgomery in [false, true] {
                let [mut on_gpu, mut on_cpu] = in_turn([cuda, &cpu], &batch, montgomery, seconds)?;
                let runs = on_gpu.len();
                let [gpu, cpu] = [&mut on_gpu, &mut on_cpu].map(|times| percentile(times, 50));
                let rate = |time: Duration| size as f64 / time.as_secs_f64();
                println!(
                    "{:>5} {:>8} {:>7} {:>11} {:>5} {:>12.3} {:>12.3} {:>14.0} {:>14.0} {:>8.2}",
                    Uint::<WORDS>::BITS,
                    size,
                    if own_moduli { "own" } else { "one" },
                    if montgomery { "montgomery" } else { "ordinary" },
                    runs,
                    milliseconds(gpu),
                    milliseconds(cpu),
                    rate(gpu),
                    rate(cpu),
                    rate(cpu) / rate(gpu),
                );
            }
        }
    }
    Ok(())
}

/// Times two backends, and compares their results.
fn in_turn<const WORDS: usize>(
    backends: [&dyn BatchModMul<Uint<WORDS>, Error = batch_modexp::Error>; 2],
    batch: &[ModMul<'_, Uint<WORDS>>],
    montgomery: bool,
    seconds: f64,
) -> Result<[Vec<Duration>; 2], Box<dyn Error>>
where
    Serial: BatchModMul<Uint<WORDS>, Error = batch_modexp::Error>,
{
    let mut times = [Vec::new(), Vec::new()];
    let mut results = [(); 2].map(|()| vec![Uint::ZERO; batch.len()]);
    let started = Instant::now();
    for turn in 0.. {
        for ((backend, times), out) in backends.iter().zip(&mut times).zip(&mut results) {
            let called = Instant::now();
            match montgomery {
                false => backend.batch_mod_mul(batch, out)?,
                true => backend.batch_monty_mul(batch, out)?,
            }
            // The first call allocates buffers.
            if turn > 0 {
                times.push(called.elapsed());
            }
        }
        // Montgomery products of unreduced factors are unspecified: they may exceed the modulus.
        if !montgomery && results[0] != results[1] {
            return Err("the device and the processor differ".into());
        }
        if turn >= 3 && (started.elapsed().as_secs_f64() > seconds || turn > 500) {
            break;
        }
    }
    Ok(times)
}

fn random<const WORDS: usize>(rng: &mut ChaCha20Rng) -> Uint<WORDS> {
    let words = [(); WORDS].map(|()| Limb(rng.next_u64() as _));
    Uint::new(words)
}
