//! CRT batches: `m^d mod n` for many numbers m and keys `n = p q`, computed on the devices.
//!
//! The caller is a [`Feed`], which makes the numbers and takes the results. Key records stay on the
//! devices. The results are not checked here.
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
use cudarc::driver::DriverError;

#[cfg(test)]
pub(crate) use self::tests::{ChangeInputs, Injection, Tampering};
use super::Cuda;
use super::family::{self, Entry, Operation, Plan};
use super::feed::{Feed, Feeding, copy_in, copy_out, write_indices};
use super::runtime::device::Call;
use super::runtime::launch::{Argument, Kernel, Work, places};
use super::runtime::lock;
use super::runtime::pipeline::{ChunkLens, Destination, Job, Stop};
use super::runtime::probe::DeviceInfo;
use super::runtime::records::{HeldRecords, RecordKind, Residence, TableInUse};
use super::runtime::slot::Slot;

/// Consecutive items of one key.
pub(crate) struct CrtRun<'a> {
    pub(crate) len: usize,
    pub(crate) key: CrtKey<'a>,
    /// The records of the key on the devices.
    pub(crate) residence: &'a Residence,
}

/// The numbers in the record of a key: `n = p q`, the exponents for p and q, and `q^-1 mod p`. All
/// except n are secret.
#[derive(Clone, Copy)]
pub(crate) struct CrtKey<'a> {
    pub(crate) p: ModulusRef<'a>,
    pub(crate) exponent_p: &'a BoxedUint,
    pub(crate) q: ModulusRef<'a>,
    pub(crate) exponent_q: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: ModulusRef<'a>,
}

/// Items that each host thread blinds sooner than a device.
///
/// A device takes as long for one item as for thousands: with RSA-2048, 0.23 ms on an H200, against
/// 1.5 us an item on the host. Several calls share the threads, and so do several devices.
const BLINDED_BY_A_THREAD: usize = 128;

/// The reciprocal of the part of a device that chunks leave free for the short launches of their
/// neighbours, if that does not add a chunk.
///
/// Without this, short launches wait for free multiprocessors, and then delay the next long launch.
/// By time stamps with RSA-2048 on an H100, recombining takes 5 % of the device's time, and
/// blinding another 12 %.
const PART_FOR_RECOMBINING: usize = 16;

/// The same for blinded items, whose short launches blind and recombine.
const PART_FOR_BLINDING_TOO: usize = 5;

/// The fewest and the most items that a thread opens at a time.
///
/// Small enough that each thread gets some, and that none finishes its last items late. Large
/// enough to fill SIMD vectors, and to make the overhead of a part negligible.
const OPENED_AT_A_TIME: [usize; 2] = [16, 128];

/// Kernels for moduli of up to `bits` bits.
#[derive(Clone, Debug)]
pub(crate) struct CrtClass {
    pub(crate) bits: u32,
    /// The candidates for the half exponentiations.
    pub(crate) halves: Vec<&'static Entry>,
    pub(crate) recombine: &'static Entry,
    pub(crate) join: &'static Entry,
    /// Blinds operands.
    pub(crate) blind: &'static Entry,
}

