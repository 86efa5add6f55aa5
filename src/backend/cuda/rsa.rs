//! RSA private operations that stay on the device, from the block to the checked result: both half
//! exponentiations in one grid, Garner's recombination, and the check with the public exponent against a
//! copy of the block that the computation has not touched (`rsa_BITS_*` of `kernels/README.md`).
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use crypto_bigint::BoxedUint;
use crypto_bigint::modular::MontyParams;
use cudarc::driver::DriverError;
use rayon::ThreadPool;

use super::device::{Device, cut, on_each};
use super::entry::{Entry, RSA, RsaClass};
use super::group::{copy_in, copy_out, each, each_chunk};
use super::kernel::{Argument, Kernel};
use super::keys::{KeyPlaces, KeyTable};
use super::plan::{best_entry, best_window};
use super::slot::{Addresses, Sizes, Slot};
use super::{Cuda, DeviceInfo, Timing, device};
use crate::Error;
use crate::secret::Secret;

/// The private key of one lane, with two primes.
#[derive(Clone, Copy)]
pub(crate) struct RsaKey<'a> {
    pub(crate) p: &'a MontyParams<BoxedUint>,
    pub(crate) dp: &'a BoxedUint,
    pub(crate) q: &'a MontyParams<BoxedUint>,
    pub(crate) dq: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: &'a MontyParams<BoxedUint>,
    /// Where the key lies on devices.
    pub(crate) places: &'a KeyPlaces,
}

/// A key and the block to be raised to its private exponent; the block is below n and as wide.
#[derive(Clone, Copy)]
pub(crate) struct RsaLane<'a> {
    pub(crate) key: RsaKey<'a>,
    pub(crate) block: &'a BoxedUint,
}

/// Lanes whose keys have all public numbers in common.
pub(crate) struct RsaGroup<'a> {
    pub(crate) class: Class,
    /// The widths of n and of the primes in bits.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// A bound for the lengths of dP and dQ.
    pub(crate) exponent_bits: u32,
    pub(crate) public_exponent: u64,
    pub(crate) lanes: Vec<RsaLane<'a>>,
}

/// The kernels that serve a size of keys.
#[derive(Clone, Copy)]
pub(crate) struct Class(&'static RsaClass);

impl RsaClass {
    fn runs_on(&self, device: &DeviceInfo) -> bool {
        let fits = |entry: &Entry| entry.shared_bytes <= device.shared_bytes_per_block();
        self.exp.iter().any(fits) && fits(&self.garner) && fits(&self.check)
    }
}

/// A result, or `None` for a lane that did not pass its check.
pub(crate) type Lane = Option<Secret<BoxedUint>>;

impl Cuda {
    /// The kernels for moduli of `n_bits` bits with primes of `prime_bits` bits, widths rounded up to limbs;
    /// `None` if there are none that all devices can run.
    pub(crate) fn rsa_class(&self, n_bits: u32, prime_bits: u32) -> Option<Class> {
        let fits = |class: &&RsaClass| {
            n_bits <= class.bits
                && prime_bits <= class.bits / 2
                && n_bits >= class.check.min_r2_bits
                && prime_bits >= class.min_prime_bits()
                && self.devices().all(|device| class.runs_on(device))
        };
        RSA.iter().find(fits).map(Class)
    }

    /// The private operation for all lanes of a group.
    pub(crate) fn rsa_private_op(&self, group: &RsaGroup<'_>) -> Result<Vec<Lane>, Error> {
        self.rsa_private_op_struck(group, &|_, _| ())
    }

    /// The same with a look at the words of both copies of the blocks before they go to the device, for
    /// tests that flip bits in them.
    pub(crate) fn rsa_private_op_struck(
        &self,
        group: &RsaGroup<'_>,
        strike: Strike<'_>,
    ) -> Result<Vec<Lane>, Error> {
        let pool = self.host.pool()?;
        let mut results: Vec<Lane> = group.lanes.iter().map(|_| None).collect();
        let shares = device::shares_of(&self.devices, group.lanes.len());
        let timings = on_each(shares, &mut results, |device, share, results| {
            self.devices[device].run_rsa(pool, group, share, strike, results)
        });
        let timings: Result<Vec<Timing>, Error> = timings.into_iter().collect();
        timings.map(|_| results)
    }
}

/// What is done to the blocks and their copies on their way to the device.
pub(crate) type Strike<'a> = &'a (dyn Fn(&mut [u64], &mut [u64]) + Sync);

/// Everything that the launches of a share have in common.
struct Job<'a> {
    group: &'a RsaGroup<'a>,
    pool: &'a ThreadPool,
    strike: Strike<'a>,
    exp: Arc<Kernel>,
    garner: Arc<Kernel>,
    check: Arc<Kernel>,
    table: Arc<KeyTable>,
    /// The first lane of the share, and for each of its lanes the number of its key in the table.
    start: usize,
    key_numbers: Vec<u32>,
}

