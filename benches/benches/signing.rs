//! RSA signatures per second in batches of 64, blinded and unblinded, compared with the `rsa` crate
//! one by one.
//!
//! A measurement is named `scheme-bits/signer`. So `cargo bench -p batch-modexp-benches --bench
//! signing -- pkcs1v15-2048/` measures one scheme and one key length.
//!
//! `e-<bits>/backend` measures the powers with the public exponent. The check of every signature is
//! one of these; blinding takes another one and some more work. The measurement
//! `small-2048/backend kind count` has smaller batches, which show the cost of a call.
//! `small-2048/side by side 16` shows what remains of that cost if two threads hand nothing over.

#[path = "common/backends.rs"]
mod backends;
#[path = "common/keys.rs"]
mod keys;

use core::hint::{black_box, spin_loop};
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::thread::{self, available_parallelism};

use batch_modexp::ModExp;
use batch_modexp::backend::Cpu;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, Pss, Scheme};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use crypto_bigint::{BoxedUint, RandomMod};
use rsa::sha2::{Digest, Sha256};
use rsa::signature::{RandomizedSigner, SignatureEncoding, Signer};
use rsa::traits::{PublicKeyParts, SignatureScheme};
use rsa::{Pkcs1v15Sign, PrivateKey, pkcs1v15, pss};

use crate::backends::{Backend, backends};
use crate::keys::private_key;

const BATCH_SIZE: usize = 64;

/// One group of eight lanes, two groups, and the usual batch size.
const SMALL: [usize; 3] = [8, 16, BATCH_SIZE];

fn every_key(criterion: &mut Criterion) {
    let backends = backends();
    for bits in [2048, 3072, 4096] {
        let key = private_key(bits);
        pkcs1v15_signing(criterion, &key, &backends);
        pss_signing(criterion, &key, &backends);
        public_exponent(criterion, &key, &backends);
    }
    small_batches(criterion, &private_key(2048), &backends);
}

type Backends = [(&'static str, Box<dyn Backend>)];

fn pkcs1v15_signing(criterion: &mut Criterion, key: &PrivateKey, backends: &Backends) {
    let mut group = group(criterion, "pkcs1v15", key);
    let signing_key = pkcs1v15::SigningKey::<Sha256>::new(key.clone());
    one_by_one(&mut group, "rsa blinded", |message| {
        signing_key.sign(message).to_vec()
    });
    one_by_one(&mut group, "rsa unblinded", |message| {
        let no_rng = None::<&mut ChaCha20Rng>;
        Pkcs1v15Sign::new::<Sha256>()
            .sign(no_rng, key, &Sha256::digest(message))
            .expect("a signature")
    });
    batches(&mut group, key, backends, Pkcs1v15::<Sha256>::new);
    group.finish();
}

fn pss_signing(criterion: &mut Criterion, key: &PrivateKey, backends: &Backends) {
    let mut group = group(criterion, "pss", key);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let signing_key = pss::SigningKey::<Sha256>::new(key.clone());
    one_by_one(&mut group, "rsa blinded", |message| {
        signing_key.sign_with_rng(&mut rng, message).to_vec()
    });
    one_by_one(&mut group, "rsa unblinded", |message| {
        let mut padding = rsa::Pss::<Sha256>::new();
        padding.blinded = false;
        padding
            .sign(Some(&mut rng), key, &Sha256::digest(message))
            .expect("a signature")
    });
    batches(&mut group, key, backends, Pss::<Sha256>::new);
    group.finish();
}

fn small_batches(criterion: &mut Criterion, key: &PrivateKey, backends: &Backends) {
    let mut group = group(criterion, "small", key);
    for count in SMALL {
        group.throughput(Throughput::Elements(count as u64));
        let name = |name: String| format!("{name} {count}");
        batches_of(
            &mut group,
            key,
            backends,
            Pkcs1v15::<Sha256>::new,
            count,
            name,
        );
    }
    group.throughput(Throughput::Elements(16));
    if available_parallelism().is_ok_and(|cores| cores > NonZeroUsize::MIN) {
        side_by_side(&mut group, key);
    }
    group.finish();
}

/// Makes sixteen signatures on two threads, eight each, that wait for each other by spinning: the
/// best that two threads can do.
fn side_by_side(group: &mut BenchmarkGroup<'_, WallTime>, key: &PrivateKey) {
    const OVER: usize = usize::MAX;
    let key = KeyHandle::new(key).expect("a supported key");
    let cpu = Cpu::with_threads(NonZeroUsize::MIN).expect("the calling thread");
    let signer = BatchSigner::new(cpu, Pkcs1v15::<Sha256>::new());
    let messages = &messages()[..8];
    let sign = |rng: &mut ChaCha20Rng| {
        let signatures = signer.sign(rng, &key, black_box(messages));
        assert!(
            signatures
                .expect("signatures")
                .iter()
                .all(|signature| signature.is_ok())
        );
    };
    let [asked, done] = [0, 0].map(AtomicUsize::new);
    let wait_for = |turn: usize, turns: &AtomicUsize| {
        while turns.load(Ordering::Acquire) < turn {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            for turn in 1.. {
                wait_for(turn, &asked);
                if asked.load(Ordering::Acquire) == OVER {
                    break;
                }
                sign(&mut rng);
                done.store(turn, Ordering::Release);
            }
        });
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        group.bench_function("side by side 16", |bencher| {
            bencher.iter(|| {
                let turn = asked.fetch_add(1, Ordering::Release) + 1;
                sign(&mut rng);
                wait_for(turn, &done);
            });
        });
        asked.store(OVER, Ordering::Release);
    });
}

