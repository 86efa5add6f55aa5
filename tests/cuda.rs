//! Tests that need a GPU: large batches, several shares, exhausted memory. On a machine without one
//! these tests are skipped; `ptx-machine/tests/shipped/` runs the kernels anywhere.

#[path = "cuda/calibration.rs"]
mod calibration;
#[path = "cuda/memory.rs"]
mod memory;
#[path = "common/need.rs"]
mod need;
#[path = "cuda/validation.rs"]
mod validation;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use batch_modexp::backend::cuda::Window;
use batch_modexp::backend::cuda::{Tuning, entry_points, widths};
use batch_modexp::backend::{Cuda, Parallel, Serial};
use batch_modexp::{BatchModExp, Error, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::{BigRng010 as _, BigUint};

/// Locked for writing by tests that take all device memory, for reading by the others.
static MEMORY: RwLock<()> = RwLock::new(());

/// The lock for GPU memory and the GPUs of this machine; `None` if there are none, with a message.
///
/// The tuple has the lock first: its bindings are dropped in reverse order, so the GPUs free their
/// memory before the lock is released.
fn gpu() -> Option<(RwLockReadGuard<'static, ()>, Cuda)> {
    need::available("cuda", Cuda::probe())?;
    let memory = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    Some((memory, Cuda::new().unwrap()))
}

/// The number of instances of each width in [`families_agree`] and
/// [`every_entry_point_and_window`], if the environment sets it. Use many for certainty, few for
/// tools that slow kernels down.
fn instances() -> Option<usize> {
    let asked = std::env::var("BATCH_MODEXP_INSTANCES").ok()?;
    Some(asked.parse().expect("a number of instances"))
}

/// A batch with its operands.
struct Batch {
    width: u32,
    moduli: Vec<BoxedMontyParams>,
    /// The base, the exponent, and the index of the modulus.
    instances: Vec<(BoxedUint, BoxedUint, usize)>,
}

impl Batch {
    /// Random bases and exponents, and moduli of exactly `width` bits.
    fn random(width: u32, len: usize, moduli: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(u64::from(width));
        let moduli = (0..moduli).map(|_| {
            let mut modulus = rng.random_biguint(width.into());
            modulus.set_bit(0, true);
            modulus.set_bit(u64::from(width) - 1, true);
            modulus
        });
        let moduli: Vec<_> = moduli.collect();
        let operands: Vec<_> = (0..len)
            .map(|_| [(); 2].map(|()| rng.random_biguint(width.into())))
            .collect();
        Self::new(width, &moduli, &operands)
    }

    /// A batch with these operands; the moduli alternate.
    fn new(width: u32, moduli: &[BigUint], operands: &[[BigUint; 2]]) -> Self {
        let boxed =
            |value: &BigUint| BoxedUint::from_le_slice(&value.to_bytes_le(), width).unwrap();
        let params = |modulus: &BigUint| BoxedMontyParams::new(Odd::new(boxed(modulus)).unwrap());
        let instances = (0..).zip(operands);
        Self {
            width,
            moduli: moduli.iter().map(params).collect(),
            instances: instances
                .map(|(i, [base, exponent])| (boxed(base), boxed(exponent), i % moduli.len()))
                .collect(),
        }
    }

    fn mod_exps(&self) -> Vec<ModExp<'_, BoxedUint>> {
        self.instances
            .iter()
            .map(|(base, exponent, modulus)| ModExp {
                base,
                exponent,
                params: self.moduli[*modulus].as_ref(),
            })
            .collect()
    }

    fn zeros(&self) -> Vec<BoxedUint> {
        vec![BoxedUint::zero_with_precision(self.width); self.instances.len()]
    }

    fn run<B: BatchModExp<BoxedUint, Error = Error>>(
        &self,
        backend: &B,
        exponent_bits: u32,
    ) -> Vec<BoxedUint> {
        let mut out = self.zeros();
        backend
            .batch_mod_exp(&self.mod_exps(), exponent_bits, &mut out)
            .unwrap();
        out
    }
}

