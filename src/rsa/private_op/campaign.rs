//! A fault campaign: faults of all kinds in all places of the private operation, each in a batch of its own that is signed
//! from message to signature. No wrong signature may leave, only lanes that were hit may fail, and the next call on the
//! same backend must be right. What is right, the `rsa` crate says.
//!
//! `cargo test` does it once for each place and kind. More of it, with a report that ends up in `docs/faults.csv`:
//!
//! ```text
//! .ci/evidence faults
//! ```
//!
//! which runs [`report`] with `BATCH_MODEXP_FAULTS`, the number of faults for each backend.
//!
//! In a control nothing is checked; there wrong signatures must leave.

pub(in crate::rsa) mod fault;
mod faulty;
#[cfg(target_os = "linux")]
mod memory;
mod rig;
mod tally;

use alloc::vec::Vec;
use std::{print, println};

use batch_modexp_cpu::AnyEngine;

use self::fault::{Form, Place};
use self::faulty::Check;
use self::rig::{Fault, Outcome, Rig};
use self::tally::Tally;
use super::testing::Stage;
use crate::need;

/// Lanes of a batch: three of one key and two of another, whose halves fill no number of vectors.
const LANES: usize = 5;

/// Every place, with every kind of fault that makes sense there.
fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    for form in [Form::Crt, Form::Plain] {
        for blinded in [true, false] {
            for place in Place::all(form, blinded) {
                faults.extend(place.kinds().iter().map(|&kind| Fault {
                    form,
                    blinded,
                    place,
                    kind,
                    seed: 0,
                }));
            }
        }
    }
    faults
}

/// All of [`faults`] in turn, `count` in total. Keys without primes take four times as long, and come in every fourth
/// round.
fn campaign(engine: AnyEngine, count: usize, check: Check) -> Tally {
    let (crt, plain) = (Rig::new(Form::Crt), Rig::new(Form::Plain));
    let all = faults();
    let rounds = (0..).flat_map(|round| all.iter().map(move |fault| (round, fault)));
    let rounds = rounds.filter(|(round, fault)| fault.form == Form::Crt || round % 4 == 0);
    let rounds =
        rounds.filter(|(_, fault)| check == Check::On || fault.place.makes_wrong_results());
    let mut tally = Tally::default();
    for (seed, (_, fault)) in (0..).zip(rounds).take(count) {
        let fault = Fault { seed, ..*fault };
        let rig = match fault.form {
            Form::Crt => &crt,
            Form::Plain => &plain,
        };
        let outcome = rig.run(&engine, &fault, check);
        let expected = match check {
            Check::On => outcome != Outcome::Escaped,
            // Nobody finds anything but numbers that are not below n.
            Check::Off => outcome != Outcome::Caught || fault.place == Place::Stage(Stage::Results),
        };
        assert!(expected, "{fault:?}: {outcome:?}");
        tally.count(fault.place, fault.kind, outcome);
    }
    tally
}

/// Where a fault leads, with the check and without.
fn assert_as_documented(engine: AnyEngine, count: usize) -> (Tally, Tally) {
    let checked = campaign(engine, count, Check::On);
    // The control is shorter, but sees every place too.
    let fewer = (count / 10).max(faults().len());
    let unchecked = campaign(engine, fewer, Check::Off);
    for place in faults().into_iter().map(|fault| fault.place) {
        let sum = |tally: &Tally, outcome| tally.sum(Some(place), outcome);
        let caught = sum(&checked, Outcome::Caught);
        match place {
            // Whatever random numbers they are, results are the same.
            Place::Stage(Stage::Masks) => assert_eq!(caught, 0),
            // All numbers but 0 and the multiples of a prime will do.
            Place::Stage(Stage::Blinds) => {}
            // The operation is right, for what it got; but a block that is not below n any more may fail.
            Place::Block => assert!(sum(&checked, Outcome::OtherBlock) > 0),
            _ => assert!(caught > 0, "{place:?}"),
        }
        if place.makes_wrong_results() {
            assert!(sum(&unchecked, Outcome::Escaped) > 0, "{place:?}");
        }
    }
    assert_eq!(checked.sum(None, Outcome::Escaped), 0);
    (checked, unchecked)
}

/// The backends of the host that this processor has.
fn engines() -> Vec<AnyEngine> {
    let fma = need::available("fma", AnyEngine::fma());
    let ifma = need::available("ifma", AnyEngine::ifma());
    [Some(AnyEngine::Serial), fma, ifma]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn no_fault_makes_a_wrong_signature() {
    for engine in engines() {
        assert_as_documented(engine, faults().len());
    }
}

/// A verdict that a fault turns is a right signature withheld, or a wrong one that leaves: one fault in the
/// computation and one in the check are too many.
#[test]
fn two_faults_of_which_one_hits_the_verdict_are_not_caught() {
    let rig = Rig::new(Form::Crt);
    let fault = |place, kind| Fault {
        form: Form::Crt,
        blinded: true,
        place,
        kind,
        seed: 1,
    };
    let lost = fault(Place::Stage(Stage::Verdicts), fault::Kind::Lost);
    assert_eq!(
        rig.run(&AnyEngine::fastest(), &lost, Check::On),
        Outcome::Caught
    );
    let half = fault(Place::Stage(Stage::Powers), fault::Kind::Bit);
    assert_eq!(
        rig.run(&AnyEngine::fastest(), &half, Check::On),
        Outcome::Caught
    );
    assert_eq!(
        rig.run(&AnyEngine::fastest(), &half, Check::Off),
        Outcome::Escaped
    );
}

/// The whole campaign. Prints lines of comma-separated values.
#[test]
#[ignore = "takes minutes; .ci/evidence faults runs it"]
fn report() {
    let count = std::env::var("BATCH_MODEXP_FAULTS");
    let count = count.map_or(100_000, |count| count.parse().expect("a number of faults"));
    println!("\n{}", Tally::TITLES);
    for engine in engines() {
        let (checked, unchecked) = assert_as_documented(engine, count);
        print!("{}", checked.csv(engine.name(), "on"));
        print!("{}", unchecked.csv(engine.name(), "off"));
    }
}
