//! Tests of the parent module.

use super::super::entry;
use super::*;
use alloc::vec;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Resize, U64};

fn pool() -> ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap()
}

fn params(modulus: u64, bits: u32) -> BoxedMontyParams {
    let modulus = BoxedUint::from(modulus).resize(bits);
    BoxedMontyParams::new(Odd::new(modulus).unwrap())
}

/// Inputs go to their places, padded with zeros, and equal references share a record.
#[test]
fn words_of_a_chunk() {
    let (first, second) = (params(15, 320), params(17, 320));
    let (base, exponent) = (BoxedUint::max(128), BoxedUint::from(5u64));
    let order = [&second, &first, &second, &first];
    let batch = order.map(|params| ModExp {
        base: &base,
        exponent: &exponent,
        params: params.as_ref(),
    });
    let groups = Group::by_width(&batch, 3, 512);
    assert_eq!(groups.len(), 1);
    let (group, entry) = (&groups[0], &entry::ENTRIES[0]);
    let chunk = 1..4;
    let moduli = group.moduli(&chunk);
    assert_eq!(moduli.len(), 2);
    let layout = Layout::new(entry, chunk.len(), moduli.len());
    // What an earlier chunk may have left.
    let mut words = vec![u64::MAX; layout.words()];
    group.fill(&pool(), entry, &chunk, &moduli, &layout, &mut words);

    for place in words[layout.base.clone()].chunks(8) {
        assert_eq!(place, [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0]);
    }
    for place in words[layout.exponent.clone()].chunks(8) {
        assert_eq!(place, [5, 0, 0, 0, 0, 0, 0, 0]);
    }
    let records: Vec<_> = words[layout.params.clone()].chunks(8).collect();
    assert_eq!(records[0], [15, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[2], [17, 0, 0, 0, 0, 0, 0, 0]);
    // 2^640 = 16^160 = 1 modulo 15, and (-1)^160 = 1 modulo 17.
    assert_eq!(records[1], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records[3], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(words[layout.param_index.clone()], [1 << 32, 0]);
}

/// The device gets `2^1024` where the parameters of the batch are too narrow for it.
#[test]
fn narrow_moduli_get_wider_parameters() {
    let params = params(1_000_003, 64);
    let one = BoxedUint::from(1u64);
    let batch = [ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    }];
    let (groups, entry) = (Group::by_width(&batch, 1, 512), &entry::ENTRIES[0]);
    assert_eq!(groups[0].r2_bits(entry), 512);
    let moduli = groups[0].moduli(&(0..1));
    let layout = Layout::new(entry, 1, 1);
    let mut words = vec![0; layout.words()];
    groups[0].fill(&pool(), entry, &(0..1), &moduli, &layout, &mut words);
    let mut expected = 1u64;
    for _ in 0..1024 {
        expected = expected * 2 % 1_000_003;
    }
    assert_eq!(words[layout.params.start + 8], expected);
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
    let (groups, entry) = (Group::by_width(&batch, 1, 512), &entry::ENTRIES[0]);
    let mut wide = BoxedUint::max(512);
    groups[0].store(
        &pool(),
        entry,
        &(0..1),
        &[3, 4, 0, 0, 0, 0, 0, 0],
        &mut [&mut wide],
    );
    assert_eq!(wide.as_words(), [3, 4]);
}

#[test]
fn instances_that_are_too_wide_are_left_out() {
    let (narrow, wide) = (params(15, 64), params(15, 8192));
    let one = BoxedUint::from(1u64);
    let batch = [&wide, &narrow, &wide].map(|params| ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    });
    assert_eq!(wider_than(&batch, 4096), [0, 2]);
    let groups = Group::by_width(&batch, 1, 4096);
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].members, [1]);
}

#[test]
fn words_and_limbs() {
    let value = U64::from(0x0123_4567_89ab_cdefu64);
    let mut words = [u64::MAX; 2];
    copy_in(value.as_limbs(), &mut words);
    assert_eq!(words, [0x0123_4567_89ab_cdef, 0]);
    let mut back = U64::ZERO;
    copy_out(&words, back.as_mut_limbs());
    assert_eq!(back, value);
}