impl Device {
    fn run_rsa(
        &self,
        pool: &ThreadPool,
        group: &RsaGroup<'_>,
        share: Range<usize>,
        strike: Strike<'_>,
        results: &mut [Lane],
    ) -> Result<Timing, Error> {
        let class = group.class.0;
        let Some(entry) = best_entry(class.exp.iter(), 2 * share.len(), self.info()) else {
            unreachable!("the class runs on all devices");
        };
        let mut slots = self.slots();
        let table = self.key_table(class);
        let key_numbers = key_numbers(&group.lanes[share.clone()], &table, class.prime_words());
        let job = Job {
            group,
            pool,
            strike,
            exp: self.kernel(entry)?,
            garner: self.kernel(&class.garner)?,
            check: self.kernel(&class.check)?,
            table,
            start: share.start,
            key_numbers: key_numbers.map_err(|error| self.fault(error))?,
        };
        let most = job.exp.resident_instances() / 2;
        let chunks = cut(&share, most, entry.instances_per_block.div_ceil(2));
        self.pipeline(
            &mut slots,
            &chunks,
            |slot, chunk| job.submit(slot, chunk),
            |chunk, words| {
                let places = &mut results[chunk.start - share.start..chunk.end - share.start];
                job.take(words, places);
            },
        )
    }
}

