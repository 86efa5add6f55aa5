//! Signals that ask the program to end.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::program::{self, key, start_command, stdout};

/// Time limit for a machine under load.
const PATIENCE: Duration = Duration::from_secs(120);

const SIGNALS: [(&str, i32); 3] = [("HUP", 1), ("INT", 2), ("TERM", 15)];

/// The program with default signal handling, whatever the test runner's is.
fn command() -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    if SIGNALS
        .iter()
        .all(|(_, number)| ignored & (1 << (number - 1)) == 0)
    {
        return Command::new(program::path());
    }
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP,INT,TERM")
        .arg(program::path());
    command
}

/// Starts to sign standard input into `folder`, and waits for the temporary file.
fn start_in(folder: &Path, mut command: Command) -> Child {
    let args = [
        "--key",
        &key("rsa1024"),
        "--input",
        "-",
        "--output",
        "signatures",
        "--quiet",
    ];
    let before = names(folder).len();
    let child = start_command(command.args(args).current_dir(folder));
    let start = Instant::now();
    while names(folder).len() == before {
        assert!(start.elapsed() < PATIENCE, "no temporary file appears");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn send(signal: &str, child: &Child) {
    let kill = [
        "-c",
        "kill -s \"$0\" \"$1\"",
        signal,
        &child.id().to_string(),
    ];
    assert!(Command::new("sh").args(kill).status().unwrap().success());
}

/// Checks that a signal killed the program; a shell then sees 128 plus its number.
fn ended_by(child: Child, number: i32) {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(number), "{:?}", output.status);
    assert!(output.stdout.is_empty());
}

#[test]
fn while_it_waits_for_input() {
    for (name, number) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("signatures"), "old").unwrap();
        let mut child = start_in(folder.path(), command());
        let stdin = child.stdin.take();
        send(name, &child);
        ended_by(child, number);
        drop(stdin);
        assert_eq!(names(folder.path()), ["signatures"], "{name}");
        let file = fs::read_to_string(folder.path().join("signatures"));
        assert_eq!(file.unwrap(), "old", "{name}");
    }
}

#[test]
fn while_it_signs() {
    for (name, number) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start_in(folder.path(), command());
        let mut stdin = child.stdin.take().unwrap();
        // Until the pipe has no reader.
        let endless = thread::spawn(move || while stdin.write_all(&[b'\n'; 4096]).is_ok() {});
        let start = Instant::now();
        let has_written = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries
                .flatten()
                .any(|entry| entry.metadata().unwrap().len() > 0)
        };
        while !has_written() {
            assert!(start.elapsed() < PATIENCE, "nothing is signed");
            thread::sleep(Duration::from_millis(10));
        }
        send(name, &child);
        ended_by(child, number);
        endless.join().unwrap();
        assert!(names(folder.path()).is_empty(), "{name}");
    }
}

/// `nohup` and background jobs ignore signals, and programs that they start must do so too.
#[test]
#[cfg(target_os = "linux")]
fn what_is_ignored_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\""])
        .arg(program::path());
    let mut child = start_in(folder.path(), shell);
    send("HUP", &child);
    send("INT", &child);
    child.stdin.take().unwrap().write_all(b"a\nb\n").unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "");
    let file = fs::read_to_string(folder.path().join("signatures")).unwrap();
    assert_eq!(file.lines().count(), 2);
    assert_eq!(names(folder.path()), ["signatures"]);
}
