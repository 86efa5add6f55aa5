//! Random batches with limbs whose carries run far.

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use super::Backend;
use super::reference::{Instance, check_boxed};
use crate::random::number;

fn instance(limbs: usize) -> impl Strategy<Value = Instance> {
    (number(limbs), number(limbs), number(limbs)).prop_map(|(a, b, mut modulus)| {
        modulus.set_bit(0, true);
        Instance { a, b, modulus }
    })
}

fn batch() -> impl Strategy<Value = (u32, Vec<Instance>)> {
    (1usize..=17).prop_flat_map(|limbs| {
        let instances = prop::collection::vec(instance(limbs), 1..=33);
        (Just(limbs as u32 * 64), instances)
    })
}

pub fn batches<B: Backend>(backend: &B) {
    let persistence = FileFailurePersistence::Direct("../backends/products/regressions.txt");
    let config = Config {
        cases: 192,
        failure_persistence: Some(Box::new(persistence)),
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&batch(), |(width, instances)| {
            check_boxed(backend, width, &instances);
            Ok(())
        })
        .unwrap();
}
