//! Powers of numbers from a [`Feed`]: with one short public exponent for verification and
//! encryption, or with secret exponents for keys without CRT kernels and for primality tests.
//!
//! The kernels are those for secret exponents, of which they take one for each instance. Public
//! ones are all equal.

use alloc::vec::Vec;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::Error;
use batch_modexp_core::engine::{Engine, SecretPowers};
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::{BoxedUint, Limb};

use super::Cuda;
use super::family::entry::Entry;
use super::family::{self, ModExpChunk};
use super::feed::{Feed, Feeding, Opened, Operands};
use super::modexp::{self, write_moduli};
use super::plan::{Plan, Tuning};
use super::runtime::device::Call;
use super::runtime::layout::{Part, places};
use super::runtime::lock;
use super::runtime::pipeline::{Job, Output, Prepared, Stop, Timing};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;
use super::words::{NonTemporal, copy_out};

/// Consecutive items with one modulus.
pub(crate) struct PowerRun<'a> {
    /// The number of items up to the end of this run.
    pub(crate) end: usize,
    pub(crate) modulus: ModulusRef<'a>,
}

/// The exponents of a batch.
#[derive(Clone, Copy)]
enum Exponents<'a> {
    /// One for all.
    Same(&'a [Limb]),
    /// One for each item.
    Each(&'a [&'a [Limb]]),
}

impl<'a> Exponents<'a> {
    fn of(self, item: usize) -> &'a [Limb] {
        match self {
            Self::Same(exponent) => exponent,
            Self::Each(exponents) => exponents[item],
        }
    }
}

/// Items that a thread opens at a time, few enough that each thread gets some of a chunk. With 128
/// and 64, batches of 262,144 RSA-2048 verifications took 15 and 36 % longer on an H100.
const OPENED_AT_A_TIME: usize = 256;

impl Cuda {
    /// Raises the feed's numbers, the first of each item, to the public `exponent`.
    ///
    /// The moduli are equally wide, [have a kernel](Self::has_kernel), and are at least as wide as
    /// the exponent. `host` computes items whose modulus a kernel refuses.
    pub(crate) fn run_public_powers<O: Output, F: Feed<O>>(
        &self,
        host: &dyn Engine,
        exponent: &BoxedUint,
        runs: &[PowerRun<'_>],
        feed: &F,
        output: O,
    ) -> Result<Timing, F::Error> {
        let exponents = Exponents::Same(exponent.as_limbs());
        let exponents = (exponents, exponent.bit_width_vartime());
        self.run_powers(host, exponents, runs, feed, output)
    }

    /// Fails in a forked child, and if all devices are lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.devices.check()
    }

    /// Computes powers with secret exponents. Otherwise like
    /// [`run_public_powers`](Self::run_public_powers).
    pub(crate) fn run_secret_powers(
        &self,
        host: &dyn Engine,
        powers: SecretPowers<'_>,
    ) -> Result<(), Error> {
        let mut end = 0;
        let runs = powers.moduli.chunk_by(ModulusRef::is_same).map(|run| {
            end += run.len();
            PowerRun {
                end,
                modulus: run[0],
            }
        });
        let runs: Vec<_> = runs.collect();
        let limbs = powers.limbs();
        let bases = Bases {
            limbs,
            numbers: powers.bases,
        };
        let places = Places {
            limbs,
            numbers: powers.out,
        };
        let exponents = (Exponents::Each(powers.exponents), powers.exponent_bits);
        self.run_powers(host, exponents, &runs, &bases, places)
            .map(|_| ())
    }

    fn run_powers<O: Output, F: Feed<O>>(
        &self,
        host: &dyn Engine,
        (exponents, exponent_bits): (Exponents<'_>, u32),
        runs: &[PowerRun<'_>],
        feed: &F,
        output: O,
    ) -> Result<Timing, F::Error> {
        let Some(first) = runs.first() else {
            return Ok(Timing::default());
        };
        let batch = Powers {
            bits: first.modulus.bits(),
            exponents,
            exponent_bits,
            runs,
            host,
            feed: Feeding {
                feed,
                threads: self.host_pool(),
                limbs: first.modulus.limbs.len(),
            },
        };
        self.devices.run(&batch, output)
    }
}

/// Numbers in the caller's memory, one after the other.
struct Bases<'a> {
    /// Limbs in each.
    limbs: usize,
    numbers: &'a [Limb],
}

/// Places for powers, one after the other.
struct Places<'a> {
    /// Limbs in each.
    limbs: usize,
    numbers: &'a mut [Limb],
}

