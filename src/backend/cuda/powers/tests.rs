//! Tests of the parent module, with the feed of `Cuda::batch_mod_exp`.

use super::super::family;
use super::super::feed::copy_in;
use super::super::runtime::launch::Part;
use super::*;
use crate::backend::cuda::feed::HostPool;
use batch_modexp_core::ModExp;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd, Resize};

type Instances<'a> = [ModExp<'a, BoxedUint>];

/// The narrowest kernel.
fn entry() -> &'static Entry {
    family::serving(64).next().unwrap()
}

/// The share of a job with a kernel of no device.
fn prepared_for<F: ?Sized>(job: &PowerJob<'_, F>, entry: &'static Entry) -> Prepared {
    Prepared {
        kernel: Kernel::imaginary(entry),
        exponent_bits: job.exponent_bits,
        r2_bits: entry.r2_bits(job.bits),
        window: entry.family.best_window(job.exponent_bits),
    }
}

fn job<'a>(
    batch: &'a Instances<'a>,
    exponent_bits: u32,
    threads: HostPool<'a>,
) -> PowerJob<'a, Instances<'a>> {
    let modulus = ModulusRef::of(batch[0].params);
    PowerJob {
        bits: modulus.width(),
        exponent_bits,
        tuning: Tuning::default(),
        entries_by: None,
        host: &AnyEngine::Serial,
        feed: Feeding {
            feed: batch,
            threads,
            limbs: modulus.limbs.len(),
            part: [OPENED_AT_A_TIME; 2],
        },
    }
}

/// The work of a chunk, and its inputs, written over those of an earlier chunk.
fn filled<'s>(
    job: &PowerJob<'_, Instances<'_>>,
    prepared: &'s Prepared,
    chunk: Range<usize>,
) -> (Work<'s>, Vec<u64>) {
    let moduli = job.feed.feed.moduli(chunk.clone());
    let work = prepared.work(chunk.len(), moduli.len());
    let mut words = vec![u64::MAX; work.records.range().end];
    let parts = job.feed.open(&chunk, false).unwrap();
    let numbers = places(&mut words, work.numbers);
    job.feed.copy(&parts, numbers, chunk.len());
    let places = places(&mut words, [work.indices, work.records]);
    let entry = prepared.kernel.entry;
    write_records(
        job.feed.threads,
        &moduli,
        places,
        |modulus, record, stores| {
            write_modulus(entry, modulus, record, stores);
        },
    );
    (work, words)
}

/// Takes the powers of all items from a kernel.
fn take(
    job: &PowerJob<'_, Instances<'_>>,
    entry: &'static Entry,
    words: &mut [u64],
    out: &mut [BoxedUint],
) {
    let items = 0..out.len();
    let prepared = prepared_for(job, entry);
    let parts = job.feed.open(&items, false).unwrap();
    job.take(&prepared, parts, &items, words, out);
}

fn params(modulus: u64, bits: u32) -> BoxedMontyParams {
    let modulus = BoxedUint::from(modulus).resize(bits);
    BoxedMontyParams::new(Odd::new(modulus).unwrap())
}

