//! The main loop: read, sign, check, write.

use std::fmt;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use batch_modexp::rsa::KeyHandle;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::failure::Failure;
use super::feed::Messages;
use super::options::Compute;
use super::output::Output;
use super::schemes::Signer;

/// What came of it.
pub struct Summary {
    /// Signatures made.
    pub count: u64,
    /// Time spent signing, with the built-in check and nothing else.
    pub signing: Duration,
    /// The time that each batch took, sorted.
    pub batches: Vec<Duration>,
}

impl Summary {
    pub fn rate(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.count as f64 / self.signing.as_secs_f64()
        }
    }

    /// The time that half of the batches were faster than.
    pub fn median_batch(&self) -> Duration {
        self.batches
            .get(self.batches.len() / 2)
            .copied()
            .unwrap_or_default()
    }
}

/// Signs all messages. Writing goes on while the next batch is signed.
pub fn all(
    compute: &Compute,
    signer: &dyn Signer,
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
        // One batch waits, so that a slow reader of the signatures holds up signing, not memory.
        let (sender, receiver) = mpsc::sync_channel::<Vec<Vec<u8>>>(1);
        let writer = scope.spawn(move || -> Result<Output, Failure> {
            for signatures in receiver {
                output.write(&signatures)?;
            }
            Ok(output)
        });
        let summary = batches(compute, signer, key, messages, &sender, &progress);
        drop(sender);
        progress.finish_and_clear();
        // If writing failed, that is why signing ended.
        let written = writer.join();
        let output = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((summary?, output))
    })
}

/// Signs batch after batch for `writer`, to the end of the messages or until it gives up.
fn batches(
    compute: &Compute,
    signer: &dyn Signer,
    key: &KeyHandle,
    messages: &mut Messages,
    writer: &SyncSender<Vec<Vec<u8>>>,
    progress: &ProgressBar,
) -> Result<Summary, Failure> {
    let batch_size = compute.batch_size(signer.backend());
    let mut summary = Summary {
        count: 0,
        signing: Duration::ZERO,
        batches: Vec::new(),
    };
    loop {
        let batch = messages.next_batch(batch_size)?;
        if batch.is_empty() {
            break;
        }
        let start = Instant::now();
        let signatures = signer.sign(key, &batch)?;
        let elapsed = start.elapsed();
        if !compute.no_verify {
            verify(signer, &batch, &signatures)?;
        }
        if writer.send(signatures).is_err() {
            break;
        }
        summary.count += batch.len() as u64;
        summary.signing += elapsed;
        summary.batches.push(elapsed);
        progress.inc(batch.len() as u64);
    }
    summary.batches.sort_unstable();
    Ok(summary)
}

/// Checks every signature with the `rsa` crate, on as many threads as signed it.
fn verify(
    signer: &dyn Signer,
    messages: &[Vec<u8>],
    signatures: &[Vec<u8>],
) -> Result<(), Failure> {
    let share = messages.len().div_ceil(signer.backend().threads());
    let accepts = |(message, signature): (&Vec<u8>, &Vec<u8>)| signer.accepts(message, signature);
    let all_accepted = thread::scope(|scope| {
        let shares: Vec<_> = messages
            .chunks(share)
            .zip(signatures.chunks(share))
            .map(|(messages, signatures)| {
                scope.spawn(move || messages.iter().zip(signatures).all(accepts))
            })
            .collect();
        shares
            .into_iter()
            .all(|share| share.join().unwrap_or(false))
    });
    if all_accepted && messages.len() == signatures.len() {
        Ok(())
    } else {
        Err(Failure::Work(
            "the rsa crate does not accept a signature; its batch was not written".into(),
        ))
    }
}

/// On a terminal; a pipe or a file gets none.
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
        // A progress bar that cannot be drawn is no reason to stop.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}
