//! Tests of the program with the controls and with invalid input.

mod refused;
mod verdicts;

use std::process::{Command, Output, Stdio};

pub(crate) const CONTROLS: &str = "controls/controls.ptx";
/// The parameters of every control for one warp. Base, exponent and modulus are secret.
pub(crate) const ONE_WARP: &str = "--buffer 0=out:128 --buffer 1=random:128 --buffer 2=random:128 \
                        --buffer 3=random:128 --buffer 4=out:512 --secret 1,2,3";

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptx-machine"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

pub(crate) fn run(args: &str) -> Output {
    program().args(args.split_whitespace()).output().unwrap()
}

/// The exit status, with standard output or standard error. One of the two is empty, and nothing
/// panicked.
pub(crate) fn result(output: &Output) -> (i32, String) {
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    let status = output.status.code().expect("an exit status");
    assert!(stdout.is_empty() || stderr.is_empty(), "{stdout}{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status, stdout + &stderr)
}

pub(crate) fn check(entry: &str, rest: &str) -> (i32, String) {
    result(&run(&format!(
        "check {CONTROLS} --entry {entry} {ONE_WARP} {rest}"
    )))
}

/// Checks that the command line is refused with a message that contains `expected`.
pub(crate) fn refused(args: &str, expected: &str) {
    let (status, text) = result(&run(args));
    assert!(
        status == 2 && text.contains(expected),
        "{args}: {status}, {text}"
    );
}

#[test]
fn help_shows_examples() {
    let (status, text) = result(&run("check --help"));
    assert!(
        status == 0 && text.contains("--buffer 1=random:4096"),
        "{text}"
    );
    let (_, text) = result(&run("--help"));
    assert!(
        text.contains("Exit status: 0 if nothing was found"),
        "{text}"
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_went_away_is_no_panic() {
    let mut child = program()
        .args(["instructions"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
}