/// The numbers of the lanes' keys in the table. Neighbours with the same key are looked up once.
fn key_numbers(
    lanes: &[RsaLane<'_>],
    table: &Arc<KeyTable>,
    words: usize,
) -> Result<Vec<u32>, DriverError> {
    let mut numbers = Vec::with_capacity(lanes.len());
    for run in lanes.chunk_by(|a, b| ptr::eq(a.key.places, b.key.places)) {
        let key = run[0].key;
        let number = key
            .places
            .number_in(table, |record| write_record(&key, words, record))?;
        numbers.extend(run.iter().map(|_| number));
    }
    Ok(numbers)
}

/// Writes the record of a key, all of it.
fn write_record(key: &RsaKey<'_>, words: usize, record: &mut [u64]) {
    let [p, r2_p, dp, q, r2_q, dq, qinv] = [
        key.p.modulus().as_ref(),
        key.p.r2(),
        key.dp,
        key.q.modulus().as_ref(),
        key.q.r2(),
        key.dq,
        key.qinv,
    ];
    let (primes, n) = record.split_at_mut(7 * words);
    let parts = [p, r2_p, dp, q, r2_q, dq, qinv];
    for (place, part) in primes.chunks_exact_mut(words).zip(parts) {
        copy_in(part.as_limbs(), place);
    }
    let parts = [key.n.modulus().as_ref(), key.n.r2()];
    for (place, part) in n.chunks_exact_mut(2 * words).zip(parts) {
        copy_in(part.as_limbs(), place);
    }
}

impl Job<'_> {
    fn submit(&self, slot: &mut Slot, chunk: &Range<usize>) -> Result<(), DriverError> {
        let (count, words) = (chunk.len(), self.group.class.0.prime_words());
        let (numbers, indices) = (2 * words * count, count.div_ceil(2));
        let window = best_window(self.group.exponent_bits);
        let exp_blocks = self.exp.blocks(2 * count);
        let sizes = Sizes {
            input: 2 * numbers + indices,
            output: numbers + indices,
            tables: self.exp.table_words(exp_blocks, window),
            between: 3 * words * count,
        };
        slot.submit(
            sizes,
            |input| self.fill(chunk, numbers, input),
            |at, stream| {
                let input = |word| Argument::Address(Addresses::word(at.input, word));
                let (messages, copy, key_index) = (input(0), input(numbers), input(2 * numbers));
                let halves = Argument::Address(at.between);
                let h = Argument::Address(Addresses::word(at.between, 2 * words * count));
                let out = Argument::Address(at.output);
                let verdict = Argument::Address(Addresses::word(at.output, numbers));
                let keys = Argument::Address(self.table.address());
                let count = Argument::U32(count as u32);
                let (prime_bits, n_bits) = (self.group.prime_bits, self.group.n_bits);
                let exp = [
                    halves,
                    messages,
                    keys,
                    key_index,
                    Argument::Address(at.tables),
                    count,
                    Argument::U32(self.group.exponent_bits),
                    Argument::U32(prime_bits),
                    Argument::U32(window.bits()),
                ];
                let garner = [h, halves, keys, key_index, count, Argument::U32(prime_bits)];
                let check = [
                    out,
                    verdict,
                    halves,
                    h,
                    copy,
                    keys,
                    key_index,
                    Argument::U64(self.group.public_exponent),
                    count,
                    Argument::U32(n_bits),
                ];
                // SAFETY: these are the parameters of `rsa_BITS_exp_tT`, `rsa_BITS_garner` and
                // `rsa_BITS_check`; `sizes` gives every buffer the length that it must have, numbers take
                // multiples of 64 bytes, and the table of keys does not move while the slots are held.
                unsafe {
                    self.exp.launch(exp_blocks, &exp, stream)?;
                    self.garner
                        .launch(self.garner.blocks(chunk.len()), &garner, stream)?;
                    self.check
                        .launch(self.check.blocks(chunk.len()), &check, stream)
                }
            },
        )
    }

    /// Writes blocks, their copies and the numbers of their keys to `input`, all of it.
    fn fill(&self, chunk: &Range<usize>, numbers: usize, input: &mut [u64]) {
        let words = 2 * self.group.class.0.prime_words();
        let (messages, rest) = input.split_at_mut(numbers);
        let (copies, index) = rest.split_at_mut(numbers);
        let lanes = &self.group.lanes[chunk.clone()];
        // Twice from the caller's block: a fault in one of the copies shows in the check.
        for copy in [&mut *messages, &mut *copies] {
            each_chunk(self.pool, copy, words, |lane, place| {
                copy_in(lanes[lane].block.as_limbs(), place);
            });
        }
        (self.strike)(messages, copies);
        let key_numbers = &self.key_numbers[chunk.start - self.start..chunk.end - self.start];
        for (word, pair) in index.iter_mut().zip(key_numbers.chunks(2)) {
            let high = pair.get(1).copied().unwrap_or(0);
            *word = u64::from(pair[0]) | u64::from(high) << 32;
        }
    }

    /// Copies the results that passed their check.
    fn take(&self, output: &[u64], places: &mut [Lane]) {
        let words = 2 * self.group.class.0.prime_words();
        let (numbers, verdicts) = output.split_at(words * places.len());
        let verdict = |lane: usize| (verdicts[lane / 2] >> (32 * (lane % 2))) as u32;
        each(self.pool, places, |lane, place| {
            if verdict(lane) == 1 {
                let mut value = Secret::new(BoxedUint::zero_with_precision(self.group.n_bits));
                copy_out(&numbers[lane * words..][..words], value.as_mut_limbs());
                *place = Some(value);
            }
        });
    }
}
