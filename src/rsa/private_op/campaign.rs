//! A fault campaign: every kind of fault in every place of the private operation, each in its own
//! batch. No wrong signature may be returned, only items that were hit may fail, and the next call
//! on the same backend must be right. The `rsa` crate provides the right results.
//!
//! `cargo test` runs it once for each place and kind. A longer run, whose report is in
//! `docs/faults.csv`:
//!
//! ```text
//! .ci/evidence faults
//! ```
//!
//! It runs [`report`] with `BATCH_MODEXP_FAULTS`, the number of faults for each backend.
//!
//! In a control without the check, wrong signatures must be returned.

pub(in crate::rsa) mod fault;
mod faulty;
#[cfg(target_os = "linux")]
mod memory;
mod rig;
mod tally;

use alloc::vec::Vec;
use std::{print, println};

use batch_modexp_core::Error;
use batch_modexp_cpu::AnyEngine;

use self::fault::{Form, Place};
use self::faulty::Check;
use self::rig::{Fault, Outcome, Rig};
use self::tally::Tally;
use super::testing::Stage;
use crate::need;

/// Items of a batch: three of one key and two of another, so that their halves fill no vectors.
const ITEMS: usize = 5;

/// Every place with every kind of fault that makes sense there.
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

/// Runs `count` faults, all of [`faults`] in turn. Keys without primes take four times as long, so
/// they are in every fourth round.
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
            // Without the check only numbers above n are rejected.
            Check::Off => outcome != Outcome::Caught || fault.place == Place::Stage(Stage::Results),
        };
        assert!(expected, "{fault:?}: {outcome:?}");
        tally.count(fault.place, fault.kind, outcome);
    }
    tally
}

/// Asserts where faults lead, with the check and without.
fn assert_as_documented(engine: AnyEngine, count: usize) -> (Tally, Tally) {
    let checked = campaign(engine, count, Check::On);
    // The control is shorter, but covers every place.
    let fewer = (count / 10).max(faults().len());
    let unchecked = campaign(engine, fewer, Check::Off);
    for place in faults().into_iter().map(|fault| fault.place) {
        let sum = |tally: &Tally, outcome| tally.sum(Some(place), outcome);
        let caught = sum(&checked, Outcome::Caught);
        match place {
            // Results do not depend on the random numbers of the check.
            Place::Stage(Stage::Masks) => assert_eq!(caught, 0),
            // Every number is a valid blind, except 0 and multiples of a prime.
            Place::Stage(Stage::Blinds) => {}
            // The operation is right for the changed block; but a block above n may fail.
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

/// All engines of this processor. Names the others.
fn engines() -> Vec<AnyEngine> {
    let available = |engine| match engine {
        Err(Error::Unsupported { backend, needs }) => need::available(backend, Err(needs)),
        engine => engine.ok(),
    };
    AnyEngine::each().filter_map(available).collect()
}

#[test]
fn no_fault_makes_a_wrong_signature() {
    for engine in engines() {
        assert_as_documented(engine, faults().len());
    }
}

/// A fault in a verdict withholds a right signature or returns a wrong one. Two faults, in the
/// computation and in the check, are not caught.
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

/// The whole campaign. Prints comma-separated values.
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