#[track_caller]
fn assert_same(device: &[BoxedUint], host: &[BoxedUint]) {
    let wrong = device.iter().zip(host).position(|(a, b)| a != b);
    assert_eq!(
        wrong, None,
        "the first instance in which device and host differ"
    );
}

/// 100,000 instances of each class compared with the host, with full exponents where the host is
/// fast enough.
#[test]
fn random_instances_agree_with_the_host() {
    let Some((_memory, cuda)) = gpu() else { return };
    let host = Parallel::new(Serial).unwrap();
    for width in widths() {
        let exponent_bits = match width {
            0..=1024 => width,
            1025..=2048 => 128,
            _ => 64,
        };
        let batch = Batch::random(width, 100_000, 500);
        assert_same(
            &batch.run(&cuda, exponent_bits),
            &batch.run(&host, exponent_bits),
        );
    }
}

/// Every entry point with every window, for numbers of its width and narrower ones, in batches of
/// several launches and of one.
#[test]
fn every_entry_point_and_window() {
    let Some((_memory, cuda)) = gpu() else { return };
    let host = Parallel::new(Serial).unwrap();
    let narrower = widths().into_iter().map(|width| width - 64);
    for width in narrower.chain(widths()) {
        let batch = Batch::random(width, instances().unwrap_or(1001), 7);
        let expected = batch.run(&host, 70);
        for entry_point in entry_points(width) {
            for window in 1..=6 {
                let mut tuning = Tuning::default();
                tuning.entry_point = Some(entry_point);
                tuning.window = Window::new(window);
                tuning.single_launch = window % 2 == 0;
                let mut out = batch.zeros();
                cuda.take_timing();
                cuda.batch_mod_exp_tuned(&batch.mod_exps(), 70, &mut out, tuning)
                    .unwrap();
                let timing = cuda.take_timing();
                assert!(timing.chunks > 0 && !timing.kernel.is_zero());
                assert_same(&out, &expected);
            }
        }
    }
}

/// All entry points of a width, in all families, agree on many random instances with exponents of
/// full length. Some results are compared with num-bigint.
#[test]
fn families_agree() {
    let Some((_memory, cuda)) = gpu() else { return };
    let batches = [
        (1024, 100_000),
        (1536, 50_000),
        (2048, 30_000),
        (3072, 17_000),
        (4096, 17_000),
    ];
    for (width, len) in batches {
        let len = instances().unwrap_or(len).max(100);
        let batch = Batch::random(width, len, 1000);
        let mut first: Option<Vec<BoxedUint>> = None;
        for entry_point in entry_points(width) {
            let mut tuning = Tuning::default();
            tuning.entry_point = Some(entry_point);
            let mut out = batch.zeros();
            cuda.batch_mod_exp_tuned(&batch.mod_exps(), width, &mut out, tuning)
                .unwrap();
            match &first {
                None => first = Some(out),
                Some(first) => assert_same(&out, first),
            }
        }
        let number = |x: &BoxedUint| BigUint::from_bytes_le(&x.to_le_bytes());
        let results = first.unwrap();
        for (x, result) in batch.mod_exps().iter().zip(&results).step_by(len / 100) {
            let modulus = number(x.params.modulus().as_ref());
            let expected = number(x.base).modpow(&number(x.exponent), &modulus);
            assert_eq!(number(result), expected);
        }
    }
}

/// Moduli that share a factor with the moduli of residue number systems, among others.
#[test]
fn moduli_that_a_family_refuses() {
    let Some((_memory, cuda)) = gpu() else { return };
    let host = Parallel::new(Serial).unwrap();
    for width in widths() {
        let ones = (BigUint::from(1u8) << width) - 1u8;
        // The first prime of base A, its double, and the first prime of base B.
        let primes = [3u32, 3, 33].map(|distance| BigUint::from((1u32 << 29) - distance));
        let moduli: Vec<_> = (0..40usize)
            .map(|i| match i % 5 {
                0 => &primes[0] * 15u8,
                1 => &primes[1] * (&ones / &primes[1] - (&ones / &primes[1] + 1u8) % 2u8),
                2 => primes[i % 3].clone(),
                3 => &primes[2] * 15u8,
                _ => &ones - 2 * i,
            })
            .collect();
        let operands: Vec<_> = (0..1000u32)
            .map(|i| [&ones / (i + 2), &ones / (3 * i + 1)])
            .collect();
        let batch = Batch::new(width, &moduli, &operands);
        compare_entry_points(&cuda, &batch, width, 100, &batch.run(&host, 100));
    }
}