/// Inputs are zero-extended in their places. Equal adjacent references share a record.
#[test]
fn words_of_a_chunk() {
    let (first, second) = (params(15, 320), params(17, 320));
    let (base, exponent) = (BoxedUint::max(128), BoxedUint::from(5u64));
    let order = [&second, &first, &first, &second];
    let batch = order.map(|params| ModExp {
        base: &base,
        exponent: &exponent,
        params: params.as_ref(),
    });
    let job = job(&batch, 3, HostPool(None));
    let prepared = prepared_for(&job, entry());
    let (work, words) = filled(&job, &prepared, 1..4);

    for number in words[work.numbers[0].range()].chunks(8) {
        assert_eq!(number, [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0]);
    }
    for number in words[work.numbers[1].range()].chunks(8) {
        assert_eq!(number, [5, 0, 0, 0, 0, 0, 0, 0]);
    }
    let records: Vec<_> = words[work.records.range()].chunks(8).collect();
    assert_eq!(records.len(), 4);
    assert_eq!(records[0], [15, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[2], [17, 0, 0, 0, 0, 0, 0, 0]);
    // 2^640 = 16^160 = 1 modulo 15, and (-1)^160 = 1 modulo 17.
    assert_eq!(records[1], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[3], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(words[work.indices.range()], [0, 1]);

    // The launch is allowed once both records have been sent.
    let there = work.records.range().start + 4 * 8;
    let is_taken = |sent: usize| {
        let check = || work.check_indices(&words[..sent]);
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(check)).is_ok()
    };
    assert!(is_taken(there) && !is_taken(there - 1));
}

/// The device gets `2^1024` if the parameters of the batch are too narrow.
#[test]
fn narrow_moduli_get_wider_parameters() {
    let params = params(1_000_003, 64);
    let one = BoxedUint::from(1u64);
    let batch = [ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    }];
    let job = job(&batch, 1, HostPool(None));
    assert_eq!(entry().r2_bits(job.bits), entry().bits);
    let prepared = prepared_for(&job, entry());
    let (work, words) = filled(&job, &prepared, 0..1);
    let mut expected = 1u64;
    for _ in 0..2 * entry().bits {
        expected = expected * 2 % 1_000_003;
    }
    assert_eq!(
        words[work.records.range().start + entry().words()],
        expected
    );
}

#[test]
fn results_have_the_width_of_their_modulus() {
    let params = params(15, 128);
    let one = BoxedUint::from(1u64);
    let batch = [ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    }];
    let mut out = [BoxedUint::max(512)];
    let mut words = [3, 4, 0, 0, 0, 0, 0, 0];
    take(
        &job(&batch, 1, HostPool(None)),
        entry(),
        &mut words,
        &mut out,
    );
    assert_eq!(out[0].as_words(), [3, 4]);
    assert_eq!(words, [0; 8]);
}

/// Refused instances are computed on the host, also if their bases are narrow.
#[test]
fn refused_instances_are_computed_on_the_host() {
    let rns = family::serving(1024).find(|entry| entry.key.family == "rns");
    // The modulus of the second instance is the first prime of base A.
    let (sound, refused) = (params(15, 1024), params((1 << 29) - 3, 1024));
    let (base, exponent) = (BoxedUint::from(7u64), BoxedUint::from(2u64));
    let batch = [&sound, &refused, &sound].map(|params| ModExp {
        base: &base,
        exponent: &exponent,
        params: params.as_ref(),
    });
    let job = job(&batch, 2, HostPool(None));
    let mut words = [[4; 16], [u64::MAX; 16], [4; 16]];
    words
        .iter_mut()
        .step_by(2)
        .for_each(|power| power[1..].fill(0));
    let mut out = [0u64; 3].map(BoxedUint::from);
    let flat = words.as_flattened_mut();
    take(&job, rns.unwrap(), flat, &mut out);
    assert!(flat.iter().all(|word| *word == 0));
    assert_eq!(out, [4u64, 49, 4].map(BoxedUint::from));
}

