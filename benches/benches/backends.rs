//! Exponentiations per second of every backend, by width and batch size. Also measures
//! crypto-bigint's own `pow` and `pow_amm` on the same instances, and products per second, see
//! `common/products.rs`.
//!
//! Exponents are as long as the modulus. A measurement is named `width/backend/batch size`, so
//! `cargo bench -p batch-modexp-benches --bench backends --
//! '^2048/'` measures one width. Products are named `products/width/moduli/backend/batch size`.

#[path = "common/backends.rs"]
mod backends;
#[path = "common/instances.rs"]
mod instances;
#[path = "common/products.rs"]
mod products;

use core::hint::black_box;
use core::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{U128, U192, U256, U384, U512, U1024, U1536, U2048, U3072, U4096, Uint};

use crate::backends::{At, Backend, backends};
use crate::instances::Instances;

const BATCH_SIZES: [usize; 3] = [1, 8, 64];

fn every_width(criterion: &mut Criterion) {
    let backends = backends();
    one_width::<{ U512::LIMBS }>(criterion, &backends, |x| x.at_512());
    one_width::<{ U1024::LIMBS }>(criterion, &backends, |x| x.at_1024());
    one_width::<{ U1536::LIMBS }>(criterion, &backends, |x| x.at_1536());
    one_width::<{ U2048::LIMBS }>(criterion, &backends, |x| x.at_2048());
    one_width::<{ U3072::LIMBS }>(criterion, &backends, |x| x.at_3072());
    one_width::<{ U4096::LIMBS }>(criterion, &backends, |x| x.at_4096());
}

/// Measures `LIMBS` limbs; `view` gives a backend as one for this width.
fn one_width<const LIMBS: usize>(
    criterion: &mut Criterion,
    backends: &[(&'static str, Box<dyn Backend>)],
    view: fn(&dyn Backend) -> &At<Uint<LIMBS>>,
) {
    let mut group = criterion.benchmark_group(Uint::<LIMBS>::BITS.to_string());
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));

    for batch_size in BATCH_SIZES {
        let instances = Instances::new(batch_size, &Uint::<LIMBS>::ZERO, FixedMontyParams::new);
        let batch = instances.batch();
        let mut out = vec![Uint::ZERO; batch_size];
        group.throughput(Throughput::Elements(batch_size as u64));

        for (name, pow) in [
            ("crypto-bigint pow", FixedMontyForm::pow as fn(&_, &_) -> _),
            ("crypto-bigint pow_amm", FixedMontyForm::pow_amm),
        ] {
            group.bench_function(BenchmarkId::new(name, batch_size), |bencher| {
                bencher.iter(|| {
                    for (instance, out) in black_box(&batch).iter().zip(&mut out) {
                        let base = FixedMontyForm::new(instance.base, instance.params);
                        *out = pow(&base, instance.exponent).retrieve();
                    }
                });
            });
        }
        for (name, backend) in backends {
            let backend = view(&**backend);
            group.bench_function(BenchmarkId::new(*name, batch_size), |bencher| {
                bencher.iter(|| {
                    backend
                        .batch_mod_exp(black_box(&batch), Uint::<LIMBS>::BITS, &mut out)
                        .expect("a valid batch");
                });
            });
        }
    }
    group.finish();
}

fn products(criterion: &mut Criterion) {
    products::one_width::<{ U128::LIMBS }>(criterion);
    products::one_width::<{ U192::LIMBS }>(criterion);
    products::one_width::<{ U256::LIMBS }>(criterion);
    products::one_width::<{ U384::LIMBS }>(criterion);
    products::one_width::<{ U512::LIMBS }>(criterion);
    products::one_width::<{ U1024::LIMBS }>(criterion);
    products::one_width::<{ U2048::LIMBS }>(criterion);
    products::one_width::<{ U4096::LIMBS }>(criterion);
}

criterion_group!(benches, every_width, products);
criterion_main!(benches);
