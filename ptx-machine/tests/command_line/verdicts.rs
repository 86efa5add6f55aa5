//! Tests of the verdicts on the controls and on a kernel with numbers.

use std::fs;
use std::path::Path;

use crate::{CONTROLS, ONE_WARP, check, refused, result, run};

#[test]
fn clean_controls() {
    for entry in ["scanned_table", "scanned_shared_table", "uncleared_table"] {
        let (status, text) = check(entry, "");
        let clean = format!("{entry}: clean: ");
        assert!(
            status == 0
                && text.starts_with(&clean)
                && text.contains("no secret reached a branch")
                && text.contains("parameter 0: 128 bytes, holds secrets\n")
                && text.contains("parameter 4: 512 bytes, holds no secrets, not all of it written"),
            "{status}, {text}"
        );
    }
}

#[test]
fn leaking_controls() {
    let address = "an address depends on a secret, in the bits";
    for (entry, fault, instruction) in [
        ("gathered_table", address, "ld.global.u32"),
        ("moving_bank", address, "ld.shared.u32"),
        ("lane_private_banks", address, "ld.shared.u32"),
        ("shared_bank", address, "ld.shared.u32"),
        ("scattered_store", address, "st.shared.u32"),
        ("skipped_zero_digits", "a branch or guard depends", "@%p"),
        ("secret_loop_bound", "a branch or guard depends", "@%p"),
        ("secret_shuffle_lane", "the lanes that take part", "shfl"),
        ("secret_division", "the running time depends", "rem.u32"),
    ] {
        let (status, text) = check(entry, "");
        let lines: Vec<_> = text.lines().collect();
        let [found, place, lanes] = lines[..] else {
            panic!("{entry}: {text}");
        };
        assert_eq!(status, 1, "{entry}");
        assert!(found.starts_with(&format!("{entry}: {fault}")), "{found}");
        assert_eq!(lanes, "  block 0, warp 0, lanes of threads 0 to 31");
        // The reported line of the file is the quoted one.
        let (file, rest) = place.trim().split_once(':').unwrap();
        let (line, quoted) = rest.split_once(": ").unwrap();
        let ptx = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let line = ptx.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, format!("{quoted};"), "{entry}");
        assert!(quoted.starts_with(instruction), "{quoted}");
    }
}

#[test]
fn other_findings() {
    let (status, text) = check("uncleared_table", "--wiped shared,4");
    assert_eq!(status, 1);
    assert!(text.starts_with("uncleared_table: secrets are left in shared memory\n"));
    let (status, text) = check("scanned_shared_table", "--wiped shared,4");
    assert_eq!(status, 0, "{text}");
    let (status, text) = check("scanned_table", "--wiped 0");
    assert_eq!(status, 1);
    assert!(text.starts_with("scanned_table: secrets are left in the buffer of parameter 0\n"));

    for (secret, expected) in [(1, 0), (2, 1)] {
        let (status, text) = result(&run(&format!(
            "check controls/tensor/tensor.ptx --entry streamed_products --threads 128 --buffer 0=out:2048 \
             --buffer 1=random:2048 --buffer 2=random:256 --secret {secret} --wiped variables"
        )));
        let is_found = text.contains("secrets are left in variables of the module");
        assert_eq!((status, is_found), (expected, expected == 1), "{text}");
    }

    let twice = ONE_WARP.replace("128", "256");
    let racing = format!("check {CONTROLS} --entry racing_warps --threads 64 {twice}");
    let (status, text) = result(&run(&racing));
    assert!(
        status == 1 && text.contains("two warps race, at byte 128 of shared memory"),
        "{text}"
    );
    assert!(text.contains("warp 1, lane 0 (thread 32)"), "{text}");

    let short = ONE_WARP.replace("1=random:128", "1=random:64");
    let outside = format!("check {CONTROLS} --entry scanned_table {short}");
    let (status, text) = result(&run(&outside));
    assert!(
        status == 1
            && text.contains("an access out of bounds, at byte 64 of buffer 1")
            && text.contains("lane 16 (thread 16)")
            && text.contains("buffer 1 is that of parameter 1"),
        "{text}"
    );

    let (status, text) = check("scanned_table", "--max-steps 100");
    assert!(
        status == 1 && text.contains("more steps than the launch allows"),
        "{text}"
    );
}

#[test]
fn without_secrets_nothing_is_called_clean() {
    let (buffers, _) = ONE_WARP.split_once(" --secret").unwrap();
    let public = format!("check {CONTROLS} --entry gathered_table {buffers}");
    let (status, text) = result(&run(&public));
    assert!(
        status == 0 && text.contains("no buffer was secret") && !text.contains("clean"),
        "{text}"
    );
}

#[test]
fn a_kernel_with_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = folder.path().join("kernel.ptx");
    fs::write(
        &kernel,
        ".version 7.0\n.target sm_70\n.address_size 64\n.extern .shared .align 4 .b8 dynamic[];
.visible .entry sum(.param .u64 out, .param .u64 in, .param .u32 a, .param .u64 b, .param .s8 c)
.reqntid 64, 1, 1
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    ld.param.u32 %r1, [a];
    ld.param.u64 %rd3, [b];
    ld.param.s8 %r2, [c];
    ld.global.u64 %rd4, [%rd2];
    add.s64 %rd4, %rd4, %rd3;
    cvt.u64.u32 %rd5, %r1;
    add.s64 %rd4, %rd4, %rd5;
    cvt.s64.s32 %rd5, %r2;
    add.s64 %rd4, %rd4, %rd5;
    mov.u32 %r3, dynamic;
    st.global.u64 [%rd1], %rd4;
    div.u64 %rd4, %rd4, 3;
    ret;
}",
    )
    .unwrap();
    let input = folder.path().join("input");
    fs::write(&input, 7u64.to_le_bytes()).unwrap();
    let (kernel, input) = (kernel.display(), input.display());

    let (status, text) = result(&run(&format!("list {kernel}")));
    assert_eq!(
        (status, text.as_str()),
        (
            0,
            "sum
  threads in a block: exactly 64 threads
  shared memory: 0 bytes, and dynamic shared memory
  parameter 0: u64 out
  parameter 1: u64 in
  parameter 2: u32 a
  parameter 3: u64 b
  parameter 4: s8 c
"
        )
    );
    let numbers = "--arg 2=0x10 --arg 3=-1 --arg 4=-128";
    let buffers = format!("--buffer 0=out:8 --buffer 1=file:{input}");
    let (status, text) = result(&run(&format!("check {kernel} {numbers} {buffers}")));
    assert!(status == 0 && text.contains("32 steps"), "{text}");
    let (status, text) = result(&run(&format!(
        "check {kernel} {numbers} {buffers} --secret 1"
    )));
    assert!(
        status == 1 && text.contains("running time") && text.contains("div.u64"),
        "{text}"
    );
    for (rest, expected) in [
        ("--arg 2=1 --arg 3=1 --arg 4=256", "256 does not fit s8"),
        (
            "--arg 2=-2147483649 --arg 3=1 --arg 4=1",
            "does not fit u32",
        ),
        (
            &format!("{numbers} --threads 32"),
            "the kernel takes exactly 64 threads in a block, not 32",
        ),
    ] {
        refused(&format!("check {kernel} {buffers} {rest}"), expected);
    }
    refused(
        &format!("check {kernel} {numbers} --buffer 0=out:8 --buffer 2=out:8"),
        "--buffer",
    );
}
