//! CRT batches: `m^d mod n` for many numbers m and keys `n = p q`, computed on the devices.
//!
//! The caller is a [`CrtFeed`], which makes the numbers and takes the results. Each chunk brings the
//! records of its keys along. The results are not checked here.
//!
//! A chunk is computed by launches of `rsa_BITS_*` (`kernels/README.md`): both half exponentiations,
//! Garner's recombination, and the product of the power and a factor. A first one may blind both
//! operands: see [`Operands`]. The half exponentiations may use kernels of any family, because their
//! parameters and records are the same in all. The DPF family has the kernels for the other steps.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::window::Window;
use crypto_bigint::{BoxedUint, Limb};

#[cfg(test)]
pub(crate) use self::tests::{ChangeInputs, Injection, Tampering};
use super::Cuda;
use super::family::{self, Entry, Operation, Plan};
use super::feed::{Feed, Feeding, NonTemporal, copy_out, write_records};
use super::runtime::device::Call;
use super::runtime::launch::{Argument, Kernel, Work, places};
use super::runtime::lock;
use super::runtime::pipeline::{Destination, Job, Stop, chunk_len};
use super::runtime::probe::DeviceInfo;
use super::runtime::slot::Slot;

/// The caller of a CRT batch.
pub(crate) trait CrtFeed<O>: Feed<O> {
    /// The keys of some items, each with the number of consecutive items that have it.
    fn keys(&self, items: Range<usize>) -> Vec<(CrtKey<'_>, usize)>;
}

/// The numbers in the record of a key: `n = p q`, the exponents for p and q, and `q^-1 mod p`. All
/// except n are secret.
pub(crate) struct CrtKey<'a> {
    pub(crate) p: ModulusRef<'a>,
    pub(crate) exponent_p: &'a BoxedUint,
    pub(crate) q: ModulusRef<'a>,
    pub(crate) exponent_q: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: ModulusRef<'a>,
}

/// The length of a record, in factors of n.
const RECORD_FACTORS: usize = 11;

impl CrtKey<'_> {
    /// Writes the whole record of the key.
    fn write_record<'w>(&self, record: &'w mut [u64], stores: &mut NonTemporal<'w>) {
        let words = record.len() / RECORD_FACTORS;
        let parts = [
            self.p.limbs,
            self.p.r2,
            self.exponent_p.as_limbs(),
            self.q.limbs,
            self.q.r2,
            self.exponent_q.as_limbs(),
            self.qinv.as_limbs(),
            self.n.limbs,
            self.n.r2,
        ];
        let (factors, products) = record.split_at_mut(7 * words);
        let factors = factors.chunks_exact_mut(words);
        let places = factors.chain(products.chunks_exact_mut(2 * words));
        places
            .zip(parts)
            .for_each(|(place, part)| stores.copy_in(part, place));
    }
}

/// Items that each host thread blinds sooner than a device.
///
/// A device takes as long for one item as for thousands: with RSA-2048, 0.23 ms on an H200, against
/// 1.5 us an item on the host. Several calls share the threads, and so do several devices.
const BLINDED_BY_A_THREAD: usize = 128;

/// The fewest and the most items that a thread opens at a time.
///
/// Small enough that each thread gets some, and that none finishes its last items late. Large
/// enough to fill SIMD vectors, and to make the overhead of a part negligible.
const OPENED_AT_A_TIME: [usize; 2] = [16, 128];

/// The public properties that all keys of a batch share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CrtShape {
    /// The width of n in bits, and of both primes: also those of their Montgomery parameters.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// An upper bound for the length of the exponents modulo p and q, in bits.
    pub(crate) exponent_bits: u32,
}

/// The kernels of one width for keys of a shape.
#[derive(Clone, Debug)]
pub(crate) struct CrtClass {
    pub(crate) shape: CrtShape,
    /// The candidates for the half exponentiations.
    pub(crate) halves: Vec<&'static Entry>,
    pub(crate) recombine: &'static Entry,
    pub(crate) join: &'static Entry,
    /// Blinds operands.
    pub(crate) blind: &'static Entry,
}

impl CrtClass {
    /// All classes for keys of this shape.
    pub(crate) fn all(shape: CrtShape) -> impl Iterator<Item = Self> {
        let kernels = |operation, r2_bits| {
            family::all()
                .filter(move |entry| entry.operation == operation && entry.takes_r2_bits(r2_bits))
        };
        let joins = kernels(Operation::CrtJoin, shape.n_bits);
        joins.filter_map(move |join| {
            let factors = |operation| {
                let kernels = kernels(operation, shape.prime_bits);
                kernels.filter(|entry| 2 * entry.bits == join.bits)
            };
            let mut blind = kernels(Operation::CrtBlind, shape.n_bits);
            let class = Self {
                shape,
                halves: factors(Operation::CrtHalves).collect(),
                recombine: factors(Operation::CrtRecombine).next()?,
                join,
                blind: blind.find(|entry| entry.bits == join.bits)?,
            };
            (!class.halves.is_empty()).then_some(class)
        })
    }

