//! Tests of the parent module.

use super::super::group::Places;
use super::super::registry::SHIPPED;
use super::super::runtime::launch::check_indices;
use super::*;
use alloc::vec;
use batch_modexp_core::Serial;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Resize};

/// The narrowest kernel.
fn entry() -> &'static Entry {
    SHIPPED.serving(64).next().unwrap()
}

fn job<'a>(
    group: &'a Group<'a, ModExp<'a, BoxedUint>>,
    exponent_bits: u32,
) -> ModExpJob<'a, BoxedUint> {
    ModExpJob {
        group,
        exponent_bits,
        registry: SHIPPED,
        tuning: Tuning::default(),
        threads: HostPool(None),
        refused: Mutex::default(),
    }
}

/// The family's layout for a chunk, and its inputs, written over those of an earlier chunk.
fn filled(
    group: &Group<'_, ModExp<'_, BoxedUint>>,
    exponent_bits: u32,
    chunk: Range<usize>,
) -> (ModExpWork, Vec<u64>) {
    let job = job(group, exponent_bits);
    let entry = entry();
    let what = ModExpChunk {
        count: chunk.len(),
        moduli: chunk.len(),
        exponent_bits: job.exponent_bits,
        r2_bits: entry.r2_bits(job.group.bits),
        window: entry.family.best_window(job.exponent_bits),
    };
    let grid = Grid::new(&entry.image, 132);
    let work = entry.family.mod_exp(entry, grid, &what);
    let mut words = vec![u64::MAX; work.moduli.range().end];
    let inputs = Outgoing::nowhere(&mut words);
    job.fill(entry, &chunk, &work, inputs).unwrap();
    (work, words)
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
    let groups = Group::by_width(&batch, HostPool(None));
    assert_eq!(groups.len(), 1);
    let (work, words) = filled(&groups[0], 3, 1..4);

    for number in words[work.base.range()].chunks(8) {
        assert_eq!(number, [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0]);
    }
    for number in words[work.exponent.range()].chunks(8) {
        assert_eq!(number, [5, 0, 0, 0, 0, 0, 0, 0]);
    }
    let records: Vec<_> = words[work.moduli.range()].chunks(8).collect();
    // There is space for three.
    assert_eq!(records.len(), 6);
    assert_eq!(records[4..], [[u64::MAX; 8]; 2]);
    assert_eq!(records[0], [15, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[2], [17, 0, 0, 0, 0, 0, 0, 0]);
    // 2^640 = 16^160 = 1 modulo 15, and (-1)^160 = 1 modulo 17.
    assert_eq!(records[1], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[3], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(words[work.modulus_index.range()], [0, 1]);

    // The launch is allowed once both records have been sent.
    let arguments = work.launches[0].arguments();
    let there = work.moduli.range().start + 4 * 8;
    let is_taken = |sent: usize| {
        let check = || check_indices(arguments, &Loaded::default(), &words[..sent]);
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
    let groups = Group::by_width(&batch, HostPool(None));
    assert_eq!(entry().r2_bits(groups[0].bits), entry().bits);
    let (work, words) = filled(&groups[0], 1, 0..1);
    let mut expected = 1u64;
    for _ in 0..2 * entry().bits {
        expected = expected * 2 % 1_000_003;
    }
    assert_eq!(words[work.moduli.range().start + entry().words()], expected);
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
    let groups = Group::by_width(&batch, HostPool(None));
    let mut out = [BoxedUint::max(512)];
    let mut words = [3, 4, 0, 0, 0, 0, 0, 0];
    job(&groups[0], 1).store(entry(), &(0..1), &mut words, &mut out);
    assert_eq!(out[0].as_words(), [3, 4]);
    assert_eq!(words, [0; 8]);
}

/// Refused instances are recorded, and computed on the host.
#[test]
fn refused_instances_are_computed_on_the_host() {
    let rns = SHIPPED
        .serving(1024)
        .find(|entry| entry.image.key.family == "rns");
    // The modulus of the second instance is the first prime of base A.
    let (sound, refused) = (params(15, 1024), params((1 << 29) - 3, 1024));
    let (base, exponent) = (BoxedUint::from(7u64), BoxedUint::from(2u64));
    let batch = [&sound, &refused, &sound].map(|params| ModExp {
        base: &base,
        exponent: &exponent,
        params: params.as_ref(),
    });
    let groups = Group::by_width(&batch, HostPool(None));
    let job = job(&groups[0], 2);
    let mut words = [[4; 16], [u64::MAX; 16], [4; 16]];
    words
        .iter_mut()
        .step_by(2)
        .for_each(|power| power[1..].fill(0));
    let mut out = [0u64; 3].map(BoxedUint::from);
    let flat = words.as_flattened_mut();
    job.store(rns.unwrap(), &(0..3), flat, &mut out);
    assert!(flat.iter().all(|word| *word == 0));
    let refused = job.refused.into_inner().unwrap();
    assert_eq!(refused, [1]);
    groups[0]
        .only(&refused)
        .compute_on(&Serial, 2, &mut out)
        .unwrap();
    assert_eq!(out, [4u64, 49, 4].map(BoxedUint::from));
}

#[test]
fn instances_of_one_width_make_a_group() {
    let (narrow, wide) = (params(15, 64), params(15, 8192));
    let one = BoxedUint::from(1u64);
    let batch = [&wide, &narrow, &wide].map(|params| ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    });
    let groups = Group::by_width(&batch, HostPool(None));
    let members = groups.iter().map(|group| -> Vec<_> {
        let members = 0..group.len();
        members.map(|member| group.index(member)).collect()
    });
    assert_eq!(members.collect::<Vec<_>>(), [vec![1], vec![0, 2]]);

    let mut out = [10u64, 11, 12].map(BoxedUint::from);
    let Places::At(places) = groups[1].places(&mut out) else {
        panic!("there is another group");
    };
    assert_eq!(*places[0], BoxedUint::from(10u64));
    assert_eq!(*places[1], BoxedUint::from(12u64));
    let narrow = Group::by_width(&batch[1..2], HostPool(None));
    assert!(matches!(narrow[0].places(&mut out[..1]), Places::All([_])));
    groups[1].compute_on(&Serial, 1, &mut out).unwrap();
    assert_eq!(
        out.each_ref().map(BoxedUint::bits_precision),
        [8192, 64, 8192]
    );
    assert_eq!(out[1], BoxedUint::from(11u64));
    for i in [0, 2] {
        assert_eq!(out[i], BoxedUint::from(1u64));
    }
}

/// An error names the instance by its index in the caller's batch.
#[test]
fn errors_of_the_host_have_the_callers_index() {
    let (narrow, wide) = (params(15, 64), params(15, 128 * 256));
    let one = BoxedUint::from(1u64);
    let batch = [&narrow, &narrow, &wide].map(|params| ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    });
    let mut out = [10u64, 11, 12].map(BoxedUint::from);
    let groups = Group::by_width(&batch, HostPool(None));
    let error = groups[1].compute_on(&Serial, 1, &mut out).unwrap_err();
    assert!(
        matches!(error, Error::ModulusWidth { index: 2, .. }),
        "{error}"
    );
}
