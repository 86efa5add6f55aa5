//! Diagrams with logarithmic axes, such as throughput and latency of whole calls against the batch
//! size, or rates of kernels against the width.

use alloc::collections::BTreeMap;
use core::fmt::Write as _;
use core::time::Duration;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 44.0;
const LABEL_HEIGHT: f64 = 13.0;
const COLORS: [&str; 7] = [
    "#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#c77d0a", "#0f8b8d", "#555555",
];

/// Latencies by batch size.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) latency: BTreeMap<usize, Duration>,
}

/// A marked batch size.
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    pub(crate) batch: usize,
}

/// Draws throughput and latency; `what` is the unit counted for the throughput.
pub(crate) fn svg(what: &str, lines: &[Line], mark: Option<&Mark>) -> String {
    let points = |value: &dyn Fn(usize, Duration) -> f64| -> Vec<Points<'_>> {
        let points = |line: &Line| -> Vec<(f64, f64)> {
            let latency = line.latency.iter();
            latency
                .map(|(&batch, &latency)| (batch as f64, value(batch, latency)))
                .collect()
        };
        let lines = lines.iter();
        lines
            .map(|line| (line.name.as_str(), points(line)))
            .collect()
    };
    let throughput = Diagram {
        top: 0.0,
        title: &format!("{what} per second, end to end"),
        x_title: "batch size",
        x_ticks: Ticks::PowersOfTen,
        lines: points(&|batch, latency| batch as f64 / latency.as_secs_f64()),
        mark,
    };
    let latency = Diagram {
        top: HEIGHT,
        title: "latency in milliseconds, median",
        lines: points(&|_, latency| latency.as_secs_f64() * 1e3),
        ..throughput
    };
    document(&[throughput, latency])
}

/// Draws one diagram of `title` against the width in bits, with a line for each name.
pub(crate) fn rates(title: &str, lines: &BTreeMap<&str, BTreeMap<usize, f64>>) -> String {
    let points = |line: &BTreeMap<usize, f64>| -> Vec<(f64, f64)> {
        line.iter()
            .map(|(&bits, &rate)| (bits as f64, rate))
            .collect()
    };
    let lines = lines.iter().map(|(&name, line)| (name, points(line)));
    diagram(title, "bits", Ticks::AtPoints, lines.collect())
}

/// Draws one diagram of `title` against `x_title`.
pub(crate) fn diagram(
    title: &str,
    x_title: &str,
    x_ticks: Ticks,
    lines: Vec<Points<'_>>,
) -> String {
    document(&[Diagram {
        top: 0.0,
        title,
        x_title,
        x_ticks,
        lines,
        mark: None,
    }])
}

/// A name, and points from left to right, all above 0.
pub(crate) type Points<'a> = (&'a str, Vec<(f64, f64)>);

struct Diagram<'a> {
    top: f64,
    title: &'a str,
    x_title: &'a str,
    x_ticks: Ticks,
    lines: Vec<Points<'a>>,
    mark: Option<&'a Mark>,
}

/// The marks of an axis.
#[derive(Clone, Copy)]
pub(crate) enum Ticks {
    /// All powers of ten in the range.
    PowersOfTen,
    /// The values of the points.
    AtPoints,
}

fn document(diagrams: &[Diagram<'_>]) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        diagrams.len() as f64 * HEIGHT
    );
    for diagram in diagrams {
        diagram.draw(&mut text);
    }
    text.push_str("</svg>\n");
    text
}

impl Diagram<'_> {
    fn draw(&self, text: &mut String) {
        let Self {
            top,
            title,
            x_title,
            x_ticks,
            lines,
            mark,
        } = self;
        let top = *top;
        let points = || lines.iter().flat_map(|(_, line)| line);
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let x_axis = Axis::new(points().map(|&(x, _)| x), left, right, *x_ticks);
        let (bottom, up) = (top + HEIGHT - BOTTOM, top + TOP);
        let y_axis = Axis::new(points().map(|&(_, y)| y), bottom, up, Ticks::PowersOfTen);

        push(text, LEFT, top + 20.0, "start", "#000000", title);
        push(
            text,
            WIDTH - RIGHT,
            top + HEIGHT - 8.0,
            "end",
            "#000000",
            x_title,
        );
        for &value in &x_axis.ticks {
            let x = x_axis.place(value);
            grid_line(text, (x, top + TOP), (x, top + HEIGHT - BOTTOM));
            push(
                text,
                x,
                top + HEIGHT - BOTTOM + 16.0,
                "middle",
                "#000000",
                &number(value),
            );
        }
        for &value in &y_axis.ticks {
            let y = y_axis.place(value);
            grid_line(text, (LEFT, y), (WIDTH - RIGHT, y));
            push(text, LEFT - 6.0, y + 4.0, "end", "#000000", &number(value));
        }
        if let Some(mark) = mark {
            let x = x_axis.place(mark.batch as f64);
            let _ = writeln!(
                text,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#000000\" \
             stroke-dasharray=\"4\"/>",
                top + TOP,
                top + HEIGHT - BOTTOM
            );
            let label = format!("{}: {}", mark.name, mark.batch);
            push(text, x + 4.0, top + TOP + 12.0, "start", "#000000", &label);
        }
        let mut labels = Vec::new();
        for ((name, line), color) in lines.iter().zip(COLORS.iter().cycle()) {
            let mut path = String::new();
            let mut end = (0.0, 0.0);
            for &(batch, y) in line {
                end = (x_axis.place(batch), y_axis.place(y));
                let _ = write!(path, "{:.1},{:.1} ", end.0, end.1);
            }
            let _ = writeln!(
                text,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
            );
            labels.push((end, name, color));
        }
        // From top to bottom, without overlap.
        labels.sort_by(|(a, ..), (b, ..)| a.1.total_cmp(&b.1));
        let mut free = f64::NEG_INFINITY;
        for ((x, y), name, color) in labels {
            let y = y.max(free);
            push(text, x + 6.0, y + 4.0, "start", color, name);
            free = y + LABEL_HEIGHT;
        }
    }
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64, ticks: Ticks) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = match values.as_slice() {
            [low, .., high] => (low.log10(), high.log10()),
            [value] => (value.log10(), value.log10()),
            [] => (0.0, 1.0),
        };
        // A single value has no range.
        let (low, high, ticks) = match ticks {
            Ticks::AtPoints if low < high => (low, high, values),
            _ => {
                let low = low.floor();
                let high = high.ceil().max(low + 1.0);
                let powers = low as i32..=high as i32;
                (low, high, powers.map(|power| 10f64.powi(power)).collect())
            }
        };
        Self {
            low,
            high,
            from,
            to,
            ticks,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }
}

/// Formats a number on an axis, with thousands and more abbreviated.
fn number(value: f64) -> String {
    match value {
        1e9.. => format!("{} G", value / 1e9),
        1e6.. => format!("{} M", value / 1e6),
        1e4.. => format!("{} k", value / 1e3),
        _ => format!("{value}"),
    }
}

fn grid_line(text: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        text,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn push(text: &mut String, x: f64, y: f64, anchor: &str, color: &str, label: &str) {
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{label}</text>"
    );
}
