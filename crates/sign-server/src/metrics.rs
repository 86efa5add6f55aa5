//! The queue's statistics for logs and for Prometheus.

use std::fmt::Write;

use batch_modexp::queue::{Histogram, QueueStats};

/// The statistics in the text format of Prometheus, version 0.0.4.
pub(crate) fn prometheus(stats: &QueueStats) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in [
        (
            "requests_total",
            "counter",
            "Requests that were accepted.",
            stats.accepted,
        ),
        (
            "signatures_total",
            "counter",
            "Requests that were signed.",
            stats.signed,
        ),
        (
            "failures_total",
            "counter",
            "Requests that failed in the signer.",
            stats.failed,
        ),
        (
            "cancelled_total",
            "counter",
            "Requests cancelled by their client, a time limit or shutdown before their batch began.",
            stats.cancelled,
        ),
        (
            "refused_total",
            "counter",
            "Requests that found the queue full.",
            stats.full,
        ),
        (
            "fallbacks_total",
            "counter",
            "Batches that the backend failed with and the processor computed.",
            stats.fallbacks,
        ),
        (
            "waiting",
            "gauge",
            "Requests that wait.",
            stats.waiting as u64,
        ),
        (
            "batches_under_way",
            "gauge",
            "Batches that are being computed.",
            stats.under_way as u64,
        ),
    ] {
        line(&mut text, format_args!("# HELP sign_{name} {help}"));
        line(&mut text, format_args!("# TYPE sign_{name} {kind}"));
        line(&mut text, format_args!("sign_{name} {value}"));
    }
    histogram(
        &mut text,
        "batch_size",
        "Requests in a batch.",
        &stats.batch_sizes,
        1.0,
    );
    histogram(
        &mut text,
        "latency_seconds",
        "From acceptance to signature.",
        &stats.latency_us,
        1e-6,
    );
    text
}

fn histogram(text: &mut String, name: &str, help: &str, values: &Histogram, unit: f64) {
    line(text, format_args!("# HELP sign_{name} {help}"));
    line(text, format_args!("# TYPE sign_{name} histogram"));
    let (mut count, mut buckets) = (0, values.buckets().peekable());
    while let Some((bound, in_bucket)) = buckets.next() {
        count += in_bucket;
        // The last bucket has no upper bound.
        if buckets.peek().is_some() {
            let bound = bound as f64 * unit;
            line(
                text,
                format_args!("sign_{name}_bucket{{le=\"{bound}\"}} {count}"),
            );
        }
    }
    line(
        text,
        format_args!("sign_{name}_bucket{{le=\"+Inf\"}} {count}"),
    );
    line(
        text,
        format_args!("sign_{name}_sum {}", values.sum() as f64 * unit),
    );
    line(text, format_args!("sign_{name}_count {count}"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// A summary for a log.
pub(crate) fn summary(stats: &QueueStats) -> String {
    format!(
        "{} signatures in {} batches, {} failures, {} cancelled, {} refused",
        stats.signed, stats.batches, stats.failed, stats.cancelled, stats.full
    )
}
