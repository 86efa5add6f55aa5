//! Tests of the threads and of the copies.

use super::*;
use alloc::vec;
use crypto_bigint::U64;

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

#[test]
fn indices_share_words() {
    let mut words = [u64::MAX; 2];
    write_indices([7, 8, 9].into_iter(), &mut words);
    assert_eq!(words, [7 | 8 << 32, 9]);
}

#[test]
fn every_place_gets_its_number() {
    let workers = Workers::start(3.try_into().unwrap()).unwrap();
    for threads in [HostPool(None), HostPool(Some(&workers))] {
        for len in [0, 3, 5 * COPIED_AT_A_TIME] {
            let (mut places, mut words) = (vec![0; len], (0..2 * len as u64).collect());
            let words: &mut Vec<u64> = &mut words;
            threads.each_with_number(&mut places, words, 2, |place, number| {
                assert_eq!(number[0] + 1, number[1]);
                *place = number[0];
            });
            assert!(places.into_iter().eq((0..len as u64).map(|i| 2 * i)));
            assert!(words.iter().all(|&word| word == 0));
        }
    }
}

/// Results are in the order of the items, whichever thread computes them, and a panic reaches
/// the caller.
#[test]
fn items_keep_their_order() {
    let workers = Workers::start(3.try_into().unwrap()).unwrap();
    for threads in [HostPool(None), HostPool(Some(&workers))] {
        for len in [0, 1, 100] {
            let squares = threads.map_items((0..len).collect(), |i: i32| i * i);
            assert!(squares.into_iter().eq((0..len).map(|i| i * i)));
        }
        let panicking = || threads.each_item(vec![1, 2, 3], |i| assert!(i != 2));
        let panic = std::panic::catch_unwind(core::panic::AssertUnwindSafe(panicking));
        assert!(panic.is_err());
    }
}

#[test]
fn numbers_are_as_by_ordinary_stores() {
    let limbs = [1, 2, 3, 4, 5].map(|i| Limb(Limb::MAX.0 - i));
    for len in [0, 1, 5, 8] {
        let [mut expected, mut words] = [7; 2].map(|word| vec![word; len]);
        copy_in(&limbs, &mut expected);
        NonTemporal::with(|stores| stores.copy_in(&limbs, &mut words));
        assert_eq!(words, expected);
    }
}
