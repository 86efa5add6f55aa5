//! Faults in the memory of a device between launches. They hit every argument of every kernel of
//! the private operation, each in its own item. No wrong result may be returned, no other item may
//! fail, and the next call must be right.
//!
//! Registers and ladder tables, which exist only while a kernel runs, cannot be reached this way.
//! For the check a fault there equals one in the kernel's output.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::num::NonZeroUsize;
use std::println;
use std::sync::Mutex;

use chacha20::ChaCha20Rng;
use rand_core::Rng;

use super::*;
use crate::backend::cuda::crt::Injection;
use crate::backend::cuda::runtime::launch::Part;
use crate::backend::cuda::runtime::slot::InjectionPoint;

/// Enough items for the device to blind them itself, with as many threads of the host.
const ITEMS: usize = 8192;
const THREADS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// Items in a group; each is hit in another way, and the first is left alone.
const GROUP: usize = 8;

/// The least number of faults.
const FAULTS: usize = 100_000;

/// Counts of one place: items hit, and faults caught.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    hit: usize,
    caught: usize,
}

/// Damages all items of each group in `words` except the first; each item has `size` words.
fn damage(words: &mut [u64], size: usize, random: &mut ChaCha20Rng) {
    for group in words.chunks_mut(GROUP * size) {
        if group.len() < GROUP * size {
            break;
        }
        let mut below = |count: usize| (random.next_u64() % count as u64) as usize;
        let mut items: Vec<&mut [u64]> = group.chunks_mut(size).collect();
        // A flipped bit, words of zeros, ones or random bits, and an unwritten number.
        items[1][below(size)] ^= 1 << below(64);
        items[2][below(size)] = 0;
        items[3][below(size)] = u64::MAX;
        items[4].fill(0);
        // Two items are swapped, or one is copied over the other.
        let (fifth, sixth) = items[5..7].split_at_mut(1);
        match below(2) {
            0 => fifth[0].swap_with_slice(sixth[0]),
            _ => fifth[0].copy_from_slice(sixth[0]),
        }
        let at = below(size);
        items[7][at] = random.next_u64();
    }
}

/// Hits one argument of one launch in each chunk, and records which items have changed.
fn injection(step: usize, argument: usize, seed: u64, hit: &Arc<Mutex<Vec<usize>>>) -> Injection {
    let hit = hit.clone();
    Arc::new(move |chunk, point: &InjectionPoint<'_>| {
        let (true, Some(part)) = (point.step == step, point.part(argument)) else {
            return;
        };
        if point.is_indices(argument) {
            return;
        }
        let mut random = ChaCha20Rng::seed_from_u64(seed ^ chunk.start as u64);
        point.change(part, |words| {
            let before = words.to_vec();
            // Arguments padded with unused items have as many words an item as a number modulo n.
            let size = match words.len() % chunk.len() {
                0 => words.len() / chunk.len(),
                _ => 2048 / 64,
            };
            let words = &mut words[..chunk.len() * size];
            damage(words, size, &mut random);
            let both = words.chunks(size).zip(before.chunks(size));
            let changed = both.enumerate().filter(|(_, (new, old))| new != old);
            let items = changed.map(|(item, _)| chunk.start + item);
            hit.lock().unwrap().extend(items);
        });
    })
}

fn with_injection<'a>(cuda: &'a Cuda, injection: &'a Injection) -> Tampered<'a> {
    let tampering = Tampering {
        injection: Some(injection),
        ..Tampering::default()
    };
    Tampered(cuda, tampering)
}

/// Compares results with the right ones, and counts.
fn count(results: &[Octets], right: &[Octets], hit: &[usize]) -> Tally {
    let mut was_hit = vec![false; results.len()];
    hit.iter().for_each(|&item| was_hit[item] = true);
    let mut tally = Tally {
        hit: hit.len(),
        caught: 0,
    };
    for (item, passed) in passed(results).into_iter().enumerate() {
        match passed {
            true => assert_eq!(*value(&results[item]), *value(&right[item % 64])),
            false => {
                assert!(was_hit[item], "item {item} failed, and was not hit");
                tally.caught += 1;
            }
        }
    }
    tally
}

