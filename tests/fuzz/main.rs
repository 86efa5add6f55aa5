//! Runs the fuzz targets over their committed corpora, and over mutations by a seeded generator.
//! `fuzz/` runs the same targets under libFuzzer, which finds more.

mod encrypted;
mod mutation;
mod targets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use batch_modexp::backend::Serial;
use batch_modexp::rsa::KeyFault;
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, Limb};
use num_bigint::BigUint;
use targets::decryption::Outcome;

use mutation::Mutator;

/// The files of a corpus, sorted by name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let files: Vec<_> = paths
        .into_iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(
        files.len() >= 8,
        "{} has {} files",
        folder.display(),
        files.len()
    );
    files
}

/// The environment variable that multiplies the number of mutations.
const FACTOR: &str = "BATCH_MODEXP_FUZZ_FACTOR";

/// Runs a target over its corpus and `mutations` mutations of it, or more if the environment says
/// so. Saves a failing input in a file.
fn run<T>(target: &str, mutations: usize, body: impl Fn(&[u8]) -> T) -> Vec<T> {
    let corpus = corpus(target);
    let guarded = |input: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| body(input))).unwrap_or_else(|panic| {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-failed"));
            std::fs::write(&path, input).unwrap();
            println!("the input that failed is {}", path.display());
            std::panic::resume_unwind(panic)
        })
    };
    let outcomes = corpus.iter().map(|input| guarded(input)).collect();
    let factor = std::env::var(FACTOR).map_or(1, |text| text.parse().unwrap());
    let mut mutator = Mutator::new(&corpus);
    for _ in 0..factor * mutations {
        guarded(&mutator.next());
    }
    outcomes
}

#[test]
fn key_import() {
    let outcomes = run("key_import", 2000, targets::key_import::run);
    let mut seen: [HashSet<String>; 2] = Default::default();
    for outcome in &outcomes {
        for (seen, verdict) in seen.iter_mut().zip(outcome) {
            seen.insert(format!("{verdict:?}"));
        }
    }
    let expected = [
        "Ok(())",
        "Err(Key(Pem))",
        "Err(Key(Encrypted))",
        "Err(Key(Dp))",
    ];
    for (seen, name) in seen.iter().zip(["PKCS#1", "PKCS#8"]) {
        for expected in expected {
            let is_seen = seen.contains(expected);
            assert!(
                is_seen || (name, expected) == ("PKCS#8", "Err(Key(Dp))"),
                "{name}: {expected}"
            );
        }
    }
    assert!(seen[1].contains("Err(Key(Algorithm))") && seen[1].contains("Err(Key(PssParameters))"));
}

#[test]
fn key_components() {
    use KeyFault::*;
    let outcomes = run("key_components", 1000, targets::key_components::run);
    assert!(outcomes.contains(&None), "no sound key");
    for fault in [
        EvenModulus,
        PublicExponent,
        PrivateExponent,
        Factor,
        EqualFactors,
        Product,
        Exponents,
        ShortPrivateExponent,
        PrimePower,
        Dp,
        Dq,
        Qinv,
    ] {
        assert!(
            outcomes.contains(&Some(batch_modexp::rsa::Error::Key(fault))),
            "{fault:?}"
        );
    }
    let is_size = |outcome: &Option<batch_modexp::rsa::Error>| {
        matches!(outcome, Some(batch_modexp::rsa::Error::KeySize { .. }))
    };
    assert!(outcomes.iter().any(is_size), "no key of a wrong size");
}

#[test]
fn rsasp1() {
    run("rsasp1", 300, targets::rsasp1::run);
}

#[test]
fn decryption() {
    let outcomes = run("decryption", 600, targets::decryption::run);
    for outcome in [
        Outcome::OutOfRange,
        Outcome::Pkcs1v15,
        Outcome::OaepAccepted,
        Outcome::OaepRejected,
        Outcome::OaepFirstOctet,
    ] {
        assert!(outcomes.contains(&outcome), "{outcome:?}");
    }
}

#[test]
fn mod_exp() {
    run("mod_exp", 1000, targets::mod_exp::run);
}

#[test]
fn multi_exp() {
    let outcomes = run("multi_exp", 500, targets::multi_exp::run);
    let is_nontrivial = |outcome: &&Result<BigUint, Error>| {
        outcome
            .as_ref()
            .is_ok_and(|product| *product > BigUint::from(1u8))
    };
    let nontrivial = outcomes.iter().filter(is_nontrivial).count();
    assert!(2 * nontrivial > outcomes.len(), "{outcomes:?}");
    assert!(outcomes.iter().any(Result::is_err), "no bad term");
}

#[test]
fn sign_batch() {
    run("sign_batch", 1000, targets::sign_batch::run);
}

#[test]
fn queue() {
    run("queue", 2000, targets::queue::run);
}

/// A backend whose last result is wrong by one, where possible.
struct OffByOne;

impl BatchModExp<BoxedUint> for OffByOne {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        Serial.batch_mod_exp(batch, exponent_bits, out)?;
        if let Some(last) = out.last_mut() {
            last.as_mut_limbs()[0] ^= Limb::ONE;
        }
        Ok(())
    }
}

/// A control: the reference detects the error, for every batch with a result.
#[test]
fn a_wrong_backend_is_noticed() {
    let (mut noticed, mut right) = (0, 0);
    for input in corpus("mod_exp") {
        targets::mod_exp::run_on(&Serial, &input);
        let run = || targets::mod_exp::run_on(&OffByOne, &input);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(()) => right += 1,
            Err(_) => noticed += 1,
        }
    }
    // Batches without results are errors, or empty.
    assert!(noticed > right, "{noticed} noticed, {right} not");
}
