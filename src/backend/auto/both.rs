//! GPUs and the processor: each batch goes to the side that should finish sooner, or to the GPUs
//! until the last one is lost.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use batch_modexp_core::width::width;
use batch_modexp_core::{BatchModExp, Error, ModExp};
use batch_modexp_cpu::{AnyEngine, Cpu};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd, Unsigned};

use super::cost::{Costs, Model, Shape, Side};
use crate::backend::Cuda;
#[cfg(feature = "rsa")]
use crate::backend::cuda::crt::CrtShape;
use crate::backend::cuda::{Calibration, CalibrationFault, ProcessorCosts};

/// See [`Auto::with_gpus`](super::Auto::with_gpus).
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) cuda: Cuda,
    /// Whether all batches go to the GPUs until the last one is lost.
    only_gpus: bool,
    costs: Costs,
    /// Seconds that one thread takes for one round of instances (as many as it computes at a time),
    /// for each bit of the exponents, by width.
    per_bit: Mutex<BTreeMap<u32, f64>>,
}

/// Seconds of a GPU call beyond the exponentiations: copies, launches, waiting. Measured on an
/// H200.
const CALL_SECONDS: f64 = 0.4e-3;

/// The time of a batch on GPUs that fail, relative to the estimate. They are tried again after some
/// thousand batches, but not for key generation.
const FAILED: f64 = 1e3;

/// The longest exponents that the processor is measured with, in bits.
const MEASURED_BITS: u32 = 128;

/// Measurements of the processor; the fastest counts.
const RUNS: usize = 2;

/// The length of exponents for a calibration, in bits. It takes longer than [`MEASURED_BITS`],
/// because its caller expects to wait.
const CALIBRATION_BITS: u32 = 256;
const CALIBRATION_RUNS: usize = 5;
const ROUNDS: usize = 2;

impl Both {
    pub(crate) fn new(cuda: Cuda, only_gpus: bool) -> Self {
        Self {
            cuda,
            only_gpus,
            costs: Costs::default(),
            per_bit: Mutex::default(),
        }
    }

    fn cpu(&self) -> &Cpu {
        self.cuda.host()
    }

    /// The engine of each thread of the processor.
    fn engine(&self) -> &AnyEngine {
        self.cpu().parallel().inner()
    }

    /// Measures devices and processor for moduli of these widths, and then chooses by the results.
    pub(crate) fn calibrate(&mut self, widths: &[u32]) -> Result<Calibration, Error> {
        let mut calibration = self.cuda.calibrate(widths)?;
        if self.only_gpus {
            return Ok(calibration);
        }
        let with_kernel = widths
            .iter()
            .filter(|bits| (1..=Cuda::MAX_BITS).contains(bits));
        let per_bit = |bits| per_bit_of_all(self.cpu(), bits);
        let per_bit_ps = |&bits: &u32| (bits, ((per_bit(bits) * 1e12) as u64).max(1));
        calibration.processor = Some(ProcessorCosts {
            backend: self.cpu().name().into(),
            per_bit_ps: with_kernel.map(per_bit_ps).collect(),
        });
        self.apply(&calibration)?;
        Ok(calibration)
    }

    /// Applies earlier measurements. Correction factors refer to the old estimates, so they are
    /// reset.
    pub(crate) fn apply(&mut self, calibration: &Calibration) -> Result<(), Error> {
        let backend = self.cpu().name();
        let processor = calibration.processor.as_ref();
        let processor = processor.filter(|_| !self.only_gpus);
        if processor.is_some_and(|processor| processor.backend != backend) {
            return Err(CalibrationFault::OtherProcessor { backend }.into());
        }
        self.cuda.apply(calibration)?;
        let measured = processor
            .into_iter()
            .flat_map(|processor| &processor.per_bit_ps);
        let per_bit = measured.map(|(&bits, &ps)| (bits, ps as f64 * 1e-12));
        self.per_bit = Mutex::new(per_bit.collect());
        self.costs = Costs::default();
        Ok(())
    }

