//! Pipes: slow, closed and full ones, and more input than should be in memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::behaviour::expected;
use super::errors::refused_with_line;
use super::program::{self, key, run_with_input, start, stderr, stdout};

/// Time limit for a machine under load.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts to sign standard input to standard output.
fn start_signing(options: &[&str]) -> Child {
    start(
        &[
            &["--key", &key("rsa1024"), "--input", "-", "--quiet"],
            options,
        ]
        .concat(),
    )
}

/// The lines that a program prints, as they arrive.
fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        for line in stdout.lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Each line is answered before the next one is sent, although no batch is ever full.
#[test]
fn a_line_is_signed_before_the_next_one_comes() {
    for options in [
        &[][..],
        &["--flush-after", "0"],
        &["--batch-size", "1", "--flush-after", "4000000000"],
    ] {
        let mut child = start_signing(options);
        let (mut stdin, signatures) = (child.stdin.take().unwrap(), lines(&mut child));
        for message in ["one", "two", "three"] {
            writeln!(stdin, "{message}").unwrap();
            let Ok(signature) = signatures.recv_timeout(PATIENCE) else {
                child.kill().unwrap();
                panic!("{options:?}: no signature of {message:?} comes");
            };
            assert_eq!(signature, expected("rsa1024", &[message.as_bytes()])[0]);
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
        assert!(signatures.recv().is_err());
    }
}

/// With an hour to wait, only a full batch or the end of input starts signing.
#[test]
fn a_full_batch_does_not_wait() {
    let mut child = start_signing(&["--batch-size", "2", "--flush-after", "3600000"]);
    let (mut stdin, signatures) = (child.stdin.take().unwrap(), lines(&mut child));
    let expected = expected("rsa1024", &[b"one", b"two", b"three"]);
    stdin.write_all(b"one\ntwo\nthree\n").unwrap();
    for expected in &expected[..2] {
        assert_eq!(&signatures.recv_timeout(PATIENCE).unwrap(), expected);
    }
    drop(stdin);
    assert_eq!(signatures.recv_timeout(PATIENCE).unwrap(), expected[2]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn long_lines() {
    const MAX_LINE: usize = 16 << 20;
    let mut input = vec![b'x'; MAX_LINE];
    input.push(b'\n');
    let args = ["--key", &key("rsa1024"), "--input", "-"];
    let line = stdout(&run_with_input(&args, &input));
    assert_eq!(
        line.trim_end(),
        expected("rsa1024", &[&input[..MAX_LINE]])[0]
    );

    let output = run_with_input(&args, &[b"short\n", &input[..MAX_LINE], b"x\n"].concat());
    assert_eq!(output.status.code(), Some(2));
    let line = stderr(&output);
    assert_eq!(
        line,
        "error: line 2 of standard input is longer than 16 MiB; is this a file of lines?\n"
    );
}

#[test]
#[cfg(unix)]
fn a_file_without_lines() {
    let words = ["line 1 of /dev/zero", "longer than 16 MiB"];
    let args = ["--key", &key("rsa1024"), "--input", "/dev/zero"];
    refused_with_line(&args, &words);
    let verify = ["verify", "--key", &key("rsa1024"), "--signatures", "-"];
    refused_with_line(&[&verify[..], &args[2..]].concat(), &words);
}

/// With any input rate and any batch size.
#[test]
#[cfg(target_os = "linux")]
fn input_is_not_piled_up_in_memory() {
    const LINES: usize = 512;
    let mut child = start_signing(&["--batch-size", "1000000"]);
    let mut stdin = child.stdin.take().unwrap();
    let signatures = lines(&mut child);
    let mut line = vec![b'x'; 1 << 20];
    line[(1 << 20) - 1] = b'\n';
    for _ in 0..LINES {
        stdin.write_all(&line).unwrap();
    }
    for i in 0..LINES {
        let signature = signatures.recv_timeout(PATIENCE);
        assert!(signature.is_ok(), "{i} of {LINES} signatures came");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: usize = peak
        .unwrap()
        .trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse()
        .unwrap();
    assert!(peak < 300 << 10, "{peak} KiB for {LINES} MiB of input");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Commands that print on standard output, with and without an output file.
fn printers() -> Vec<Vec<String>> {
    let key = key("rsa1024");
    let bench = [
        "bench",
        "--key",
        &key,
        "--count",
        "2",
        "--backend",
        "serial",
    ];
    let sign = ["--key", &key, "--input", "-"];
    let commands = [
        &["--help"][..],
        &["-h"],
        &["--version"],
        &["bench", "--help"],
        &["verify", "--help"],
        &bench,
        &[&bench[..], &["--json"]].concat(),
        &sign,
        &[&sign[..], &["--quiet", "--no-verify"]].concat(),
        &[&sign[..], &["--json", "--output", "/dev/null"]].concat(),
    ];
    commands
        .iter()
        .map(|args| args.iter().map(ToString::to_string).collect())
        .collect()
}

/// Runs all commands with a standard output that fails. Each prints one line with the reason, and
/// exits with status 1.
fn cannot_write(stdout: impl Fn() -> Stdio, reason: &str) {
    for args in printers() {
        let mut command = Command::new(program::path());
        command.args(&args).stdin(Stdio::piped()).stdout(stdout());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // A program that prints its help does not read input.
        let _ = child.stdin.take().unwrap().write_all(b"a\nb\n");
        let output = child.wait_with_output().unwrap();
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        assert!(line.starts_with("error: cannot write "), "{args:?}: {line}");
        assert!(line.contains(reason), "{args:?}: {line}");
    }
}

#[test]
#[cfg(unix)]
fn a_closed_standard_output() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer.into()
    };
    cannot_write(closed, "Broken pipe");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output() {
    let full = || std::fs::File::options().write(true).open("/dev/full");
    cannot_write(|| full().unwrap().into(), "No space left");
}

/// No standard output at all, as with a shell's `>&-`, rather than a pipe without reader. Output to
/// /dev/null still works.
#[test]
#[cfg(target_os = "linux")]
fn no_standard_output() {
    for (redirection, status, line) in [
        (">&-", 1, "error: cannot write to standard output: closed\n"),
        (">/dev/null", 0, ""),
    ] {
        for args in printers() {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]);
            shell.arg(program::path()).args(&args);
            let output = program::run_command(&mut shell, b"a\nb\n");
            let printed = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{args:?}: {printed}");
            assert!(status == 0 || printed == line, "{args:?}: {printed}");
        }
    }
}

/// Output to standard error is lost, but the work is done.
#[test]
#[cfg(unix)]
fn a_closed_standard_error() {
    let mut child = start(&["--key", &key("rsa1024"), "--input", "-"]);
    drop(child.stderr.take());
    child.stdin.take().unwrap().write_all(b"a\n").unwrap();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text.trim_end(), expected("rsa1024", &[b"a"])[0]);
    assert!(child.wait().unwrap().success());
    let mut child = start(&["--frobnicate"]);
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
