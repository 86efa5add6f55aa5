//! Interleaved measurement, and its table of results.

use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// How many turns each contender has.
    pub(crate) rounds: u32,
    /// The approximate time of a turn, which is a whole number of calls, at least one.
    pub(crate) slice: Duration,
}

/// Something that computes.
pub(crate) struct Contender<'a> {
    name: String,
    per_call: usize,
    run: Box<dyn FnMut() + 'a>,
}

impl<'a> Contender<'a> {
    /// `run` computes `per_call` signatures or exponentiations.
    pub(crate) fn new(name: impl Into<String>, per_call: usize, run: impl FnMut() + 'a) -> Self {
        Self {
            name: name.into(),
            per_call,
            run: Box::new(run),
        }
    }

    /// Computes `calls` times, and returns the rate per second.
    fn turn(&mut self, calls: u32) -> f64 {
        let start = Instant::now();
        for _ in 0..calls {
            (self.run)();
        }
        let computed = f64::from(calls) * self.per_call as f64;
        computed / start.elapsed().as_secs_f64()
    }

    /// How many calls fill `slice`, after a first one that warms up.
    fn calls(&mut self, slice: Duration) -> u32 {
        (self.run)();
        let per_second = self.turn(1) / self.per_call as f64;
        (per_second * slice.as_secs_f64()).ceil().max(1.0) as u32
    }
}

/// Measures `contenders` in turns, so that a slow phase of the machine slows all of them. Returns
/// the median rate of each, per second.
pub(crate) fn medians(contenders: &mut [Contender<'_>], plan: Plan) -> Vec<f64> {
    let calls: Vec<u32> = contenders
        .iter_mut()
        .map(|contender| contender.calls(plan.slice))
        .collect();
    let mut rates = vec![Vec::new(); contenders.len()];
    for _ in 0..plan.rounds {
        for ((contender, calls), rates) in contenders.iter_mut().zip(&calls).zip(&mut rates) {
            rates.push(contender.turn(*calls));
        }
    }
    rates.iter_mut().map(|rates| median(rates)).collect()
}

/// Prints the [median](medians) rate of each of `contenders` and its ratio to that of each of
/// `references`.
///
/// # Panics
///
/// If one of `references` is not the name of a contender.
pub(crate) fn compare(contenders: &mut [Contender<'_>], references: &[&str], plan: Plan) {
    let medians = medians(contenders, plan);
    let reference = |name: &str| {
        let position = contenders.iter().position(|x| x.name == name);
        medians[position.expect("a reference is one of the contenders")]
    };
    let width = contenders.iter().map(|x| x.name.len()).max().unwrap_or(0);
    let column = |name: &str| name.len() + 2;
    print!("| {:width$} |   per s |", "");
    for name in references {
        print!(" / {name} |");
    }
    print!("\n|-{}-|--------:|", "-".repeat(width));
    for name in references {
        print!("{}:|", "-".repeat(column(name) + 1));
    }
    println!();
    for (contender, rate) in contenders.iter().zip(&medians) {
        let digits = usize::from(*rate < 1000.0);
        print!("| {:width$} | {rate:>7.digits$} |", contender.name);
        for name in references {
            print!(" {:>1$.2} |", rate / reference(name), column(name));
        }
        println!();
    }
}

/// The median of a list that is not empty; sorts it.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