impl CrtClass {
    /// All kernels of the class.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.halves.iter().copied().chain(self.short())
    }

    /// The kernels beside those for the half exponentiations.
    fn short(&self) -> [&'static Entry; 3] {
        [self.recombine, self.join, self.blind]
    }

    /// All classes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let kernels = move |operation, bits| {
            family::all().filter(move |entry| entry.operation == operation && entry.bits == bits)
        };
        let joins = family::all().filter(|entry| entry.operation == Operation::CrtJoin);
        joins.filter_map(move |join| {
            let prime = join.bits / 2;
            Some(Self {
                bits: join.bits,
                halves: kernels(Operation::CrtHalves, prime).collect(),
                recombine: kernels(Operation::CrtRecombine, prime).next()?,
                join,
                blind: kernels(Operation::CrtBlind, join.bits).next()?,
            })
        })
    }

    /// The class, restricted to kernels for moduli of `n_bits` bits with factors of `prime_bits`
    /// bits, which are also the widths of the Montgomery parameters. `None` if no kernel for the
    /// halves is left.
    pub(super) fn taking(mut self, n_bits: u32, prime_bits: u32) -> Option<Self> {
        self.halves.retain(|entry| entry.takes_r2_bits(prime_bits));
        let fits = !self.halves.is_empty()
            && self.recombine.takes_r2_bits(prime_bits)
            && self.join.takes_r2_bits(n_bits)
            && self.blind.takes_r2_bits(n_bits);
        fits.then_some(self)
    }

    /// The narrowest class for moduli of `n_bits` bits with two factors of `prime_bits` bits.
    pub(crate) fn narrowest(n_bits: u32, prime_bits: u32) -> Option<Self> {
        let taking = Self::all().filter_map(|class| class.taking(n_bits, prime_bits));
        taking.min_by_key(|class| class.bits)
    }

    /// The plan for the half exponentiations of `count` items, which take nearly all of their time.
    /// `None` if the device cannot run the class.
    pub(crate) fn plan(
        &self,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
    ) -> Option<Plan> {
        let halves = self.halves.iter().copied();
        self.runs_on(device)
            .then(|| Plan::fastest(halves, exponent_bits, 2 * count, device))?
    }

    /// Whether a device can run the class.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.halves.iter().any(|entry| entry.runs_on(device))
            && self.short().iter().all(|entry| entry.runs_on(device))
    }

    /// The kind of the records of its moduli: p, q, their exponents, qInv and two constants, n and
    /// its constant.
    pub(crate) fn records(&self) -> RecordKind {
        RecordKind {
            family: self.join.key.family,
            bits: self.bits,
            words: 11 * self.prime_words(),
        }
    }

    /// 64-bit words in a factor of n.
    fn prime_words(&self) -> usize {
        self.bits as usize / 128
    }

    /// Writes the whole record of a key.
    pub(crate) fn write_record(&self, key: &CrtKey<'_>, record: &mut [u64]) {
        let words = self.prime_words();
        let (primes, n) = record.split_at_mut(7 * words);
        let parts = [
            key.p.limbs,
            key.p.r2,
            key.exponent_p.as_limbs(),
            key.q.limbs,
            key.q.r2,
            key.exponent_q.as_limbs(),
            key.qinv.as_limbs(),
        ];
        for (place, part) in primes.chunks_exact_mut(words).zip(parts) {
            copy_in(part, place);
        }
        let parts = [key.n.limbs, key.n.r2];
        for (place, part) in n.chunks_exact_mut(2 * words).zip(parts) {
            copy_in(part, place);
        }
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
    /// Two numbers, m and r. With the public exponent e, the factor is `m r^(e - 1)`, and the base
    /// is r times the factor.
    Blinded,
}

/// The public properties that all keys of a batch share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CrtShape {
    /// The width of n in bits, and of both primes: also those of their Montgomery parameters.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// An upper bound for the length of the exponents modulo p and q, in bits.
    pub(crate) exponent_bits: u32,
    /// e, odd and above 1.
    pub(crate) public_exponent: u64,
}

impl Cuda {
    /// The kernels for exponentiations modulo numbers of `n_bits` bits with two factors of
    /// `prime_bits` bits. `None` if no device has them.
    pub(crate) fn crt_class(&self, n_bits: u32, prime_bits: u32) -> Option<CrtClass> {
        CrtClass::narrowest(n_bits, prime_bits).filter(|class| {
            self.devices
                .in_use()
                .any(|device| class.runs_on(&device.info))
        })
    }

    /// The estimated time in milliseconds for `count` exponentiations in pairs modulo two factors
    /// on the devices. `widths` are those of the products and of the factors, in bits. `None` if
    /// none has a kernel.
    pub(crate) fn predicted_halves_ms(
        &self,
        (product_bits, bits): (u32, u32),
        exponent_bits: u32,
        count: usize,
    ) -> Option<f64> {
        let class = self.crt_class(product_bits, bits)?;
        self.devices.forecast(count.div_ceil(2), |device, share| {
            let plan = class.plan(exponent_bits, share, device);
            plan.map(|plan| plan.milliseconds)
        })
    }
}

/// Items of keys of one class, and the kernels for it.
pub(crate) struct CrtBatch<'a, F> {
    cuda: &'a Cuda,
    class: CrtClass,
    shape: CrtShape,
    runs: &'a [CrtRun<'a>],
    /// Whether bases are blinded.
    is_blinded: bool,
    feed: Feeding<'a, F>,
    #[cfg(test)]
    tampering: Tampering<'a>,
}

/// The kernels and key records with which a device computes its share.
pub(crate) struct Prepared {
    halves: Kernel,
    recombine: Kernel,
    join: Kernel,
    blind: Kernel,
    shape: CrtShape,
    window: Window,
    records: HeldRecords,
    /// For each run of items with one key: the last item, and the index of the key's record in the
    /// table.
    key_indices: Vec<(usize, u32)>,
    /// The largest chunk that the host blinds, in items.
    blinded_by_host: usize,
}