    /// Runs a batch of `exponentiations` instances on the GPUs or the processor. If the last GPU is
    /// lost on the way, or GPUs fail that were not asked for by name, the processor computes it.
    pub(crate) fn run<W, E>(
        &self,
        shape: Shape,
        exponentiations: usize,
        work: &mut W,
        on: impl Fn(&mut W, Side) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.cuda.is_over() {
            return on(work, Side::Cpu);
        }
        if self.only_gpus {
            return match on(work, Side::Gpu) {
                Err(_) if self.cuda.is_over() => on(work, Side::Cpu),
                result => result,
            };
        }
        match self.model(shape, exponentiations) {
            Some(model) => self.run_sooner(shape, exponentiations, model, work, on),
            None => on(work, Side::Cpu),
        }
    }

    /// Like [`run`](Self::run), for callers on all threads of the processor, whose part of it is the
    /// calling thread. Their times are not measured, because they delay each other, but GPUs that
    /// fail are left alone.
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
    pub(crate) fn run_beside_others<W, E>(
        &self,
        shape: Shape,
        exponentiations: usize,
        work: &mut W,
        on: impl Fn(&mut W, Side) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.only_gpus || self.cuda.is_over() {
            return self.run(shape, exponentiations, work, on);
        }
        // All threads use the devices.
        let of_all = exponentiations.saturating_mul(self.cpu().threads());
        let Some(Model { gpu, .. }) = self.model(shape, of_all) else {
            return on(work, Side::Cpu);
        };
        let cpu = self.seconds(shape, self.engine(), exponentiations);
        let model = Model { cpu, gpu };
        if self.costs.predict(shape, exponentiations, model) == Side::Cpu {
            return on(work, Side::Cpu);
        }
        if on(work, Side::Gpu).is_err() {
            on(work, Side::Cpu)?;
            let seconds = gpu * FAILED;
            self.costs
                .measured(shape, exponentiations, model, Side::Gpu, seconds);
        }
        Ok(())
    }

    /// Runs a batch on the side that should finish sooner by `model`.
    fn run_sooner<W, E>(
        &self,
        shape: Shape,
        exponentiations: usize,
        model: Model,
        work: &mut W,
        on: impl Fn(&mut W, Side) -> Result<(), E>,
    ) -> Result<(), E> {
        let side = self.costs.choose(shape, exponentiations, model);
        let started = Instant::now();
        let seconds = match (on(work, side), side) {
            (Ok(()), _) => started.elapsed().as_secs_f64(),
            (Err(error), Side::Cpu) => return Err(error),
            (Err(_), Side::Gpu) => {
                // An invalid batch also fails on the processor.
                on(work, Side::Cpu)?;
                model.gpu * FAILED
            }
        };
        self.costs
            .measured(shape, exponentiations, model, side, seconds);
        Ok(())
    }