/// Compares the results of every entry point of a width with the right ones.
fn compare_entry_points(
    cuda: &Cuda,
    batch: &Batch,
    width: u32,
    exponent_bits: u32,
    expected: &[BoxedUint],
) {
    for entry_point in entry_points(width) {
        let mut tuning = Tuning::default();
        tuning.entry_point = Some(entry_point);
        let mut out = batch.zeros();
        cuda.batch_mod_exp_tuned(&batch.mod_exps(), exponent_bits, &mut out, tuning)
            .unwrap();
        assert_same(&out, expected);
    }
}

/// Limbs of all ones, around multiples of 52 bits, and operands whose carries run through every
/// thread.
#[test]
fn adversarial_limbs() {
    let Some((_memory, cuda)) = gpu() else { return };
    let host = Parallel::new(Serial).unwrap();
    let power = |bits: u32| BigUint::from(1u8) << bits;
    for width in widths() {
        let ones = power(width) - 1u8;
        let mut values = vec![ones.clone(), &ones / 3u8, power(width - 1) + 1u8];
        for bits in (52..width).step_by(52) {
            values.extend([
                power(bits) - 1u8,
                power(bits) + 1u8,
                &ones - (power(bits) - 1u8),
            ]);
        }
        let moduli: Vec<_> = values
            .iter()
            .map(|value| value | BigUint::from(1u8))
            .collect();
        let mut operands = Vec::new();
        for (i, modulus) in moduli.iter().enumerate() {
            let other = values[(i * 7 + 3) % values.len()].clone();
            operands.push([modulus - 1u8, ones.clone()]);
            operands.push([other.clone(), modulus - 1u8]);
            operands.push([ones.clone(), other]);
        }
        // Powers whose Montgomery forms have long rows of zeros.
        operands.extend((0..40).map(|i| [power(width - 8) - 1u8, power(i) * 3u8]));
        let moduli = [moduli, vec![power(width) - 29u8]].concat();
        // Three rounds of the moduli with as many operands, shifted, so that all kinds meet.
        let batch = Batch::new(width, &moduli, &operands);
        let exponent_bits = width.min(100);
        let expected = batch.run(&host, exponent_bits);
        compare_entry_points(&cuda, &batch, width, exponent_bits, &expected);
    }
}

/// A device that is named several times computes several shares.
#[test]
fn shares_come_together() {
    let Some((_memory, cuda)) = gpu() else { return };
    let first = cuda.devices().next().unwrap().ordinal();
    let several = Cuda::with_devices(&[first, first, first]).unwrap();
    let batch = Batch::random(512, 50_000, 3);
    for _ in 0..3 {
        assert_same(&batch.run(&several, 40), &batch.run(&cuda, 40));
    }
}

#[test]
fn calls_from_several_threads() {
    let Some((_memory, cuda)) = gpu() else { return };
    let batches = [512, 1024, 512, 2048].map(|width| Batch::random(width, 300, 2));
    let expected = batches.each_ref().map(|batch| batch.run(&Serial, 33));
    std::thread::scope(|scope| {
        for (batch, expected) in batches.iter().zip(&expected) {
            let cuda = &cuda;
            scope.spawn(move || (0..5).for_each(|_| assert_same(&batch.run(cuda, 33), expected)));
        }
    });
}

#[test]
fn devices_that_do_not_exist() {
    let result = Cuda::with_devices(&[usize::MAX]);
    assert!(matches!(result, Err(Error::CudaUnavailable(_))));
    assert!(Cuda::with_devices(&[]).is_err());
}
