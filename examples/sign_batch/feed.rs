//! Sources of messages: generated ones, or lines that a thread reads. Reading continues while a
//! batch is signed, and a batch is signed before it is full.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::lines::Lines;

/// Limit on bytes of waiting lines, and of a batch; a single line may exceed it.
const MAX_BYTES: usize = 64 << 20;

/// A stream of messages.
pub enum Messages {
    Lines(Feed),
    Generated { next: u64, count: u64 },
}

impl Messages {
    /// `count` different messages.
    pub fn generated(count: NonZeroU64) -> Self {
        Self::Generated {
            next: 0,
            count: count.get(),
        }
    }

    /// The number of messages, if it is known.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Lines(_) => None,
            Self::Generated { count, .. } => Some(*count),
        }
    }

    /// Returns the next messages, at most `most`; none at the end.
    pub fn next_batch(&mut self, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
        match self {
            Self::Lines(feed) => feed.next_batch(most),
            Self::Generated { next, count } => {
                let end = count.min(&mut next.saturating_add(most as u64)).to_owned();
                let batch = (*next..end).map(|i| format!("message {i} of {count}").into_bytes());
                let batch = batch.collect();
                *next = end;
                Ok(batch)
            }
        }
    }
}

/// Waiting lines, and the thread that reads them.
pub struct Feed {
    queue: Arc<Queue>,
    flush_after: Duration,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Signals that the awaited lines, or the end, have come.
    arrived: Condvar,
    /// Signals that lines were taken.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Memory of the lines in bytes.
    bytes: usize,
    /// When the first of the lines came.
    since: Option<Instant>,
    /// The number of lines that the signer waits for.
    wanted: usize,
    /// The result of reading, once it has ended.
    end: Option<Result<(), Failure>>,
}

impl Feed {
    /// Starts a thread that reads lines. A line waits for others for at most `flush_after`.
    ///
    /// The thread ends with the input. A program that ends earlier does not wait for it, because a
    /// read from a terminal or a pipe cannot be cancelled.
    pub fn start(lines: Lines, flush_after: Duration) -> Result<Self, Failure> {
        let queue = Arc::new(Queue::default());
        let feed = Self {
            queue: Arc::clone(&queue),
            flush_after,
        };
        thread::Builder::new()
            .spawn(move || queue.fill(lines))
            .map_err(|error| Failure::Work(format!("cannot start a thread: {error}")))?;
        Ok(feed)
    }

    /// Waits for `most` lines, for `flush_after` from the first of them, or for the end. Returns
    /// none at the end.
    fn next_batch(&self, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let mut state = self.queue.lock();
        state.wanted = most;
        while !state.is_complete() {
            let Some(since) = state.since else {
                state = wait(&self.queue.arrived, state);
                continue;
            };
            let left = self.flush_after.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            let result = self.queue.arrived.wait_timeout(state, left);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        let batch = state.take();
        self.queue.taken.notify_one();
        match state.end.take_if(|end| batch.is_empty() && end.is_err()) {
            Some(Err(failure)) => Err(failure),
            _ => Ok(batch),
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `lines` to their end.
    fn fill(&self, mut lines: Lines) {
        loop {
            let line = lines.next();
            let mut state = self.lock();
            match line {
                Ok(Some(line)) => {
                    while state.bytes >= MAX_BYTES {
                        state = wait(&self.taken, state);
                    }
                    state.push(line);
                    // Waking the signer for every line would cost more than reading it.
                    if state.lines.len() == 1 || state.is_complete() {
                        self.arrived.notify_one();
                    }
                }
                end => {
                    state.end = Some(end.map(drop));
                    self.arrived.notify_one();
                    return;
                }
            }
        }
    }
}

impl State {
    /// Whether the signer need not wait any longer.
    fn is_complete(&self) -> bool {
        self.lines.len() >= self.wanted || self.bytes >= MAX_BYTES || self.end.is_some()
    }

    fn push(&mut self, line: Vec<u8>) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes += footprint(&line);
        self.lines.push_back(line);
    }

    /// Takes the awaited lines.
    fn take(&mut self) -> Vec<Vec<u8>> {
        let count = self.lines.len().min(self.wanted);
        let batch: Vec<_> = self.lines.drain(..count).collect();
        self.bytes -= batch.iter().map(footprint).sum::<usize>();
        self.since = (!self.lines.is_empty()).then(Instant::now);
        batch
    }
}

/// The memory of a line in bytes, above 0 even for an empty line.
fn footprint(line: &Vec<u8>) -> usize {
    size_of_val(line) + line.capacity()
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition
        .wait(state)
        .unwrap_or_else(PoisonError::into_inner)
}