    /// The narrowest class for keys of this shape.
    pub(crate) fn narrowest(shape: CrtShape) -> Option<Self> {
        Self::all(shape).min_by_key(|class| class.join.bits)
    }

    /// All kernels of the class.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let short = [self.recombine, self.join, self.blind];
        self.halves.iter().copied().chain(short)
    }

    /// The plan for the half exponentiations of `count` items, which take nearly all of their time.
    /// `None` if the device cannot run the class.
    pub(crate) fn plan(&self, count: usize, device: &DeviceInfo) -> Option<Plan> {
        let short = [self.recombine, self.join, self.blind];
        let runs = short.iter().all(|entry| entry.runs_on(device));
        let halves = self.halves.iter().copied().filter(|_| runs);
        Plan::fastest(halves, self.shape.exponent_bits, 2 * count, device)
    }
}

/// The operands of `factor * base^exponent`, and the numbers that are copied to the device for
/// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    /// One number m is both base and factor.
    Same,
    /// Two numbers: the base, then the factor.
    Given,
    /// Two numbers, m and r. With this public exponent e, odd and above 1, the factor is
    /// `m r^(e - 1)`, and the base is r times the factor.
    Blinded(u64),
}

impl Cuda {
    /// The kernels for keys of this shape. `None` if no device has them.
    pub(crate) fn crt_class(&self, shape: CrtShape) -> Option<CrtClass> {
        let mut devices = self.devices.in_use();
        CrtClass::narrowest(shape)
            .filter(|class| devices.any(|device| class.plan(1, &device.info).is_some()))
    }

    /// The estimated time in milliseconds for `count` exponentiations in pairs modulo the factors
    /// of such keys on the devices. `None` if none has a kernel.
    pub(crate) fn predicted_halves_ms(&self, shape: CrtShape, count: usize) -> Option<f64> {
        let class = self.crt_class(shape)?;
        self.devices.forecast(count.div_ceil(2), |device, share| {
            class.plan(share, device).map(|plan| plan.milliseconds)
        })
    }
}

/// Items of keys of one class, and the kernels for it.
pub(crate) struct CrtBatch<'a, F> {
    cuda: &'a Cuda,
    class: CrtClass,
    /// The public exponent of the keys, if bases are blinded.
    blinding_exponent: Option<u64>,
    feed: Feeding<'a, F>,
    #[cfg(test)]
    tampering: Tampering<'a>,
}

/// The kernels with which a device computes its share.
pub(crate) struct Prepared {
    halves: Kernel,
    recombine: Kernel,
    join: Kernel,
    blind: Kernel,
    shape: CrtShape,
    window: Window,
    /// The largest chunk that the host blinds, in items.
    most_blinded_by_host: usize,
}

impl<O: Destination, F: CrtFeed<O>> Job<O> for CrtBatch<'_, F> {
    type Prepared = Prepared;
    type Chunk = Vec<F::Opened>;
    type Error = F::Error;

    const HAS_SEVERAL_LAUNCHES: bool = true;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.class.plan(count, device).map(|plan| plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, share: usize) -> Result<(Prepared, usize), F::Error> {
        let (device, class) = (call.device, &self.class);
        let count = share.saturating_mul(call.calls);
        let plan = class.plan(count, &device.info);
        let plan = plan.expect("a device with a share has a kernel");
        let halves = device.kernel(plan.entry)?;
        // An instance of the kernel is half of an item.
        let resident = halves.resident_instances() / 2;
        let per_block = plan.entry.instances_per_block.div_ceil(2);
        // If the items fit on the device at once, two chunks of half the size need less host work at the start and
        // the end. For larger shares, long chunks make fewer threads wait for each other.
        let most = match count > resident {
            true => resident,
            false => resident.div_ceil(2),
        };
        let sharing = call.calls * self.cuda.devices.in_use().count().max(1);
        let prepared = Prepared {
            halves,
            recombine: device.kernel(class.recombine)?,
            join: device.kernel(class.join)?,
            blind: device.kernel(class.blind)?,
            shape: class.shape,
            window: plan.window,
            most_blinded_by_host: BLINDED_BY_A_THREAD * self.feed.threads.count() / sharing,
        };
        Ok((prepared, chunk_len(share, most, per_block)))
    }

    fn submit(
        &self,
        prepared: &Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let operands = match self.blinding_exponent {
            None => Operands::Same,
            Some(_) if chunk.len() <= prepared.most_blinded_by_host => Operands::Given,
            Some(public_exponent) => Operands::Blinded(public_exponent),
        };
        let keys = self.feed.feed.keys(chunk.clone());
        let work = prepared.work(chunk.len(), operands, keys.len());
        #[cfg(test)]
        self.tampering.inject(chunk, slot);
        let blinds = operands == Operands::Given;
        let _alone = lock(submitting);
        self.feed.submit(chunk, blinds, &work, slot, |input| {
            let into = places(input, [work.indices, work.records]);
            write_records(self.feed.threads, &keys, into, CrtKey::write_record);
            #[cfg(test)]
            self.tampering
                .change(places(input, [work.numbers[0], work.indices]));
        })
    }

    fn take(
        &self,
        _: &Prepared,
        parts: Self::Chunk,
        _: &Range<usize>,
        words: &mut [u64],
        output: O,
    ) {
        let read = |_, _: [&_; 2], words: &_, result: &mut _| copy_out(words, result);
        self.feed.take(parts, words, output, read);
    }
}

