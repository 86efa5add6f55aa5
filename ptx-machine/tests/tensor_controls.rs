//! Tests of matrix products: the sums, and every rule around them with a kernel that violates it.

use ptx_machine::{Argument, Fault, Global, Launch, Location, Module, RunError, Stop};

const CONTROLS: &str = include_str!("../controls/tensor/tensor.ptx");

const THREADS: usize = 128;
const DEPTH: usize = 32;
const COLUMNS: usize = 8;

fn words(seed: u32, count: usize) -> Vec<u32> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The output of a control and whether all of it is tainted, or the fault that stopped it.
fn run(name: &str, threads: u32, seed: u32) -> Result<(Vec<u32>, bool), Stop> {
    let module = Module::parse(CONTROLS).unwrap();
    let program = module.entry(name).unwrap().decode().unwrap();
    let mut global = Global::default();
    let out = global.uninitialised(16 * THREADS);
    let rows = global.with_bytes(bytes(&words(seed, 4 * THREADS)), true);
    let matrix = global.with_bytes(bytes(&words(!seed, DEPTH * COLUMNS / 4)), false);
    let arguments = [out, rows, matrix].map(Argument::Pointer);
    match program.run(&Launch::new(1, threads), &arguments, &mut global) {
        Ok(_) => {}
        Err(RunError::Stop(stop)) => return Err(stop),
        Err(RunError::Launch(error)) => panic!("{name}: {error}"),
    }
    let out = global.buffer(out);
    let sums = out.bytes().chunks_exact(4);
    let sums = sums.map(|sum| u32::from_le_bytes(sum.try_into().unwrap()));
    Ok((
        sums.collect(),
        out.taint().iter().all(|&taint| taint == 0xff),
    ))
}

/// The sums by definition ("Register fragments and shared memory matrix layouts" in the PTX ISA).
fn expected(seed: u32) -> Vec<u32> {
    let (rows, matrix) = (words(seed, 4 * THREADS), words(!seed, DEPTH * COLUMNS / 4));
    let matrix = bytes(&matrix);
    // For byte `k` of row `row`: its thread, its word, and the byte in the word.
    let left = |row: usize, k: usize| {
        let thread = row / 16 * 32 + row % 8 * 4 + k % 16 / 4;
        let word = row % 16 / 8 + k / 16 * 2;
        u32::from(rows[4 * thread + word].to_le_bytes()[k % 4])
    };
    let right = |k: usize, column: usize| u32::from(matrix[k / 16 * 128 + column * 16 + k % 16]);
    let sum = |index: usize| {
        let (thread, number) = (index / 4, index % 4);
        let row = thread / 32 * 16 + thread % 32 / 4 + number / 2 * 8;
        let column = thread % 4 * 2 + number % 2;
        (0..DEPTH).map(|k| left(row, k) * right(k, column)).sum()
    };
    (0..4 * THREADS).map(sum).collect()
}

/// The first tile of a control with copies, and its barrier.
const TILE: Location = Location::Shared(0);
const COPY_BARRIER: Location = Location::Shared(512);

/// The controls with faults, and the expected faults.
const BROKEN: [(&str, Fault); 26] = [
    ("parted_warp", Fault::NotConverged),
    ("unseen_matrix", Fault::Unseen(Location::Shared(0))),
    ("racing_matrix", Fault::Race(Location::Shared(0))),
    ("unfenced_rows", Fault::Unfenced),
    ("overwritten_rows", Fault::InFlight),
    ("early_sums", Fault::InFlight),
    ("unfinished_product", Fault::InFlight),
    ("secret_matrix", Fault::SecretAddress { bits: 1 }),
    ("secret_sum", Fault::SecretBranch),
    ("swizzled_matrix", Fault::MatrixLayout),
    ("unawaited_copy", Fault::CopyInFlight(TILE)),
    ("unawaited_load", Fault::CopyInFlight(TILE)),
    (
        "awaited_by_another",
        Fault::CopyInFlight(Location::Shared(32)),
    ),
    ("wait_of_one_thread", Fault::NotConverged),
    ("wrong_parity", Fault::NeverCompletes),
    ("endless_wait", Fault::NeverCompletes),
    ("racing_copy", Fault::Race(TILE)),
    ("racing_phase", Fault::Race(COPY_BARRIER)),
    ("copy_under_product", Fault::InFlight),
    ("unseen_source", Fault::Unseen(Location::Variable(0))),
    ("fence_of_one_thread", Fault::Unseen(Location::Variable(0))),
    ("unseen_barrier", Fault::Unseen(COPY_BARRIER)),
    ("copy_over_stores", Fault::Unseen(TILE)),
    ("unfinished_copy", Fault::CopyInFlight(TILE)),
    ("secret_source", Fault::SecretAddress { bits: 16 }),
    ("parted_barrier", Fault::NotConverged),
];

#[test]
fn every_control_is_tested() {
    let module = Module::parse(CONTROLS).unwrap();
    let mut entries: Vec<_> = module.entries().iter().map(|entry| entry.name()).collect();
    let broken = BROKEN.iter().map(|(name, _)| *name);
    let mut tested: Vec<_> = broken
        .chain(["whole_product", "chained_products", "warp_products"])
        .chain(["streamed_products", "late_copy"])
        .collect();
    entries.sort_unstable();
    tested.sort_unstable();
    assert_eq!(entries, tested);
}

#[test]
fn products_are_right() {
    for seed in 1..20 {
        let expected = expected(seed);
        let once = run("whole_product", 128, seed).unwrap();
        assert_eq!(once, (expected.clone(), true));
        assert_eq!(run("late_copy", 128, seed).unwrap(), once);
        let twice = run("chained_products", 128, seed).unwrap().0;
        let streamed = run("streamed_products", 128, seed).unwrap();
        assert_eq!(streamed, (twice.clone(), true));
        let doubled = expected.iter().map(|sum| 2 * sum);
        assert_eq!(twice, doubled.collect::<Vec<_>>());
        // The same with synchronous instructions, which need no warpgroup.
        for threads in [128, 64] {
            let (sums, is_tainted) = run("warp_products", threads, seed).unwrap();
            let count = 4 * threads as usize;
            assert_eq!(sums[..count], twice[..count]);
            assert!(is_tainted || threads < 128);
        }
    }
}

#[test]
fn broken_rules_are_noticed() {
    for (name, fault) in BROKEN {
        match run(name, 128, 1) {
            Ok(_) => panic!("{name} was not noticed"),
            Err(stop) => assert_eq!(stop.fault, fault, "{stop}"),
        }
    }
}

#[test]
fn a_part_of_a_warpgroup_is_noticed() {
    let stop = run("whole_product", 64, 1).expect_err("half a warpgroup");
    assert_eq!(stop.fault, Fault::NotConverged);
}
