//! The report at the end.

use std::time::Duration;

use batch_modexp::rsa::KeyHandle;
use clap::ValueEnum;
use indicatif::HumanCount;
use serde_json::{Value, json};

use super::bench::Rate;
use super::failure::Failure;
use super::options::{Compute, SAMPLED, SchemeName, Verified};
use super::schemes::Signer;
use super::sign::Summary;
use super::stdio;

/// The inputs of the report.
pub struct Report<'a> {
    compute: &'a Compute,
    signer: &'a Signer,
    key: &'a KeyHandle,
    summary: &'a Summary,
    baseline: Option<&'a Vec<Rate>>,
}

impl<'a> Report<'a> {
    pub fn new(
        compute: &'a Compute,
        signer: &'a Signer,
        key: &'a KeyHandle,
        summary: &'a Summary,
        baseline: Option<&'a Vec<Rate>>,
    ) -> Self {
        Self {
            compute,
            signer,
            key,
            summary,
            baseline,
        }
    }

    /// Prints JSON or, for a benchmark, a table on standard output; otherwise a line on standard
    /// error.
    pub fn print(&self) -> Result<(), Failure> {
        if self.compute.json {
            stdio::print(&format!("{}\n", self.json()))
        } else if self.compute.quiet {
            Ok(())
        } else if let Some(baseline) = self.baseline {
            stdio::print(&self.table(baseline))
        } else {
            stdio::note(&self.line());
            Ok(())
        }
    }

    fn json(&self) -> Value {
        let backend = self.signer.backend();
        let mut object = json!({
            "backend": backend.name(),
            "backend_reason": backend.reason(),
            "scheme": value_name(self.compute.scheme.scheme),
            "hash": value_name(self.compute.scheme.hash),
            "bits": self.key.bits(),
            "count": self.summary.count,
            "batch_size": self.compute.batch_size(backend),
            "threads": backend.threads(),
            "blinding": !self.compute.no_blinding,
            "signatures_per_second": self.summary.rate(),
            "seconds": self.summary.signing.as_secs_f64(),
            "batch_seconds_median": self.summary.median_batch().as_secs_f64(),
            "signatures_per_second_overall": self.summary.overall_rate(),
            "seconds_overall": self.summary.elapsed.as_secs_f64(),
            "verified": self.verified().name(),
            "break_even": backend.rsa_break_even(self.key),
        });
        if let Some(rates) = self.baseline {
            object["rsa_one_by_one"] = rates
                .iter()
                .map(|rate| {
                    json!({
                        "threads": rate.threads,
                        "signatures_per_second": rate.signatures_per_second,
                        "seconds_median": rate.latency.as_secs_f64(),
                    })
                })
                .collect();
        }
        object
    }

    fn line(&self) -> String {
        format!(
            "{} by {}, {} a second",
            signatures(self.summary.count),
            self.backend(),
            rounded(self.summary.overall_rate()),
        )
    }

    /// The signatures that the `rsa` crate has checked.
    fn verified(&self) -> Verified {
        self.compute.verified(self.signer)
    }

    fn table(&self, baseline: &[Rate]) -> String {
        let head = format!(
            "{}\n\n{:<36} {:>12}  {:>6}  {:>16}\n",
            self.job(),
            "",
            "signatures/s",
            "ratio",
            "median of calls"
        );
        let base = baseline
            .first()
            .map_or(f64::NAN, |rate| rate.signatures_per_second);
        let one_by_one = baseline.iter().map(|rate| {
            let name = format!("rsa crate, one by one, {}", threads(rate.threads));
            row(&name, rate.signatures_per_second, base, rate.latency)
        });
        let backend = self.signer.backend();
        let name = match backend.name() {
            "cuda" => String::from("batch-modexp, cuda"),
            name => format!("batch-modexp, {name}, {}", threads(backend.threads())),
        };
        let batch = row(
            &name,
            self.summary.rate(),
            base,
            self.summary.median_batch(),
        );
        head + &one_by_one.collect::<String>() + &batch + NOTE
    }

    /// A description of the job, with its checks and its backend.
    fn job(&self) -> String {
        let scheme = match self.compute.scheme.scheme {
            SchemeName::Pkcs1v15 => "PKCS#1 v1.5",
            SchemeName::Pss => "PSS",
        };
        let hash = self.compute.scheme.hash.hash();
        let blinded = if self.compute.no_blinding {
            "not blinded"
        } else {
            "blinded"
        };
        let verified = match self.verified() {
            Verified::None => "".into(),
            Verified::Sample => format!(", one in {SAMPLED} verified with the rsa crate"),
            Verified::All => ", verified with the rsa crate".into(),
        };
        format!(
            "{}, RSA-{} {scheme} {hash}, in batches of {}\n{blinded}, checked{verified}\nbackend: {}",
            signatures(self.summary.count),
            self.key.bits(),
            self.compute.batch_size(self.signer.backend()),
            self.backend(),
        )
    }

    fn backend(&self) -> String {
        let backend = self.signer.backend();
        let break_even = backend.rsa_break_even(self.key);
        let break_even =
            break_even.map(|count| format!("; GPUs from {} on", signatures(count as u64)));
        let break_even = break_even.unwrap_or_default();
        format!("{}, {}{break_even}", backend.name(), backend.reason())
    }
}

/// Explains the last column, and what the comparison is not.
const NOTE: &str = "
A call signs one message with the rsa crate, and a batch with batch-modexp.
OpenSSL is faster than the rsa crate: docs/performance.md compares with it.
";

fn row(name: &str, rate: f64, base: f64, latency: Duration) -> String {
    format!(
        "{name:<36} {:>12}  {:>6.2}  {:>16}\n",
        rounded(rate),
        rate / base,
        milliseconds(latency)
    )
}

fn signatures(count: u64) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} signature{ending}", HumanCount(count))
}

fn threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}

fn rounded(rate: f64) -> String {
    if rate < 100.0 {
        format!("{rate:.1}")
    } else {
        HumanCount(rate.round() as u64).to_string()
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The name of a value on the command line.
fn value_name<V: ValueEnum>(value: V) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().into())
}
