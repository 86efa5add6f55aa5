//! The main loop: read, sign, check, write.

use std::fmt;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use batch_modexp::rsa::KeyHandle;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::failure::Failure;
use super::feed::Messages;
use super::options::{Compute, SAMPLED, Verified};
use super::output::Output;
use super::schemes::Signer;

/// Counts and times of a run.
pub struct Summary {
    /// Signatures made.
    pub count: u64,
    /// Time spent signing, including only the built-in check.
    pub signing: Duration,
    /// The time of each batch, sorted.
    pub batches: Vec<Duration>,
    /// Time from the first message to the last written signature.
    pub elapsed: Duration,
}

impl Summary {
    /// Signatures a second of signing time.
    pub fn rate(&self) -> f64 {
        self.per_second(self.signing)
    }

    /// Signatures a second from input to output.
    pub fn overall_rate(&self) -> f64 {
        self.per_second(self.elapsed)
    }

    fn per_second(&self, time: Duration) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.count as f64 / time.as_secs_f64()
        }
    }

    /// The median time of a batch.
    pub fn median_batch(&self) -> Duration {
        self.batches
            .get(self.batches.len() / 2)
            .copied()
            .unwrap_or_default()
    }
}

/// A signed batch for the writer.
struct Signed {
    messages: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

/// Signs all messages. Reading and writing continue while a batch is signed; the `rsa` crate checks
/// signatures before they are written.
pub fn all(
    compute: &Compute,
    signer: &Signer,
    key: &KeyHandle,
    messages: &mut Messages,
    mut output: Output,
) -> Result<(Summary, Output), Failure> {
    let progress = if compute.quiet || output.is_on_terminal() {
        ProgressBar::hidden()
    } else {
        progress_bar(messages.count())
    };
    thread::scope(|scope| {
        // At most one batch waits, so that a slow reader of the signatures slows down signing and
        // uses no memory.
        let (sender, receiver) = mpsc::sync_channel::<Signed>(1);
        let writer = scope.spawn(move || -> Result<Output, Failure> {
            for signed in receiver {
                verify(signer, &signed, compute.verified(signer))?;
                output.write(&signed.signatures)?;
            }
            Ok(output)
        });
        let start = Instant::now();
        let summary = batches(compute, signer, key, messages, &sender, &progress);
        drop(sender);
        progress.finish_and_clear();
        // If writing failed, it ended the signing.
        let written = writer.join();
        let output = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let elapsed = start.elapsed();
        Ok((
            Summary {
                elapsed,
                ..summary?
            },
            output,
        ))
    })
}

/// Signs batches for `writer`, until the end of the messages or until it fails.
fn batches(
    compute: &Compute,
    signer: &Signer,
    key: &KeyHandle,
    messages: &mut Messages,
    writer: &SyncSender<Signed>,
    progress: &ProgressBar,
) -> Result<Summary, Failure> {
    let batch_size = compute.batch_size(signer.backend());
    let mut summary = Summary {
        count: 0,
        signing: Duration::ZERO,
        batches: Vec::new(),
        elapsed: Duration::ZERO,
    };
    loop {
        let batch = messages.next_batch(batch_size)?;
        if batch.is_empty() {
            break;
        }
        let start = Instant::now();
        let signatures = signer.sign(key, &batch)?;
        let elapsed = start.elapsed();
        let count = batch.len() as u64;
        let signed = Signed {
            messages: batch,
            signatures,
        };
        if writer.send(signed).is_err() {
            break;
        }
        summary.count += count;
        summary.signing += elapsed;
        summary.batches.push(elapsed);
        progress.inc(count);
    }
    summary.batches.sort_unstable();
    Ok(summary)
}

/// Checks signatures with the `rsa` crate, on as many threads as signed them.
fn verify(signer: &Signer, signed: &Signed, which: Verified) -> Result<(), Failure> {
    let (step, check) = match (which, signer.verifier()) {
        (Verified::None, _) | (_, None) => return Ok(()),
        (Verified::Sample, Some(check)) => (SAMPLED, check),
        (Verified::All, Some(check)) => (1, check),
    };
    let pairs = signed.messages.iter().zip(&signed.signatures);
    // The last one too, which shows that none is missing.
    let last = pairs.clone().next_back();
    let picked: Vec<_> = pairs.step_by(step).chain(last).collect();
    let share = picked.len().div_ceil(signer.backend().threads()).max(1);
    let accepts = |(message, signature): &(&Vec<u8>, &Vec<u8>)| check.accepts(message, signature);
    let all_accepted = thread::scope(|scope| {
        let shares = picked.chunks(share);
        let shares: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().all(accepts)))
            .collect();
        shares
            .into_iter()
            .all(|share| share.join().unwrap_or(false))
    });
    if all_accepted && signed.messages.len() == signed.signatures.len() {
        Ok(())
    } else {
        Err(Failure::Work(
            "the rsa crate does not accept a signature; its batch was not written".into(),
        ))
    }
}

/// A progress bar on a terminal; hidden in a pipe or a file.
fn progress_bar(count: Option<u64>) -> ProgressBar {
    let (bar, template) = match count {
        Some(count) => (
            ProgressBar::new(count),
            "signing {wide_bar} {human_pos} of {human_len}, {rate}, {eta} left",
        ),
        None => (
            ProgressBar::new_spinner(),
            "signing {spinner} {human_pos}, {rate}",
        ),
    };
    let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A progress bar that cannot be drawn must not stop the program.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}