    /// The smallest number of exponentiations that goes to the GPUs, by the current estimate.
    /// `None` if there is no kernel, the GPUs are lost or never sooner, or the processor has no part.
    pub(crate) fn break_even(&self, shape: Shape) -> Option<usize> {
        const MOST: u32 = 24;
        if self.only_gpus || self.cuda.is_over() {
            return None;
        }
        let on_gpu = |count: usize| -> Option<bool> {
            let model = self.model(shape, count)?;
            Some(self.costs.predict(shape, count, model) == Side::Gpu)
        };
        // Find the first power of two, then bisect between it and the one before.
        let power = (0..=MOST).find(|&power| on_gpu(1 << power) == Some(true))?;
        let (mut low, mut high) = (1usize << power >> 1, 1usize << power);
        while low + 1 < high {
            let middle = low.midpoint(high);
            match on_gpu(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Some(high)
    }

    /// The estimated times on both sides. `None` for an empty batch, or if there is no kernel for it.
    fn model(&self, shape: Shape, count: usize) -> Option<Model> {
        // The host computes exponents that are longer than their modulus.
        if count == 0 || shape.bits == 0 || shape.exponent_bits > shape.bits {
            return None;
        }
        let gpu = self.predicted_ms(shape, count)?;
        // The measured overhead is that of exponentiations; private operations have more.
        let measured = self
            .cuda
            .call_seconds()
            .filter(|_| shape.product_bits.is_none());
        Some(Model {
            cpu: self.seconds(shape, self.cpu(), count),
            gpu: measured.unwrap_or(CALL_SECONDS) + gpu * 1e-3,
        })
    }

    /// The estimated time on all threads of the processor, or on one of them, as `backend` has.
    fn seconds(&self, shape: Shape, backend: &impl BatchModExp<BoxedUint>, count: usize) -> f64 {
        let rounds = rounds(self.engine(), backend, shape.bits, count);
        self.per_bit(shape.bits) * f64::from(shape.exponent_bits.max(1)) * rounds
    }

    /// The estimated time on the devices in milliseconds. `None` if they have no kernel.
    fn predicted_ms(&self, shape: Shape, count: usize) -> Option<f64> {
        #[cfg(feature = "rsa")]
        if let Some(product_bits) = shape.product_bits {
            let keys = CrtShape {
                n_bits: product_bits,
                prime_bits: shape.bits,
                exponent_bits: shape.exponent_bits,
            };
            let halves = self.cuda.predicted_halves_ms(keys, count);
            if halves.is_some() {
                return halves;
            }
            // Without kernels for keys of this shape the host recombines.
        }
        self.cuda
            .predicted_ms(shape.bits, shape.exponent_bits, count)
    }

    /// Seconds that one thread takes for each bit of the exponents.
    ///
    /// Measured once for each width, with one thread, so that the first batch does not wait long.
    fn per_bit(&self, bits: u32) -> f64 {
        let mut known = self.per_bit.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(bits).or_insert_with(|| {
            let (engine, exponent_bits) = (self.engine(), MEASURED_BITS.min(bits));
            let seconds = fastest(engine, bits, exponent_bits, at_a_time(engine), RUNS);
            seconds / f64::from(exponent_bits)
        })
    }
}

/// Seconds for each bit of the exponents while all threads compute, which makes each of them
/// slower. [`Both::model`] then estimates for this batch the time that it took.
fn per_bit_of_all(cpu: &Cpu, bits: u32) -> f64 {
    let engine = cpu.parallel().inner();
    let count = ROUNDS * at_a_time(engine) * cpu.threads();
    let exponent_bits = CALIBRATION_BITS.min(bits);
    let seconds = fastest(cpu, bits, exponent_bits, count, CALIBRATION_RUNS);
    seconds / rounds(engine, cpu, bits, count) / f64::from(exponent_bits)
}

/// The number of instances that a thread computes at a time.
fn at_a_time(engine: &impl BatchModExp<BoxedUint>) -> usize {
    engine.granularity()
}

/// The estimated time of a batch on `backend`, in rounds of one thread with `engine`.
fn rounds(
    engine: &impl BatchModExp<BoxedUint>,
    backend: &impl BatchModExp<BoxedUint>,
    bits: u32,
    count: usize,
) -> f64 {
    let round = engine.relative_time(bits, engine.granularity());
    backend.relative_time(bits, count) as f64 / round.max(1) as f64
}

/// The shortest time in seconds of a batch whose numbers are all ones.
fn fastest(
    backend: &impl BatchModExp<BoxedUint>,
    bits: u32,
    exponent_bits: u32,
    count: usize,
    runs: usize,
) -> f64 {
    let modulus = BoxedUint::max(bits.next_multiple_of(Limb::BITS));
    // An all-ones number is odd.
    let params = BoxedMontyParams::new(Odd::new(modulus.clone()).expect("an odd modulus"));
    let instance = ModExp {
        base: &modulus,
        exponent: &modulus,
        params: params.as_ref(),
    };
    let mut out: Vec<BoxedUint> = (0..count).map(|_| modulus.clone()).collect();
    let batch = vec![instance; count];
    let run = |_| {
        let started = Instant::now();
        // Valid by construction.
        let _ = backend.batch_mod_exp(&batch, exponent_bits, &mut out);
        started.elapsed().as_secs_f64()
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

/// A batch of several widths is estimated by the widest.
impl<U> BatchModExp<U> for Both
where
    U: Unsigned + Sync + Send,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        mut out: &mut [U],
    ) -> Result<(), Error> {
        let widths = || batch.iter().map(|x| width(x.params.modulus().as_ref()));
        let shape = Shape {
            kind: "exponentiation",
            bits: match self.only_gpus {
                // Nothing depends on it, and this thread alone looks at all instances.
                true => 0,
                false => widths().max().unwrap_or(0),
            },
            product_bits: None,
            exponent_bits,
        };
        self.run(shape, batch.len(), &mut out, |out, side| match side {
            Side::Cpu => self.cpu().batch_mod_exp(batch, exponent_bits, out),
            Side::Gpu => self.cuda.batch_mod_exp(batch, exponent_bits, out),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroUsize;

    const SHAPE: Shape = Shape {
        kind: "test",
        bits: 1024,
        product_bits: None,
        exponent_bits: 1024,
    };

    /// A processor without a device.
    fn both(only_gpus: bool) -> Both {
        Both::new(Cuda::open(&[], NonZeroUsize::new(1)).unwrap(), only_gpus)
    }

    /// GPUs that fail a few times are left alone, and no call fails.
    #[test]
    fn batches_of_failing_gpus_go_to_the_processor() {
        let both = both(false);
        let model = Model { cpu: 1.0, gpu: 0.1 };
        let sides = |count| {
            let mut tried = Vec::new();
            let on = |tried: &mut Vec<Side>, side| {
                tried.push(side);
                if side == Side::Gpu { Err(()) } else { Ok(()) }
            };
            for _ in 0..count {
                assert_eq!(both.run_sooner(SHAPE, 100, model, &mut tried, on), Ok(()));
            }
            tried
        };
        assert_eq!(sides(1), [Side::Gpu, Side::Cpu]);
        sides(10);
        assert_eq!(sides(100), [Side::Cpu; 100]);
    }

    /// An invalid batch does not count as a failure of the GPUs.
    #[test]
    fn invalid_batches_say_nothing_of_gpus() {
        let both = both(false);
        let model = Model { cpu: 1.0, gpu: 0.1 };
        for _ in 0..20 {
            let refused = |_: &mut _, _| Err::<(), _>("invalid");
            let result = both.run_sooner(SHAPE, 100, model, &mut (), refused);
            assert_eq!(result, Err("invalid"));
        }
        assert_eq!(both.costs.choose(SHAPE, 100, model), Side::Gpu);
    }

    /// GPUs that were asked for by name keep their errors.
    #[test]
    fn named_gpus_report_their_failures() {
        let failing = |_: &mut _, side| if side == Side::Gpu { Err(()) } else { Ok(()) };
        assert_eq!(both(true).run(SHAPE, 100, &mut (), failing), Err(()));
    }

    /// Every width with kernels can be measured on the processor.
    #[test]
    fn every_width_is_measured() {
        let cpu = Cpu::with_threads(NonZeroUsize::new(2).unwrap()).unwrap();
        for bits in [64, 256, 1024, Cuda::MAX_BITS] {
            let per_bit = per_bit_of_all(&cpu, bits);
            assert!(per_bit.is_finite() && per_bit > 0.0, "{bits}: {per_bit}");
        }
    }
}
