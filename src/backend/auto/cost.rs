//! Chooses the processor or the GPUs for a batch, by a model of both that measured times correct.
//!
//! The choice depends on public numbers and on the running times of whole batches, which do not
//! depend on secrets.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

/// The side that computes a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Cpu,
    Gpu,
}

/// The public properties that batches of equal cost share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Shape {
    /// The kind of work that contains the exponentiations.
    pub(crate) kind: &'static str,
    /// The width of the moduli in bits.
    pub(crate) bits: u32,
    /// The width in bits of the products of two moduli, if exponentiations come in pairs modulo two
    /// factors. These have other kernels.
    pub(crate) product_bits: Option<u32>,
    pub(crate) exponent_bits: u32,
}

/// The estimated time of a batch on each side, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) cpu: f64,
    pub(crate) gpu: f64,
}

impl Model {
    fn of(&self, side: Side) -> f64 {
        [self.cpu, self.gpu][side as usize]
    }
}

/// Measured times relative to estimates, by shape and size.
#[derive(Debug, Default)]
pub(crate) struct Costs(Mutex<BTreeMap<(Shape, u32), Factors>>);

/// The factor of each [`Side`].
type Factors = [Factor; 2];

/// Measured time divided by estimated time.
#[derive(Debug, Default)]
struct Factor {
    /// The last measurements, up to [`KEPT`].
    last: VecDeque<f64>,
    /// Whether a call has been made. The first one loads kernels and allocates, and is not counted.
    is_warm: bool,
}

/// Measurements that are kept. Their median counts, because other programs sometimes slow down a
/// single call.
const KEPT: usize = 5;

/// Measurements of a side before it may lose to the other one. One slow call must not decide.
const MIN_MEASUREMENTS: usize = 3;

/// The slower side is tried if it should take at most this many times as long.
const MAX_TRIAL_RATIO: f64 = 1.6;

/// The decay of a factor each time the other side is chosen. A side that was slow because others
/// used it is tried again after a while.
const DECAY: f64 = 0.998;

/// The largest distance, in half octaves of size, at which a batch informs the estimate of another.
const MAX_DISTANCE: u32 = 4;

impl Costs {
    /// The side that should finish `count` instances sooner.
    pub(crate) fn choose(&self, shape: Shape, count: usize, model: Model) -> Side {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nearest = nearest(&all, shape, count);
        let factors = all.entry((shape, size_class(count))).or_default();
        let value = |side| factors[side as usize].value();
        let time = |side| model.of(side) * value(side).unwrap_or(nearest[side as usize]);
        let (cpu, gpu) = (time(Side::Cpu), time(Side::Gpu));
        let (faster, slower) = match cpu <= gpu {
            true => (Side::Cpu, Side::Gpu),
            false => (Side::Gpu, Side::Cpu),
        };
        let is_close = time(slower) <= MAX_TRIAL_RATIO * time(faster);
        let tries = factors[slower as usize].last.len();
        // A slow first measurement does not end a try.
        if tries < MIN_MEASUREMENTS && (is_close || tries > 0) {
            return slower;
        }
        for measured in &mut factors[slower as usize].last {
            *measured *= DECAY;
        }
        faster
    }

    /// The side that the estimates favour, without trying the other one.
    pub(crate) fn predict(&self, shape: Shape, count: usize, model: Model) -> Side {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [cpu, gpu] = nearest(&all, shape, count);
        match model.cpu * cpu <= model.gpu * gpu {
            true => Side::Cpu,
            false => Side::Gpu,
        }
    }

    /// Records the running time of a batch, in seconds.
    pub(crate) fn measured(
        &self,
        shape: Shape,
        count: usize,
        model: Model,
        side: Side,
        seconds: f64,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let factors = all.entry((shape, size_class(count))).or_default();
        factors[side as usize].record(seconds / model.of(side).max(1e-9));
    }
}

impl Factor {
    /// The median, the lower one of two. `None` before the first measurement.
    fn value(&self) -> Option<f64> {
        let mut last: Vec<_> = self.last.iter().copied().collect();
        last.sort_by(f64::total_cmp);
        last.get(last.len().checked_sub(1)? / 2).copied()
    }

    fn record(&mut self, measured: f64) {
        if self.is_warm {
            self.last.truncate(KEPT - 1);
            self.last.push_front(measured);
        }
        self.is_warm = true;
    }
}

