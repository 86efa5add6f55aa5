//! The statistics of dudect: Welch's t-tests between the running times of two classes.
//!
//! Source: O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code constant time?", DATE 2017,
//! and its program `dudect.h`. One test uses all times. Cropped tests use the times below each of
//! 100 percentiles, because most slow times come from the machine. One test uses the squared
//! distance from the mean (second order); it finds times that differ in spread only.

/// The number of percentiles at which times are cropped.
const CROPS: usize = 100;

/// The fewest times in each class for a test to have a result.
const ENOUGH: f64 = 500.0;

/// The tests between two classes, which take one time after the other.
pub(crate) struct Tests {
    /// The limits of the cropped tests: see [`thresholds`].
    thresholds: Vec<f64>,
    all: Welch,
    cropped: Vec<Welch>,
    second_order: Welch,
    /// The mean of both classes, about which the second order is taken. Separate means would differ
    /// by chance. If the machine then became slower or faster, the squares would differ too.
    center: f64,
}

/// The results of the tests.
pub(crate) struct Verdict {
    /// The t of all times.
    pub(crate) all: f64,
    /// The t of largest absolute value among the cropped tests.
    pub(crate) cropped: f64,
    /// The t of the second order.
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
    /// Tests with the percentiles of `first`, times of both classes that are not tested themselves.
    ///
    /// # Panics
    ///
    /// If a class of `first` is empty.
    pub(crate) fn new(first: &[Vec<f64>; 2]) -> Self {
        let mut sorted = first.concat();
        sorted.sort_by(f64::total_cmp);
        // Cropped at the last percentile, so that one interruption does not move the center.
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
        // Without the slowest times: their squares would hide all others.
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

/// The thresholds of `dudect.h`: the i-th is the percentile `1 - 0.5^(10 (i + 1) / 100)`.
fn thresholds(sorted: &[f64]) -> Vec<f64> {
    let which = |i: usize| 1.0 - 0.5_f64.powf(10.0 * (i + 1) as f64 / CROPS as f64);
    (0..CROPS).map(|i| percentile(sorted, which(i))).collect()
}

/// The time below which this share of the sorted times is.
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

    /// Positive if class 0 takes longer; 0 with too few values, or if all are equal.
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
            // Clocks are coarse. If all times are equal in both classes there is no result; if only
            // the classes differ, the result is certain.
            false if difference == 0.0 => 0.0,
            false => f64::INFINITY.copysign(difference),
        }
    }
}
