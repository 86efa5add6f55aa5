//! The statistics of dudect: Welch's t-tests between the running times of two classes.
//!
//! After O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code constant time?", DATE 2017, and its program
//! `dudect.h`: a test of all times, tests of those below each of 100 percentiles, since slow times are mostly the machine's
//! own, and one of the squared distance from the mean (second order), which finds times that differ in spread only.

/// Percentiles at which times are cut off, besides the test of all of them.
const CROPS: usize = 100;

/// A test of fewer times in either class says nothing.
const ENOUGH: f64 = 500.0;

/// The tests between two classes, fed with one time after the other.
pub(crate) struct Tests {
    /// Times above which a test does not look, as of [`thresholds`].
    thresholds: Vec<f64>,
    all: Welch,
    cropped: Vec<Welch>,
    second_order: Welch,
    /// The mean of both classes that the second order is taken about. One for each class would differ by chance: where the machine
    /// gets slower or faster later on, so would the squares, for no other reason.
    center: f64,
}

/// What the tests say.
pub(crate) struct Verdict {
    /// t of all times.
    pub(crate) all: f64,
    /// The t of largest amount among the cropped tests.
    pub(crate) cropped: f64,
    /// t of the second order.
    pub(crate) second_order: f64,
}

impl Verdict {
    /// The largest |t| of all tests.
    pub(crate) fn largest(&self) -> f64 {
        let others = self.cropped.abs().max(self.second_order.abs());
        self.all.abs().max(others)
    }
}

impl Tests {
    /// Tests whose percentiles are those of `first`, the times of both classes from measurements that are not tested.
    ///
    /// # Panics
    ///
    /// If a class of `first` is empty.
    pub(crate) fn new(first: &[Vec<f64>; 2]) -> Self {
        let mut sorted = first.concat();
        sorted.sort_by(f64::total_cmp);
        // Cut at the last percentile, so that one interruption does not move the center.
        let limit = percentile(&sorted, 0.99);
        let kept = sorted.partition_point(|time| *time <= limit);
        Self {
            thresholds: thresholds(&sorted),
            all: Welch::default(),
            cropped: vec![Welch::default(); CROPS],
            second_order: Welch::default(),
            center: sorted[..kept].iter().sum::<f64>() / kept as f64,
        }
    }

    /// Adds a time of a class, 0 or 1.
    pub(crate) fn add(&mut self, class: usize, time: f64) {
        self.all.add(class, time);
        for (welch, threshold) in self.cropped.iter_mut().zip(&self.thresholds) {
            if time < *threshold {
                welch.add(class, time);
            }
        }
        // Without the slowest times, whose squares would hide all others.
        if self.thresholds.last().is_some_and(|last| time < *last) {
            let distance = time - self.center;
            self.second_order.add(class, distance * distance);
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let cropped = self.cropped.iter().map(Welch::t);
        Verdict {
            all: self.all.t(),
            cropped: cropped.fold(0.0, |a, b| if b.abs() > a.abs() { b } else { a }),
            second_order: self.second_order.t(),
        }
    }
}

/// Those of `dudect.h`: the i-th cuts at the percentile `1 - 0.5^(10 (i + 1) / 100)`.
fn thresholds(sorted: &[f64]) -> Vec<f64> {
    let which = |i: usize| 1.0 - 0.5_f64.powf(10.0 * (i + 1) as f64 / CROPS as f64);
    (0..CROPS).map(|i| percentile(sorted, which(i))).collect()
}

/// The time below which this share of the sorted times lies.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// Welch's t-test on running moments (B. P. Welford, 1962).
#[derive(Clone, Default)]
struct Welch {
    count: [f64; 2],
    mean: [f64; 2],
    squares: [f64; 2],
}

impl Welch {
    fn add(&mut self, class: usize, value: f64) {
        self.count[class] += 1.0;
        let distance = value - self.mean[class];
        self.mean[class] += distance / self.count[class];
        self.squares[class] += distance * (value - self.mean[class]);
    }

    /// Positive if class 0 takes longer; 0 with too few values, or if all of them are the same.
    fn t(&self) -> f64 {
        if self.count.iter().any(|count| *count < ENOUGH) {
            return 0.0;
        }
        let error =
            |class: usize| self.squares[class] / (self.count[class] - 1.0) / self.count[class];
        let error = (error(0) + error(1)).sqrt();
        let difference = self.mean[0] - self.mean[1];
        match error > 0.0 {
            true => difference / error,
            // Clocks are coarse: times that are all the same in both classes say nothing, else they say everything.
            false if difference == 0.0 => 0.0,
            false => f64::INFINITY.copysign(difference),
        }
    }
}