impl<O: Destination, F: Feed<O>> Job<O> for CrtBatch<'_, F> {
    type Prepared = Prepared;
    type Chunk = Vec<F::Opened>;
    type Error = F::Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        let plan = self.class.plan(self.shape.exponent_bits, count, device)?;
        Some(plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<(Prepared, ChunkLens), F::Error> {
        let (device, class) = (call.device, &self.class);
        let plan = class.plan(self.shape.exponent_bits, count, &device.info);
        let plan = plan.expect("a device with a share has a kernel");
        let table = call.table(class.records());
        let key_indices = self.key_indices(&table);
        let key_indices = key_indices.map_err(|error| device.fault(error))?;
        let halves = device.kernel(plan.entry)?;
        // An instance of the kernel is half of an item.
        let resident = halves.resident_instances() / 2;
        let per_block = plan.entry.instances_per_block.div_ceil(2);
        let part = match self.is_blinded {
            true => PART_FOR_BLINDING_TOO,
            false => PART_FOR_RECOMBINING,
        };
        // If the items fit on the device at once, two halves need less host work at the start and
        // the end. For larger shares, full chunks make fewer threads wait for each other.
        let lens = match count > resident {
            true => ChunkLens {
                most: resident,
                least: resident - resident / part,
                per_block,
            },
            false => ChunkLens::halves(resident, per_block),
        };
        let sharing = call.calls * self.cuda.devices.in_use().count().max(1);
        let prepared = Prepared {
            halves,
            recombine: device.kernel(class.recombine)?,
            join: device.kernel(class.join)?,
            blind: device.kernel(class.blind)?,
            shape: self.shape,
            window: plan.window,
            records: table.hold(),
            key_indices,
            blinded_by_host: BLINDED_BY_A_THREAD * self.feed.threads.count() / sharing,
        };
        Ok((prepared, lens))
    }

    fn submit(
        &self,
        prepared: &Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<F::Error>> {
        let operands = match self.is_blinded {
            false => Operands::Same,
            true if chunk.len() <= prepared.blinded_by_host => Operands::Given,
            true => Operands::Blinded,
        };
        let work = prepared.work(chunk.len(), operands);
        #[cfg(test)]
        if let Some(injection) = self.tampering.injection.cloned() {
            let chunk = chunk.clone();
            slot.inject(alloc::boxed::Box::new(move |point| {
                injection(&chunk, point);
            }));
        }
        let blinds = operands == Operands::Given;
        let _alone = lock(submitting);
        self.feed.submit(chunk, blinds, &work, slot, |input| {
            self.write_key_indices(prepared, chunk, &work, input);
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
    /// Makes a batch of the items of all `runs`. The class accepts the widths of their keys.
    pub(crate) fn new(
        cuda: &'a Cuda,
        (class, shape): (CrtClass, CrtShape),
        runs: &'a [CrtRun<'a>],
        is_blinded: bool,
        feed: &'a F,
    ) -> Self {
        Self {
            cuda,
            class,
            shape,
            runs,
            is_blinded,
            feed: Feeding {
                feed,
                threads: cuda.host_pool(),
                limbs: (shape.n_bits / Limb::BITS) as usize,
                part: OPENED_AT_A_TIME,
            },
            #[cfg(test)]
            tampering: Tampering::default(),
        }
    }

    pub(crate) fn run<O: Destination>(&self, output: O) -> Result<(), F::Error>
    where
        F: Feed<O>,
    {
        self.cuda.devices.run(self, output)
    }

    /// The indices of the keys in the table. Keys without a record get one.
    fn key_indices(&self, table: &TableInUse<'_>) -> Result<Vec<(usize, u32)>, DriverError> {
        let mut indices = Vec::with_capacity(self.runs.len());
        let mut end = 0;
        for run in self.runs {
            let write = |record: &mut [u64]| self.class.write_record(&run.key, record);
            end += run.len;
            indices.push((end, table.index_of(run.residence, write)?));
        }
        Ok(indices)
    }

    /// Writes the key indices of a chunk.
    fn write_key_indices(
        &self,
        prepared: &Prepared,
        chunk: &Range<usize>,
        work: &Work,
        input: &mut [u64],
    ) {
        let [indices] = places(input, [work.indices]);
        let runs = &prepared.key_indices;
        let mut runs = runs[runs.partition_point(|run| run.0 <= chunk.start)..]
            .iter()
            .peekable();
        let index_of = |item| {
            while runs.next_if(|run| run.0 <= item).is_some() {}
            runs.peek().map_or(0, |run| run.1)
        };
        write_indices(chunk.clone().map(index_of), indices);
        #[cfg(test)]
        if let Some(change) = self.tampering.inputs {
            change(places(input, [work.numbers[0], work.indices]));
        }
    }
}

impl Prepared {
    /// Lays out a chunk of `count` items in memory, and makes its launches.
    fn work(&self, count: usize, operands: Operands) -> Work<'_> {
        self.check();
        let (shape, window) = (self.shape, self.window);
        let words = self.halves.entry.words();
        let len = 2 * words * count;

        let mut work = Work::with_records(&self.records);
        let first = work.input(len);
        let second = work.input(match operands {
            Operands::Same => 0,
            Operands::Given | Operands::Blinded => len,
        });
        work.numbers = [first, second];
        work.indices = work.input(count.div_ceil(2));
        let halves = work.intermediate(len);
        let h = work.intermediate(words * count);
        let product = work.output(len);
        let scratch = work.scratch(self.halves.scratch_words(2 * count, window.table_len()));
        let (base, factor) = match operands {
            Operands::Same => (first, first),
            Operands::Given => (first, second),
            // Lanes past the end have places of their own.
            Operands::Blinded => {
                let per_block = self.blind.entry.instances_per_block;
                let len = 2 * words * count.next_multiple_of(per_block);
                (work.intermediate(len), work.intermediate(len))
            }
        };
        let index = Argument::RecordIndices {
            part: work.indices,
            count,
        };

        let blind_arguments = || {
            vec![
                Argument::Words(factor),
                Argument::Words(base),
                Argument::Words(first),
                Argument::Words(second),
                Argument::Record(0),
                index,
                Argument::U64(shape.public_exponent - 1),
                Argument::U32(count as u32),
                Argument::U32(shape.n_bits),
            ]
        };
        let halves_arguments = vec![
            Argument::Words(halves),
            Argument::Words(base),
            Argument::Record(0),
            index,
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(shape.exponent_bits),
            Argument::U32(shape.prime_bits),
            Argument::U32(window.bits()),
        ];
        let recombine_arguments = vec![
            Argument::Words(h),
            Argument::Words(halves),
            Argument::Record(0),
            index,
            Argument::U32(count as u32),
            Argument::U32(shape.prime_bits),
        ];
        let join_arguments = vec![
            Argument::Words(product),
            Argument::Words(halves),
            Argument::Words(h),
            Argument::Words(factor),
            Argument::Record(0),
            index,
            Argument::U32(count as u32),
            Argument::U32(shape.n_bits),
        ];
        // SAFETY: these are the parameters of `rsa_BITS_blind`, `rsa_BITS_exp_tT`,
        // `rsa_BITS_garner` and `rsa_BITS_join`, checked above. Every part has the length that its
        // buffer must have.
        unsafe {
            if operands == Operands::Blinded {
                work.add_launch(&self.blind, count, blind_arguments());
            }
            work.add_launch(&self.halves, 2 * count, halves_arguments);
            work.add_launch(&self.recombine, count, recombine_arguments);
            work.add_launch(&self.join, count, join_arguments);
        }
        work
    }

    /// Panics unless the kernels belong to one class and accept the numbers of the shape.
    fn check(&self) {
        let shape = self.shape;
        let kernels = [
            (&self.halves, Operation::CrtHalves, shape.prime_bits),
            (&self.recombine, Operation::CrtRecombine, shape.prime_bits),
            (&self.join, Operation::CrtJoin, shape.n_bits),
            (&self.blind, Operation::CrtBlind, shape.n_bits),
        ];
        for (kernel, operation, r2_bits) in kernels {
            kernel.entry.check(&[operation], r2_bits);
        }
        let [halves, recombine, join, blind] = kernels.map(|(kernel, ..)| kernel.entry);
        assert!(
            shape.exponent_bits <= halves.bits,
            "the exponents are too long"
        );
        assert!(
            shape.public_exponent > 1 && shape.public_exponent % 2 == 1,
            "the public exponent is none"
        );
        let words = halves.words();
        assert!(
            words == recombine.words()
                && 2 * words == join.words()
                && 2 * words == blind.words()
                && 11 * words == self.records.kind.words,
            "kernels and records of different classes"
        );
    }
}

#[cfg(test)]
mod tests;