impl<'a, F> CrtBatch<'a, F> {
    /// Makes a batch of items whose keys have widths that the class accepts.
    pub(crate) fn new(
        cuda: &'a Cuda,
        class: CrtClass,
        blinding_exponent: Option<u64>,
        feed: &'a F,
    ) -> Self {
        Self {
            cuda,
            feed: Feeding {
                feed,
                threads: cuda.host_pool(),
                limbs: (class.shape.n_bits / Limb::BITS) as usize,
                part: OPENED_AT_A_TIME,
            },
            class,
            blinding_exponent,
            #[cfg(test)]
            tampering: Tampering::default(),
        }
    }

    pub(crate) fn run<O: Destination>(&self, output: O) -> Result<(), F::Error>
    where
        F: CrtFeed<O>,
    {
        self.cuda.devices.run(self, output)
    }
}

impl Prepared {
    /// Lays out a chunk of `count` items of `keys` keys in memory, and makes its launches.
    fn work(&self, count: usize, operands: Operands, keys: usize) -> Work<'_> {
        self.check();
        let (shape, window, words) = (self.shape, self.window, self.halves.entry.words());
        let len = 2 * words * count;
        let mut work = Work::default();
        let first = work.input(len);
        let second = work.input(if operands == Operands::Same { 0 } else { len });
        work.numbers = [first, second];
        work.indices = work.input(count.div_ceil(2));
        let size = RECORD_FACTORS * words;
        work.records = work.input(keys * size);
        let halves = work.intermediate(len);
        let h = work.intermediate(words * count);
        let product = work.output(len);
        let scratch = work.scratch(self.halves.scratch_words(2 * count, window.table_len()));
        let (base, factor) = match operands {
            Operands::Same => (first, first),
            Operands::Given => (first, second),
            // Lanes past the end have places of their own.
            Operands::Blinded(e) => {
                assert!(e > 1 && e % 2 == 1, "the public exponent is none");
                let len = 2 * words * count.next_multiple_of(self.blind.entry.instances_per_block);
                (work.intermediate(len), work.intermediate(len))
            }
        };

        let [first, second, halves, h, product, scratch, base, factor] =
            [first, second, halves, h, product, scratch, base, factor].map(Argument::Words);
        let keys = Argument::Words(work.records);
        let index = Argument::Indices {
            part: work.indices,
            count,
            records: work.records,
            size,
        };
        let [p_bits, n_bits] = [shape.prime_bits, shape.n_bits].map(Argument::U32);
        let [items, exponent, window] =
            [count as u32, shape.exponent_bits, window.bits()].map(Argument::U32);
        let exponentiate = vec![
            halves, base, keys, index, scratch, items, exponent, p_bits, window,
        ];
        let recombine = vec![h, halves, keys, index, items, p_bits];
        let join = vec![product, halves, h, factor, keys, index, items, n_bits];
        // SAFETY: these are the parameters of `rsa_BITS_blind`, `rsa_BITS_exp_tT`,
        // `rsa_BITS_garner` and `rsa_BITS_join`, checked above. Every part has the length that its
        // buffer must have.
        unsafe {
            if let Operands::Blinded(e) = operands {
                let e = Argument::U64(e - 1);
                let blind = vec![factor, base, first, second, keys, index, e, items, n_bits];
                work.add_launch(&self.blind, count, blind);
            }
            work.add_launch(&self.halves, 2 * count, exponentiate);
            work.add_launch(&self.recombine, count, recombine);
            work.add_launch(&self.join, count, join);
        }
        work
    }

    /// Panics unless the kernels belong to one class and accept the numbers of the shape.
    fn check(&self) {
        let (shape, words) = (self.shape, self.halves.entry.words());
        let (p, n) = ((shape.prime_bits, words), (shape.n_bits, 2 * words));
        for (kernel, operation, (r2_bits, words)) in [
            (&self.halves, Operation::CrtHalves, p),
            (&self.recombine, Operation::CrtRecombine, p),
            (&self.join, Operation::CrtJoin, n),
            (&self.blind, Operation::CrtBlind, n),
        ] {
            let entry = kernel.entry;
            entry.check(&[operation], r2_bits, shape.exponent_bits);
            assert_eq!(entry.words(), words, "kernels of different classes");
        }
    }
}

#[cfg(test)]
mod tests;
