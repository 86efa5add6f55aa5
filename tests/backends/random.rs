//! Random batches with limbs whose carries run far.

use num_bigint::BigUint;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use super::Backend;
use super::reference::{Instance, check_boxed};

/// A limb that is likely to be an edge case of some radix.
fn limb() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        1 => Just(0),
        1 => Just(1),
        2 => Just(u64::MAX),
        1 => (0u32..64).prop_map(|bit| 1 << bit),
        1 => (0u32..64).prop_map(|bit| u64::MAX << bit),
        1 => (1u32..64).prop_map(|bit| u64::MAX >> bit),
    ]
}

pub fn number(limbs: usize) -> impl Strategy<Value = BigUint> {
    prop::collection::vec(limb(), limbs).prop_map(|limbs| {
        BigUint::from_bytes_le(
            &limbs
                .iter()
                .flat_map(|limb| limb.to_le_bytes())
                .collect::<Vec<_>>(),
        )
    })
}

fn instance(limbs: usize) -> impl Strategy<Value = Instance> {
    (number(limbs), number(limbs), number(limbs)).prop_map(|(base, exponent, mut modulus)| {
        modulus.set_bit(0, true);
        Instance {
            base,
            exponent,
            modulus,
        }
    })
}

fn batch() -> impl Strategy<Value = (u32, u32, Vec<Instance>)> {
    (1usize..=17).prop_flat_map(|limbs| {
        let width = limbs as u32 * 64;
        (
            Just(width),
            0..=width,
            prop::collection::vec(instance(limbs), 1..=17),
        )
    })
}

pub fn batches<B: Backend>(backend: &B) {
    let persistence = FileFailurePersistence::Direct("../backends/regressions.txt");
    let config = Config {
        cases: 96,
        failure_persistence: Some(Box::new(persistence)),
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&batch(), |(width, exponent_bits, instances)| {
            check_boxed(backend, width, exponent_bits, &instances);
            Ok(())
        })
        .unwrap();
}