/// Measures `n`-bit exponentiations by e, one for each signature of a batch.
fn public_exponent(criterion: &mut Criterion, key: &PrivateKey, backends: &Backends) {
    let mut group = group(criterion, "e", key);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let bases: Vec<_> = (0..BATCH_SIZE)
        .map(|_| BoxedUint::random_mod_vartime(&mut rng, key.n()))
        .collect();
    let batch: Vec<_> = bases
        .iter()
        .map(|base| ModExp {
            base,
            exponent: key.e(),
            params: key.n_params().as_ref(),
        })
        .collect();
    let mut out = bases.clone();
    for (name, backend) in backends {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let bits = key.e().bit_width_vartime();
                backend
                    .boxed()
                    .batch_mod_exp(black_box(&batch), bits, &mut out)
                    .expect("a valid batch");
            });
        });
    }
    group.finish();
}

fn group<'a>(
    criterion: &'a mut Criterion,
    name: &str,
    key: &PrivateKey,
) -> BenchmarkGroup<'a, WallTime> {
    let bits = key.n().bit_width_vartime();
    let mut group = criterion.benchmark_group(format!("{name}-{bits}"));
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .throughput(Throughput::Elements(BATCH_SIZE as u64));
    group
}

/// Measures a signer that takes one message at a time.
fn one_by_one(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut sign: impl FnMut(&[u8]) -> Vec<u8>,
) {
    let messages = messages();
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for message in &messages {
                black_box(sign(black_box(message)));
            }
        });
    });
}

/// Measures the batch signer with every backend, blinded and unblinded.
fn batches<S: Scheme>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    key: &PrivateKey,
    backends: &Backends,
    scheme: fn() -> S,
) {
    batches_of(group, key, backends, scheme, BATCH_SIZE, |name| name);
}

/// Like [`batches`], with `count` messages and other names.
fn batches_of<S: Scheme>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    key: &PrivateKey,
    backends: &Backends,
    scheme: fn() -> S,
    count: usize,
    rename: impl Fn(String) -> String,
) {
    let messages = &messages()[..count];
    let key = KeyHandle::new(key).expect("a supported key");
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    for (name, backend) in backends {
        for (kind, blinding) in [("blinded", true), ("unblinded", false)] {
            let signer = BatchSigner::new(backend.rsa(), scheme()).blinding(blinding);
            group.bench_function(rename(format!("{name} {kind}")), |bencher| {
                bencher.iter(|| {
                    let signatures = signer
                        .sign(&mut rng, &key, black_box(messages))
                        .expect("signatures");
                    assert!(signatures.iter().all(|signature| signature.is_ok()));
                    signatures
                });
            });
        }
    }
}

fn messages() -> Vec<[u8; 32]> {
    (0..BATCH_SIZE).map(|i| [i as u8; 32]).collect()
}

criterion_group!(benches, every_key);
criterion_main!(benches);
