//! Powers with one short public exponent, of numbers from a [`Feed`]: for verification and
//! encryption.
//!
//! The kernels are those for secret exponents. They take one exponent for each instance; all of
//! these are equal.

use alloc::vec::Vec;
use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use batch_modexp_core::engine::{Engine, Exponent, Product};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb};

use super::Cuda;
use super::family::SHIPPED;
use super::family::entry::Entry;
use super::family::{self, ModExpChunk};
use super::feed::{Feed, Feeding, Opened, Operands};
use super::modexp::{self, write_moduli};
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::layout::{Part, places};
use super::runtime::pipeline::{Job, Output, Prepared, Stop, Timing};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{NonTemporal, copy_out};

/// Consecutive items with one modulus.
pub(crate) struct PowerRun<'a> {
    /// The number of items up to the end of this run.
    pub(crate) end: usize,
    pub(crate) params: &'a MontyParams<BoxedUint>,
}

/// Items that a thread opens at a time, few enough that each thread gets some of a chunk. With 128
/// and 64, batches of 262,144 RSA-2048 verifications took 15 and 36 % longer on an H100.
const OPENED_AT_A_TIME: usize = 256;

impl Cuda {
    /// Raises the feed's numbers, the first of each item, to `exponent`.
    ///
    /// The moduli are equally wide, [have a kernel](Self::has_kernel), and are at least as wide as
    /// `exponent`. `host` computes items whose modulus a kernel refuses.
    pub(crate) fn run_public_powers<O: Output, F: Feed<O>>(
        &self,
        host: &dyn Engine,
        exponent: &BoxedUint,
        runs: &[PowerRun<'_>],
        feed: &F,
        output: O,
    ) -> Result<Timing, F::Error> {
        let Some(first) = runs.first() else {
            return Ok(Timing::default());
        };
        let limbs = first.params.modulus().as_ref().as_limbs().len();
        let batch = PublicPowers {
            bits: limbs as u32 * Limb::BITS,
            exponent,
            runs,
            host,
            feed: Feeding {
                feed,
                threads: self.host_pool(),
                limbs,
            },
        };
        self.devices.run(&batch, output)
    }
}

struct PublicPowers<'a, F> {
    /// The width of the moduli.
    bits: u32,
    exponent: &'a BoxedUint,
    runs: &'a [PowerRun<'a>],
    host: &'a dyn Engine,
    feed: Feeding<'a, F>,
}

struct Share {
    mod_exp: modexp::Share,
    /// Held while a chunk for this device is opened and submitted. Two at a time would both be
    /// late.
    opening: Mutex<()>,
}

/// A chunk on a device.
struct UnderWay<T> {
    parts: Vec<Opened<T>>,
    entry: &'static Entry,
    /// The place of the powers in the output.
    powers: Part,
}

impl<F> PublicPowers<'_, F> {
    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let exponent_bits = self.exponent.bit_width_vartime();
        let tuning = Tuning::default();
        Plan::new(SHIPPED, self.bits, exponent_bits, count, device, tuning)
    }

    /// The runs with items in a chunk.
    fn runs_of(&self, chunk: &Range<usize>) -> &[PowerRun<'_>] {
        let first = self.runs.partition_point(|run| run.end <= chunk.start);
        let last = self.runs.partition_point(|run| run.end < chunk.end);
        &self.runs[first..=last]
    }

    /// Writes an exponent for each of `count` items.
    fn fill_exponents(&self, count: usize, words: &mut [u64]) {
        let size = words.len() / count;
        let parts = words.chunks_mut(OPENED_AT_A_TIME * size).collect();
        self.feed.threads.each_item(parts, |words: &mut [u64]| {
            let places = words.chunks_exact_mut(size);
            NonTemporal::with(|stores| {
                places.for_each(|place| stores.copy_in(self.exponent.as_limbs(), place));
            });
        });
    }

    /// The moduli of a chunk, each with the number of items that have it.
    fn moduli(&self, chunk: &Range<usize>) -> Vec<(&MontyParams<BoxedUint>, usize)> {
        let mut start = chunk.start;
        let moduli = self.runs_of(chunk).iter().map(|run| {
            let len = run.end.min(chunk.end) - start;
            start += len;
            (run.params, len)
        });
        moduli.collect()
    }

    /// Computes on the host an item that a family refuses.
    fn compute_on_host(&self, item: usize, base: &[Limb], power: &mut [Limb]) {
        let run = self.runs.partition_point(|run| run.end <= item);
        self.host.mul_public_power(Product {
            moduli: &[self.runs[run].params],
            exponent: Exponent::new(self.exponent),
            bases: base,
            factors: None,
            out: power,
            times_base: None,
        });
    }
}

impl<O: Output, F: Feed<O>> Job<O> for PublicPowers<'_, F> {
    type Share = Share;
    type Chunk = UnderWay<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Share>, F::Error> {
        let Some(plan) = self.plan(call.device().info(), count) else {
            unreachable!("a device without a forecast has no share");
        };
        let Prepared { chunks, share } = modexp::Share::prepare(plan, call)?;
        Ok(Prepared {
            chunks,
            share: Share {
                mod_exp: share,
                opening: Mutex::default(),
            },
        })
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let modexp::Share { plan, grid, loaded } = &share.mod_exp;
        let entry = plan.entry;
        let moduli = self.moduli(chunk);
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: moduli.len(),
            exponent_bits: self.exponent.bit_width_vartime(),
            r2_bits: entry.r2_bits(self.bits),
            window: plan.window,
        };
        let work = family::modexp::launch(entry, *grid, &what);
        let alone = share.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = self
            .feed
            .open(chunk, OPENED_AT_A_TIME, Operands::Same)
            .map_err(Stop::Batch)?;
        let fill = |input: &mut [u64]| {
            let parts_of_input = [work.base, work.exponent, work.modulus_index, work.moduli];
            let [bases, exponents, indices, records] = places(input, parts_of_input);
            self.feed.copy(&parts, [bases, &mut []], entry.words());
            self.fill_exponents(chunk.len(), exponents);
            let of_moduli = [indices, records];
            write_moduli(entry, &moduli, of_moduli, self.feed.threads);
            input.len()
        };
        slot.submit(&work.layout, fill, &work.launches, loaded)?;
        drop(alone);
        Ok(UnderWay {
            parts,
            entry,
            powers: work.power,
        })
    }

    fn take(&self, chunk: Self::Chunk, items: &Range<usize>, words: &mut [u64], output: O) {
        let UnderWay {
            parts,
            entry,
            powers,
        } = chunk;
        let words = &mut words[powers.range()];
        self.feed
            .take(parts, words, output, |item, base, words, power| match entry
                .family
                .is_refused(words)
            {
                true => self.compute_on_host(items.start + item, base, power),
                false => copy_out(words, power),
            });
    }
}