impl Output for Places<'_> {
    fn len(&self) -> usize {
        self.numbers.len() / self.limbs
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let limbs = self.limbs;
        let (head, tail) = self.numbers.split_at_mut(middle * limbs);
        let places = |numbers| Self { limbs, numbers };
        (places(head), places(tail))
    }
}

impl<'a, 'o> Feed<Places<'o>> for Bases<'a> {
    type Opened = &'a [Limb];
    type Error = Error;

    fn open(&self, items: Range<usize>, _: Operands) -> Result<&'a [Limb], Error> {
        Ok(&self.numbers[items.start * self.limbs..items.end * self.limbs])
    }

    fn numbers<'n>(&self, opened: &'n &'a [Limb]) -> [&'n [Limb]; 2] {
        [opened, &[]]
    }

    fn take(&self, _: &'a [Limb], powers: &[Limb], places: Places<'o>) {
        places.numbers.copy_from_slice(powers);
    }
}

struct Powers<'a, F> {
    /// The width of the moduli.
    bits: u32,
    exponents: Exponents<'a>,
    /// The length of the exponents, which is public.
    exponent_bits: u32,
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

impl<F: Sync> Powers<'_, F> {
    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let (bits, exponent_bits) = (self.bits, self.exponent_bits);
        Plan::new(bits, exponent_bits, count, device, Tuning::default())
    }

    /// The runs with items in a chunk.
    fn runs_of(&self, chunk: &Range<usize>) -> &[PowerRun<'_>] {
        let first = self.runs.partition_point(|run| run.end <= chunk.start);
        let last = self.runs.partition_point(|run| run.end < chunk.end);
        &self.runs[first..=last]
    }

    /// Writes the exponents of a chunk.
    fn fill_exponents(&self, chunk: &Range<usize>, words: &mut [u64]) {
        let size = words.len() / chunk.len();
        let starts = chunk.clone().step_by(OPENED_AT_A_TIME);
        let parts = starts.zip(words.chunks_mut(OPENED_AT_A_TIME * size));
        self.feed
            .threads
            .each_item(parts.collect(), |(start, words)| {
                NonTemporal::with(|stores| {
                    for (item, place) in (start..).zip(words.chunks_exact_mut(size)) {
                        stores.copy_in(self.exponents.of(item), place);
                    }
                });
            });
    }

    /// The moduli of a chunk, each with the number of items that have it.
    fn moduli(&self, chunk: &Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        let mut start = chunk.start;
        let moduli = self.runs_of(chunk).iter().map(|run| {
            let len = run.end.min(chunk.end) - start;
            start += len;
            (run.modulus, len)
        });
        moduli.collect()
    }

    /// Computes on the host an item that a family refuses.
    fn compute_on_host(&self, item: usize, base: &[Limb], power: &mut [Limb]) {
        let run = self.runs.partition_point(|run| run.end <= item);
        self.host.pow(SecretPowers {
            moduli: &[self.runs[run].modulus],
            exponents: &[self.exponents.of(item)],
            exponent_bits: self.exponent_bits,
            bases: base,
            out: power,
        });
    }
}

impl<O: Output, F: Feed<O>> Job<O> for Powers<'_, F> {
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
            exponent_bits: self.exponent_bits,
            r2_bits: entry.r2_bits(self.bits),
            window: plan.window,
        };
        let work = family::modexp::launch(entry, *grid, &what);
        let alone = lock(&share.opening);
        let parts = self
            .feed
            .open(chunk, OPENED_AT_A_TIME, Operands::Same)
            .map_err(Stop::Batch)?;
        let fill = |input: &mut [u64]| {
            let parts_of_input = [work.base, work.exponent, work.modulus_index, work.moduli];
            let [bases, exponents, indices, records] = places(input, parts_of_input);
            self.feed.copy(&parts, [bases, &mut []], entry.words());
            self.fill_exponents(chunk, exponents);
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
