//! Does the machine notice what it must? Small kernels that give their secrets away, each in its own way,
//! and two that do not.

use num_bigint::BigUint;

use super::fault::{Fault, Stop};
use super::machine::{self, Argument, Launch, Outcome};
use super::memory::Global;

const CONTROLS: &str = include_str!("controls.ptx");

/// Runs a control on the instances of one warp.
fn run(name: &str) -> Result<Outcome, Stop> {
    run_on(name, 32)
}

/// Runs a control on `count` instances with bases, exponents and moduli secret, and compares what it wrote.
fn run_on(name: &str, count: u32) -> Result<Outcome, Stop> {
    let programs = machine::load(CONTROLS).unwrap();
    let program = programs
        .iter()
        .find(|program| program.name == name)
        .unwrap();
    let bases: Vec<u32> = (0..count).map(|i| 2 + 5 * i).collect();
    let exponents: Vec<u32> = (0..count).map(|i| (i * 0x0743) & 0xffff).collect();
    let moduli: Vec<u32> = (0..count).map(|i| 0xfff1 - 2 * i).collect();

    let mut global = Global::default();
    let out = global.uninitialised(4 * count as usize);
    let scratch = global.uninitialised(16 * count as usize);
    let mut secret = |words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        Argument::Pointer(global.with_bytes(bytes.collect(), true))
    };
    let arguments = [
        Argument::Pointer(out),
        secret(&bases),
        secret(&exponents),
        secret(&moduli),
        Argument::Pointer(scratch),
    ];
    let launch = Launch {
        blocks: 1,
        threads_per_block: count,
        dynamic_shared: 0,
    };
    let outcome = machine::run(program, launch, &arguments, &mut global)?;
    let powers = global.buffer(out).bytes.chunks(4);
    for (lane, power) in powers.enumerate() {
        let [base, exponent, modulus] =
            [bases[lane], exponents[lane], moduli[lane]].map(BigUint::from);
        assert_eq!(
            BigUint::from_bytes_le(power),
            base.modpow(&exponent, &modulus),
            "{name}, lane {lane}"
        );
    }
    Ok(outcome)
}

fn fault(name: &str) -> Fault {
    match run(name) {
        Ok(outcome) => panic!("{name} was not noticed: {outcome:?}"),
        Err(stop) => {
            println!("{name}: {stop}");
            stop.fault
        }
    }
}

#[test]
fn kernels_that_keep_their_secrets_pass() {
    for name in ["scanned_table", "lane_private_banks"] {
        let outcome = run(name).unwrap_or_else(|stop| panic!("{name}: {stop}"));
        assert!(!outcome.secrets_left_in_shared, "{name}");
    }
}

#[test]
fn a_table_left_in_shared_memory_is_reported() {
    let outcome = run("uncleared_table").unwrap_or_else(|stop| panic!("{stop}"));
    assert!(outcome.secrets_left_in_shared);
}

#[test]
fn a_gathered_table_is_noticed() {
    // Two bits of the digit, times the four bytes of an entry.
    assert_eq!(
        fault("gathered_table"),
        Fault::SecretAddress { bits: 0b1100 }
    );
}

#[test]
fn a_digit_that_moves_the_bank_is_noticed() {
    assert_eq!(fault("moving_bank"), Fault::SecretAddress { bits: 0b1100 });
}

#[test]
fn lanes_that_share_a_bank_are_noticed() {
    assert_eq!(fault("shared_bank"), Fault::SecretBankConflict);
}

#[test]
fn skipped_zero_digits_are_noticed() {
    assert_eq!(fault("skipped_zero_digits"), Fault::SecretBranch);
}

#[test]
fn a_loop_bound_that_is_secret_is_noticed() {
    assert_eq!(fault("secret_loop_bound"), Fault::SecretBranch);
}

#[test]
fn a_shuffle_from_a_secret_lane_is_noticed() {
    assert_eq!(fault("secret_shuffle_lane"), Fault::SecretLane);
}

#[test]
fn a_division_of_a_secret_is_noticed() {
    assert_eq!(fault("secret_division"), Fault::SecretLatency);
}

#[test]
fn warps_that_use_the_same_memory_are_noticed() {
    let stop = run_on("racing_warps", 64).expect_err("the race was not noticed");
    assert!(matches!(stop.fault, Fault::Race { .. }), "{stop}");
}
