//! Tests of bulk copies: what they copy, and rules that no control of matrix products breaks.

use ptx_machine::{Argument, Fault, Global, Launch, Location, Module, Outcome, RunError};

/// `%p1` is set in the first thread only, and `%p2` in none. `%r1` and `%rd2` are secret zeros.
const HEADER: &str = ".version 8.0
.target sm_90
.address_size 64
.global .align 16 .b8 source[64];
.visible .entry k(.param .u64 buffer, .param .u64 secret, .param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 to[64];
    .shared .align 8 .b8 barrier[8];
    ld.param.u64 %rd1, [buffer];
    ld.param.u64 %rd2, [secret];
    ld.param.u64 %rd3, [out];
    ld.global.u32 %r1, [%rd2];
    mov.u32 %r2, %tid.x;
    setp.eq.u32 %p1, %r2, 0;
    setp.ne.u32 %p2, %r2, %r2;
";
const READY: &str = "@%p1 mbarrier.init.shared.b64 [barrier], 1;
    fence.proxy.async;
    bar.sync 0;";
const EXPECT: &str = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [barrier], 16;";
const COPY: &str = "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
const WAIT: &str = "mbarrier.try_wait.parity.shared.b64 %p3, [barrier], 0;";

const TO: Location = Location::Shared(0);
const BARRIER: Location = Location::Shared(64);

/// The word that two warps write to `out`, and its taint; or the fault.
fn run(statements: &[&str]) -> Result<(u8, u8, Outcome), Fault> {
    let text = format!("{HEADER}{}\n}}", statements.join("\n"));
    let module = Module::parse(&text).unwrap();
    let program = module.entry("k").unwrap().decode();
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let mut global = Global::default();
    let buffer = global.with_bytes(vec![7; 64], false);
    let secret = global.with_bytes(vec![0; 16], true);
    let out = global.with_bytes(vec![0; 16], false);
    let arguments = [buffer, secret, out].map(Argument::Pointer);
    match program.run(&Launch::new(1, 64), &arguments, &mut global) {
        Ok(outcome) => {
            let out = global.buffer(out);
            Ok((out.bytes()[0], out.taint()[0], outcome))
        }
        Err(RunError::Stop(stop)) => Err(stop.fault),
        Err(error) => panic!("{error}"),
    }
}

/// Copies with these operands, and reads the copy.
fn copied(operands: &str) -> Result<(u8, u8, Outcome), Fault> {
    let copy = format!("{COPY} {operands};");
    let read = "ld.shared.u32 %r3, [to]; st.global.u32 [%rd3], %r3;";
    run(&[READY, EXPECT, &copy, WAIT, read])
}

#[test]
fn bytes_and_taint_are_copied() {
    let (byte, taint, outcome) = copied("[to], [%rd1+16], 16, [barrier]").unwrap();
    assert_eq!((byte, taint), (7, 0));
    assert!(!outcome.secrets_left_in_shared);
    let (byte, taint, outcome) = copied("[to], [%rd2], 16, [barrier]").unwrap();
    assert_eq!((byte, taint), (0, 0xff));
    assert!(outcome.secrets_left_in_shared);
    let (byte, taint, _) = copied("[to], [source], 16, [barrier]").unwrap();
    assert_eq!((byte, taint), (0, 0));
}

#[test]
fn places_are_checked() {
    let misaligned = Err(Fault::Misaligned(TO));
    for operands in [
        "[to], [source], 8, [barrier]",
        "[to], [source], 0, [barrier]",
    ] {
        assert_eq!(copied(operands), misaligned, "{operands}");
    }
    for (operands, fault) in [
        (
            "[to+8], [source], 16, [barrier]",
            Fault::Misaligned(Location::Shared(8)),
        ),
        (
            "[to], [source+8], 16, [barrier]",
            Fault::Misaligned(Location::Variable(8)),
        ),
        (
            "[to], [source], 16, [barrier+4]",
            Fault::Misaligned(Location::Shared(68)),
        ),
        (
            "[to], [source+64], 16, [barrier]",
            Fault::OutOfBounds(Location::Variable(64)),
        ),
        (
            "[to+80], [source], 16, [barrier]",
            Fault::OutOfBounds(Location::Shared(80)),
        ),
        (
            "[to], [source], 16, [barrier+16]",
            Fault::OutOfBounds(Location::Shared(80)),
        ),
        (
            "[to], [source], 16, [to+32]",
            Fault::CopyBarrier(Location::Shared(32)),
        ),
        (
            "[barrier], [source], 16, [barrier]",
            Fault::CopyBarrier(BARRIER),
        ),
    ] {
        assert_eq!(copied(operands), Err(fault), "{operands}");
    }
}

#[test]
fn secrets_in_operands_are_noticed() {
    let secret = Err(Fault::SecretAddress { bits: 0xffff_ffff });
    for operands in [
        "[%r1], [source], 16, [barrier]",
        "[to], [source], %r1, [barrier]",
        "[to], [source], 16, [%r1]",
    ] {
        assert_eq!(copied(operands), secret, "{operands}");
    }
    for statement in [
        "mbarrier.init.shared.b64 [%r1], 1;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [barrier], %r1;",
        "mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 1;",
        "mbarrier.try_wait.parity.shared.b64 %p3, [barrier], %r1;",
    ] {
        assert_eq!(run(&[READY, statement]), secret, "{statement}");
    }
    let guarded = "setp.eq.u32 %p3, %r1, 0; @%p3 bar.sync 0;";
    assert_eq!(run(&[guarded]), Err(Fault::SecretBranch));
}

/// The body may end without an instruction, which has no line.
#[test]
fn a_block_waits_for_its_copies() {
    let copy = format!("{COPY} [to], [source], 16, [barrier];");
    let in_flight = Err(Fault::CopyInFlight(TO));
    assert_eq!(run(&[READY, EXPECT, &copy]), in_flight);
    assert_eq!(
        run(&[READY, EXPECT, &copy, "bra end; ret; end:"]),
        in_flight
    );
    let by_one = format!("setp.lt.u32 %p3, %r2, 32; @%p3 {WAIT}");
    assert!(run(&[READY, EXPECT, &copy, &by_one]).is_ok());
}

#[test]
fn barriers_are_not_ordinary_memory() {
    let misuse = Err(Fault::CopyBarrier(BARRIER));
    assert_eq!(run(&[WAIT]), misuse);
    assert_eq!(run(&[EXPECT]), misuse);
    assert_eq!(run(&[READY, "st.shared.u32 [barrier], 1;"]), misuse);
    assert_eq!(
        run(&[READY, "@%p1 mbarrier.init.shared.b64 [barrier], 1;"]),
        misuse
    );
    // The second warp does not meet the first, which made the barrier.
    let init = "@%p1 mbarrier.init.shared.b64 [barrier], 1;";
    let before = "mbarrier.try_wait.parity.shared.b64 %p3, [barrier], 1;";
    assert_eq!(run(&[init, before]), Err(Fault::Race(BARRIER)));
}

#[test]
fn stores_to_the_source_want_a_fence() {
    let copy = format!("{COPY} [to], [%rd3], 16, [barrier];");
    let store = "setp.lt.u32 %p3, %r2, 32; @%p3 st.global.u32 [%rd3], 1;";
    for (fence, is_enough) in [
        ("fence.proxy.async;", true),
        ("fence.proxy.async.global;", true),
        ("fence.proxy.async.shared::cta;", false),
        ("@%p1 fence.proxy.async;", false),
        ("@%p2 fence.proxy.async;", false),
    ] {
        let result = run(&[READY, store, fence, "bar.sync 0;", EXPECT, &copy, WAIT]);
        match result {
            Ok(_) => assert!(is_enough, "{fence}"),
            Err(fault) => {
                assert!(matches!(fault, Fault::Unseen(Location::Buffer(_, 0))));
                assert!(!is_enough, "{fence}");
            }
        }
    }
}

#[test]
fn stores_to_the_destination_want_a_fence() {
    let copy = format!("{COPY} [to], [source], 16, [barrier];");
    let store = "@%p1 st.shared.u32 [to], 1;";
    for (fence, is_enough) in [
        ("fence.proxy.async;", true),
        ("fence.proxy.async.shared::cta;", true),
        ("fence.proxy.async.global;", false),
        ("@%p1 fence.proxy.async;", false),
        ("@%p2 fence.proxy.async;", false),
    ] {
        let result = run(&[READY, store, fence, EXPECT, &copy, WAIT]);
        match is_enough {
            true => assert!(result.is_ok(), "{fence}"),
            false => assert_eq!(result, Err(Fault::Unseen(TO)), "{fence}"),
        }
    }
}
