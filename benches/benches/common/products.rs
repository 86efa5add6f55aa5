//! Products per second of every backend, and of crypto-bigint's `MontyForm` one by one, on the same
//! instances.
//!
//! The instances of a batch share one modulus, as in a field or under one Paillier key, or each has
//! its own. Names that end in `-montgomery` mean factors and products in Montgomery form.

use core::hint::black_box;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::thread::available_parallelism;

use batch_modexp::backend::{Cpu, Serial};
use batch_modexp::{BatchModMul, Error, ModMul};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use crypto_bigint::Uint;
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};

use crate::backends::simd::each_simd_backend;
use crate::instances::Instances;

const BATCH_SIZES: [usize; 3] = [8, 64, 1024];

type Multiplier<const LIMBS: usize> = Box<dyn BatchModMul<Uint<LIMBS>, Error = Error>>;

/// The backends of this machine with their names. Multi-threaded backends are left out if the
/// process may use only one core.
fn backends<const LIMBS: usize>() -> Vec<(&'static str, Multiplier<LIMBS>)> {
    let mut list: Vec<(_, Multiplier<LIMBS>)> = vec![("serial", Box::new(Serial))];
    macro_rules! push {
        ($name:ident: $Backend:ident) => {
            let backend = batch_modexp::backend::$Backend::new();
            list.extend(backend.map(|backend| (stringify!($name), Box::new(backend) as _)));
        };
    }
    each_simd_backend!(push);
    let one = Cpu::with_threads(NonZeroUsize::MIN);
    list.extend(one.map(|cpu| ("cpu-1-thread", Box::new(cpu) as _)));
    if available_parallelism().is_ok_and(|cores| cores > NonZeroUsize::MIN) {
        list.extend(Cpu::new().map(|cpu| ("cpu", Box::new(cpu) as _)));
    }
    list
}

/// Measures `LIMBS` limbs.
pub(crate) fn one_width<const LIMBS: usize>(criterion: &mut Criterion) {
    let backends = backends::<LIMBS>();
    for is_shared in [true, false] {
        let moduli = if is_shared {
            "one-modulus"
        } else {
            "own-moduli"
        };
        let name = format!("products/{}/{moduli}", Uint::<LIMBS>::BITS);
        let mut group = criterion.benchmark_group(name);
        group
            .sampling_mode(SamplingMode::Flat)
            .sample_size(10)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(300));

        for batch_size in BATCH_SIZES {
            let instances = Instances::new(batch_size, &Uint::<LIMBS>::ZERO, FixedMontyParams::new);
            let exponentiations = instances.batch();
            // The bases are below the moduli, since all moduli have the same length.
            let batch: Vec<_> = exponentiations
                .iter()
                .zip(exponentiations.iter().rev())
                .map(|(x, y)| {
                    let params = if is_shared {
                        exponentiations[0].params
                    } else {
                        x.params
                    };
                    ModMul::new(x.base, y.base, params)
                })
                .collect();
            let mut out = vec![Uint::ZERO; batch_size];
            group.throughput(Throughput::Elements(batch_size as u64));

            group.bench_function(BenchmarkId::new("crypto-bigint", batch_size), |bencher| {
                bencher.iter(|| {
                    for (x, out) in black_box(&batch).iter().zip(&mut out) {
                        let [a, b] = [x.a, x.b].map(|factor| FixedMontyForm::new(factor, x.params));
                        *out = a.mul(&b).retrieve();
                    }
                });
            });
            group.bench_function(
                BenchmarkId::new("crypto-bigint-montgomery", batch_size),
                |bencher| {
                    let form = |x: &_, params| FixedMontyForm::from_montgomery(*x, params);
                    let forms: Vec<_> = batch
                        .iter()
                        .map(|x| (form(x.a, x.params), form(x.b, x.params)))
                        .collect();
                    bencher.iter(|| {
                        for ((a, b), out) in black_box(&forms).iter().zip(&mut out) {
                            *out = *a.mul(b).as_montgomery();
                        }
                    });
                },
            );
            for (name, backend) in &backends {
                group.bench_function(BenchmarkId::new(*name, batch_size), |bencher| {
                    bencher.iter(|| {
                        backend
                            .batch_mod_mul(black_box(&batch), &mut out)
                            .expect("a valid batch");
                    });
                });
                let id = BenchmarkId::new(format!("{name}-montgomery"), batch_size);
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        backend
                            .batch_monty_mul(black_box(&batch), &mut out)
                            .expect("a valid batch");
                    });
                });
            }
        }
        group.finish();
    }
}