/// Every place is filled correctly, for runs of equal moduli within parts, across parts and as long
/// as parts.
#[test]
fn every_place_is_filled() {
    let workers = batch_modexp_cpu::Workers::start(3.try_into().unwrap()).unwrap();
    const PART: usize = OPENED_AT_A_TIME;
    let words = entry().words();
    let moduli: Vec<_> = (0..3 * PART as u64)
        .map(|i| params(2 * i + 3, 512))
        .collect();
    let numbers: Vec<_> = (0..3 * PART as u64 + 9).map(BoxedUint::from).collect();
    for run in [1, 2, 3, 100, PART - 1, PART, PART + 1, 3 * PART] {
        let instance = |(i, number): (usize, _)| ModExp {
            base: number,
            exponent: &numbers[i / 2],
            params: moduli[i / run % moduli.len()].as_ref(),
        };
        let batch: Vec<_> = numbers.iter().enumerate().map(instance).collect();
        for chunk in [0..1, 0..batch.len(), 5..5 + PART, 7..2 * PART + 8] {
            for threads in [HostPool(None), HostPool(Some(&workers))] {
                let job = job(&batch, 1, threads);
                let prepared = prepared_for(&job, entry());
                let (work, input) = filled(&job, &prepared, chunk.clone());
                let firsts = |part: Part| input[part.range()].iter().step_by(words).copied();
                let instances = || chunk.clone().map(|i| i as u64);
                assert!(firsts(work.numbers[0]).eq(instances()));
                assert!(firsts(work.numbers[1]).eq(instances().map(|i| i / 2)));
                let records: Vec<_> = firsts(work.records).step_by(2).collect();
                let indices = input[work.indices.range()].iter();
                let mut indices = indices.flat_map(|word| [word & 0xffff_ffff, word >> 32]);
                for i in chunk.clone() {
                    let index = indices.next().unwrap() as usize;
                    assert_eq!(index, i / run - chunk.start / run);
                    assert_eq!(records[index], 2 * (i / run % moduli.len()) as u64 + 3);
                }
                assert_eq!(records.len(), (chunk.end - 1) / run - chunk.start / run + 1);
            }
        }
    }
}

/// Two entries of a table, whose numbers do not matter.
struct Entries(BoxedMontyParams);

impl<'o> Feed<&'o mut [Vec<Limb>]> for Entries {
    type Opened = ();
    type Error = batch_modexp_core::Error;

    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        vec![(ModulusRef::of(self.0.as_ref()), items.len())]
    }

    fn open(&self, _: Range<usize>, _: bool) -> Result<(), Self::Error> {
        Ok(())
    }

    fn numbers<'n>(&'n self, (): &'n (), _: usize) -> [&'n [Limb]; 2] {
        [&[], &[]]
    }

    fn take(&self, (): (), results: &[Limb], places: &'o mut [Vec<Limb>]) {
        let results = results.chunks_exact(results.len() / places.len());
        for (place, operand) in places.iter_mut().zip(results) {
            place.extend_from_slice(operand);
        }
    }
}

/// Entries of tables are operands, which are longer than the modulus. None is computed on the host.
#[test]
fn entries_are_taken_as_operands() {
    let mut kernels = family::narrowest(Operation::FixedEntries, 1024);
    let kernel = kernels.next().unwrap();
    let entries = Entries(params(15, 1024));
    let job = PowerJob {
        bits: 1024,
        exponent_bits: 1024,
        tuning: Tuning::default(),
        entries_by: None,
        host: &AnyEngine::Serial,
        feed: Feeding {
            feed: &entries,
            threads: HostPool(None),
            limbs: 1024 / Limb::BITS as usize,
            part: [OPENED_AT_A_TIME; 2],
        },
    };
    let job = job.of_entries(kernel);
    let prepared = prepared_for(&job, kernel);
    let work = prepared.work(2, 1);
    // 18 residues of each of two lanes in both bases, two to a word.
    let size = 36;
    let operands = Argument::Words(Work::default().output(2 * size));
    assert_eq!(work.launches()[0].arguments()[0], operands);

    let mut words: Vec<_> = [u64::MAX, 7].map(|word| vec![word; size]).concat();
    let expected = words.clone();
    let mut out = [(); 2].map(|()| Vec::new());
    job.take(&prepared, vec![()], &(0..2), &mut words, &mut out[..]);
    assert!(words.iter().all(|&word| word == 0));
    for (limbs, expected) in out.iter().zip(expected.chunks(size)) {
        let mut words = vec![0; size];
        copy_in(limbs, &mut words);
        assert_eq!(words, expected);
    }
}