#[test]
fn faults_between_launches_fail_their_items_alone() {
    let Some(cuda) = gpu() else { return };
    let cuda = cuda.with_host_threads(THREADS).unwrap();
    let keys = &keys()[2..3];
    let right = run(&Serial, keys, 64, false);
    let mut tallies = BTreeMap::<_, Tally>::new();
    let mut sum = 0;
    for seed in 0.. {
        for blinded in [false, true] {
            // More steps and arguments than exist.
            for (step, argument) in (0..6).flat_map(|step| (0..6).map(move |i| (step, i))) {
                let hit = Arc::default();
                let injection = injection(step, argument, seed, &hit);
                let results = run(&with_injection(&cuda, &injection), keys, ITEMS, blinded);
                let hit = core::mem::take(&mut *hit.lock().unwrap());
                let tally = count(&results, &right, &hit);
                if tally.hit > 0 {
                    let total = tallies.entry((blinded, step, argument)).or_default();
                    total.hit += tally.hit;
                    total.caught += tally.caught;
                    sum += tally.hit;
                }
            }
            let later = run(&cuda, keys, ITEMS, blinded);
            assert_eq!(count(&later, &right, &[]).caught, 0);
        }
        if sum >= FAULTS {
            break;
        }
    }
    println!("blinded,launch,argument,faults,caught");
    for ((blinded, step, argument), Tally { hit, caught }) in &tallies {
        println!("{blinded},{step},{argument},{hit},{caught}");
    }
    // Faults that the kernel overwrites are harmless; most others are not.
    let harmful = |tally: &&Tally| tally.caught > tally.hit / 2;
    let launches = |blinded| {
        let here = tallies
            .iter()
            .filter(|(place, tally)| place.0 == blinded && harmful(tally));
        let mut launches: Vec<_> = here.map(|((_, step, _), _)| *step).collect();
        launches.dedup();
        launches
    };
    // Halves, recombination, product and output; with blinding first.
    assert_eq!(launches(false), [0, 1, 2, 3]);
    assert_eq!(launches(true), [0, 1, 2, 3, 4]);
}

/// With the record of another key, an item's result is right for that key.
#[test]
fn exchanged_indices_are_faults() {
    let Some(cuda) = gpu() else { return };
    // Several devices might each have only one of the keys.
    let first = cuda.devices().next().unwrap().ordinal();
    let cuda = Cuda::with_devices(&[first]).unwrap();
    let other = include_str!("../../../../../tests/keys/rsa2048-pkcs8.pem");
    let other = PrivateKey::from_pkcs8_pem(other).unwrap();
    let keys = [keys()[2].clone(), KeyHandle::new(&other).unwrap()];
    // Few enough items for one chunk.
    let items = 512;
    let right = run(&Serial, &keys, 64, false);
    for (step, blinded) in (0..3).flat_map(|step| [(step, false), (step, true)]) {
        let exchanged = Arc::new(Mutex::new(0));
        let injection: Injection = {
            let exchanged = exchanged.clone();
            Arc::new(move |_, point: &InjectionPoint<'_>| {
                if let (true, Some(part)) = (point.step == step, indices(point)) {
                    point.change(part, |words| {
                        let (first, second) = words.split_at_mut(words.len() / 2);
                        first.swap_with_slice(second);
                        let changed = first.iter().zip(second.iter()).filter(|(a, b)| a != b);
                        *exchanged.lock().unwrap() += 4 * changed.count();
                    });
                }
            })
        };
        let results = run(&with_injection(&cuda, &injection), &keys, items, blinded);
        let failed = count(&results, &right, &(0..items).collect::<Vec<_>>()).caught;
        assert_eq!((failed, *exchanged.lock().unwrap()), (items, items));
    }
}

/// The part with the indices of records that the next launch reads.
fn indices(point: &InjectionPoint<'_>) -> Option<Part> {
    let argument = (0..9).find(|&argument| point.is_indices(argument))?;
    point.part(argument)
}

/// A key that changes on the device never gives a wrong result, and the next call is right.
#[test]
fn keys_that_change_on_the_device_are_faults() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    let right = run(&Serial, keys, 64, false);
    // p, q, their exponents, qInv and constants; n and its constant.
    let words = 11 * 2048 / 128;
    let mut all_failed = 0;
    for word in (0..words).step_by(7) {
        for blinded in [false, true] {
            let injection: Injection = Arc::new(move |chunk, point: &InjectionPoint<'_>| {
                if (point.step, chunk.start) == (0, 0) {
                    let records = point.records();
                    assert_eq!(records.len(), words);
                    point.change(records, |record| record[word] ^= 1 << (word % 64));
                }
            });
            let results = run(&with_injection(&cuda, &injection), keys, 64, blinded);
            let tally = count(&results, &right, &(0..64).collect::<Vec<_>>());
            all_failed += usize::from(tally.caught == 64);
            let later = run(&cuda, keys, 64, blinded);
            assert_eq!(count(&later, &right, &[]).caught, 0, "word {word}");
        }
    }
    assert!(all_failed > words / 7);
}
