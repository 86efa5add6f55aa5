//! Tests that the machine finds faults, with small kernels that reveal secrets in different ways,
//! and some that do not.

use num_bigint::BigUint;
use ptx_machine::{Argument, Fault, Global, Launch, Location, Module, Outcome, RunError, Stop};

const CONTROLS: &str = include_str!("../controls/controls.ptx");

/// Runs a control on the instances of one warp.
fn run(name: &str) -> Result<Outcome, Stop> {
    run_on(name, 32)
}

/// Runs a control on `count` instances with secret bases, exponents and moduli, and checks its
/// output.
fn run_on(name: &str, count: u32) -> Result<Outcome, Stop> {
    let module = Module::parse(CONTROLS).unwrap();
    let program = module.entry(name).unwrap().decode().unwrap();
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
    let outcome = match program.run(&Launch::new(1, count), &arguments, &mut global) {
        Ok(outcome) => outcome,
        Err(RunError::Stop(stop)) => return Err(stop),
        Err(RunError::Launch(error)) => panic!("{name}: {error}"),
    };
    let powers = global.buffer(out).bytes().chunks(4);
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

/// The controls with leaks, and the expected faults.
const LEAKS: [(&str, Fault); 11] = [
    // Two bits of the digit, times the four bytes of an entry.
    ("gathered_table", SECRET_ENTRY),
    ("moving_bank", SECRET_ENTRY),
    // Two bits of the digit, times the 128 bytes of a row.
    ("lane_private_banks", SECRET_ROW),
    ("shared_bank", SECRET_ROW),
    ("prefetched_entry", SECRET_ROW),
    ("scattered_store", SECRET_ROW),
    ("skipped_zero_digits", Fault::SecretBranch),
    ("secret_loop_bound", Fault::SecretBranch),
    ("loop_on_borrow", Fault::SecretBranch),
    ("secret_shuffle_lane", Fault::SecretLane),
    ("secret_division", Fault::SecretLatency),
];
const SECRET_ENTRY: Fault = Fault::SecretAddress { bits: 0b11 << 2 };
const SECRET_ROW: Fault = Fault::SecretAddress { bits: 0b11 << 7 };

/// Controls that run without a fault.
const CLEAN: [&str; 4] = [
    "scanned_table",
    "scanned_shared_table",
    "uncleared_table",
    "masked_by_borrow",
];

#[test]
fn every_control_is_tested() {
    let module = Module::parse(CONTROLS).unwrap();
    let mut entries: Vec<_> = module.entries().iter().map(|entry| entry.name()).collect();
    let leaks = LEAKS.iter().map(|(name, _)| *name);
    let mut tested: Vec<_> = leaks.chain(CLEAN).chain(["racing_warps"]).collect();
    entries.sort_unstable();
    tested.sort_unstable();
    assert_eq!(entries, tested);
}

#[test]
fn kernels_that_keep_their_secrets_pass() {
    for name in CLEAN {
        let outcome = run(name).unwrap_or_else(|stop| panic!("{name}: {stop}"));
        // A table left in shared memory is reported.
        let left = name == "uncleared_table";
        assert_eq!(outcome.secrets_left_in_shared, left, "{name}");
    }
}

#[test]
fn leaks_are_noticed() {
    for (name, fault) in LEAKS {
        match run(name) {
            Ok(outcome) => panic!("{name} was not noticed: {outcome:?}"),
            Err(stop) => assert_eq!(
                (stop.fault.is_leak(), &stop.fault),
                (true, &fault),
                "{stop}"
            ),
        }
    }
}

/// A secret must not choose an address in shared memory, for a load or a store, even if each lane
/// uses only its own bank.
#[test]
fn secret_rows_of_shared_memory_are_noticed() {
    for (name, opcode) in [
        ("lane_private_banks", "ld.shared.u32"),
        ("scattered_store", "st.shared.u32"),
    ] {
        let stop = run(name).expect_err(name);
        assert!(stop.text.starts_with(opcode), "{stop}");
    }
}

#[test]
fn warps_that_use_the_same_memory_are_noticed() {
    let stop = run_on("racing_warps", 64).expect_err("the race was not noticed");
    let in_shared = matches!(stop.fault, Fault::Race(Location::Shared(_)));
    assert!(in_shared && !stop.fault.is_leak(), "{stop}");
    assert_eq!((stop.warp, stop.lane), (1, Some(0)));
}