/// The values of the nearest measured sizes, for each side separately; 1 without any.
fn nearest(all: &BTreeMap<(Shape, u32), Factors>, shape: Shape, count: usize) -> [f64; 2] {
    let class = size_class(count);
    let near = (shape, class.saturating_sub(MAX_DISTANCE))..=(shape, class + MAX_DISTANCE);
    [Side::Cpu, Side::Gpu].map(|side| {
        let measured = all.range(near.clone()).filter_map(|((_, other), factors)| {
            Some((other.abs_diff(class), factors[side as usize].value()?))
        });
        let nearest = measured.min_by_key(|(distance, _)| *distance);
        nearest.map_or(1.0, |(_, value)| value)
    })
}

/// The size in half octaves, rounded.
fn size_class(count: usize) -> u32 {
    (2.0 * (count.max(1) as f64).log2()).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        kind: "test",
        bits: 1024,
        product_bits: None,
        exponent_bits: 1024,
    };

    /// A processor that takes 10 us for each instance, and a device that takes 4 ms for up to
    /// 10,000.
    fn model(count: usize) -> Model {
        Model {
            cpu: count as f64 * 1e-5,
            gpu: 4e-3,
        }
    }

    /// Runs a batch where `costs` says, on sides that take `cpu` and `gpu` times the estimates.
    fn run(costs: &Costs, count: usize, cpu: f64, gpu: f64) -> Side {
        let model = model(count);
        let side = costs.choose(SHAPE, count, model);
        let seconds = match side {
            Side::Cpu => model.cpu * cpu,
            Side::Gpu => model.gpu * gpu,
        };
        costs.measured(SHAPE, count, model, side, seconds);
        side
    }

    #[test]
    fn far_from_the_break_even_nothing_is_tried() {
        let costs = Costs::default();
        for _ in 0..20 {
            assert_eq!(run(&costs, 10, 1.0, 1.0), Side::Cpu);
            assert_eq!(run(&costs, 5000, 1.0, 1.0), Side::Gpu);
        }
    }

    /// The model is wrong for both sides; a few batches correct it.
    #[test]
    fn measurements_correct_the_model() {
        for (cpu, gpu) in [(2.0, 1.0), (1.0, 2.0), (0.5, 0.7), (1.0, 1.0), (3.0, 3.0)] {
            let costs = Costs::default();
            for count in [1, 50, 130, 200, 300, 420, 500, 1000, 3000] {
                let last: Vec<_> = (0..40).map(|_| run(&costs, count, cpu, gpu)).collect();
                let (on_cpu, on_gpu) = (model(count).cpu * cpu, model(count).gpu * gpu);
                let best = on_cpu.min(on_gpu);
                let time = |side: &Side| match side {
                    Side::Cpu => on_cpu,
                    Side::Gpu => on_gpu,
                };
                let (tried, settled) = last.split_at(10);
                assert!(
                    settled.iter().all(|side| time(side) <= 1.1 * best),
                    "{count}"
                );
                // No try took too long.
                assert!(tried.iter().all(|side| time(side) <= 5.0 * best), "{count}");
            }
        }
    }

    /// An occasional slow call, on either side, leaves no batch on the slower side.
    #[test]
    fn single_slow_times_mislead_nobody() {
        let wrong = |every: usize, first: usize, count: usize, best: Side| {
            let costs = Costs::default();
            let slowness = |call: usize| if call % every == first { 2.5 } else { 1.0 };
            let side = |call| run(&costs, count, slowness(call), slowness(call));
            (0..1000).filter(|&call| side(call) != best).count()
        };
        for every in [4, 7, 20, 50] {
            for first in 0..every {
                for (count, best) in [(300, Side::Cpu), (530, Side::Gpu)] {
                    let wrong = wrong(every, first, count, best);
                    // The other side is tried from time to time.
                    assert!(wrong <= 30, "{every}, {first}, {count}: {wrong}");
                }
            }
        }
    }

    /// A side that was slow for a while is tried again.
    #[test]
    fn slow_times_are_forgotten() {
        let costs = Costs::default();
        let count = 1000;
        (0..20).for_each(|_| _ = run(&costs, count, 1.0, 1.0));
        (0..20).for_each(|_| _ = run(&costs, count, 1.0, 9.0));
        assert_eq!(run(&costs, count, 1.0, 9.0), Side::Cpu);
        let sides: Vec<_> = (0..2000).map(|_| run(&costs, count, 1.0, 1.0)).collect();
        assert_eq!(sides.last(), Some(&Side::Gpu));
    }

    #[test]
    fn predictions_change_nothing() {
        let costs = Costs::default();
        assert_eq!(costs.predict(SHAPE, 100, model(100)), Side::Cpu);
        assert_eq!(costs.predict(SHAPE, 1000, model(1000)), Side::Gpu);
        (0..20).for_each(|_| _ = run(&costs, 300, 3.0, 1.0));
        assert_eq!(costs.predict(SHAPE, 200, model(200)), Side::Gpu);
    }
}
