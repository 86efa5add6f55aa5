//! The output must not be an input file.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::program::{self, key, run_with_input, stderr, stdout};

/// A folder with the file `messages`, links to it, and the program's messages.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("messages"), "a\nb\n").unwrap();
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs `command`, and expects the error that `option` reads the output.
    fn refuses(&self, command: &mut Command, option: &str) {
        let output = command.output().unwrap();
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(&format!("which {option} reads")), "{line}");
        assert_eq!(fs::read(self.path("messages")).unwrap(), b"a\nb\n");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program::path());
        command.args(["--key", &key("rsa1024")]).args(args);
        command.current_dir(&self.0);
        command
    }
}

#[test]
fn under_any_name() {
    let folder = Folder::new();
    symlink("messages", folder.path("link")).unwrap();
    symlink("link", folder.path("link to a link")).unwrap();
    fs::hard_link(folder.path("messages"), folder.path("hard link")).unwrap();
    let absolute = folder.path("messages");
    let names = [
        "messages",
        "./messages",
        &absolute,
        "link",
        "link to a link",
        "hard link",
    ];
    for name in names {
        folder.refuses(
            &mut folder.command(&["--input", "messages", "--output", name]),
            "--input",
        );
        folder.refuses(
            &mut folder.command(&["--input", name, "--output", "messages"]),
            "--input",
        );
    }
}

#[test]
fn through_standard_input_and_output() {
    let folder = Folder::new();
    let mut command = folder.command(&["--input", "-", "--output", "messages"]);
    command.stdin(File::open(folder.path("messages")).unwrap());
    folder.refuses(&mut command, "--input");

    // Otherwise it would sign its own signatures without end.
    let messages = File::options().append(true).open(folder.path("messages"));
    let mut command = folder.command(&["--input", "messages"]);
    command.stdout(Stdio::from(messages.unwrap()));
    folder.refuses(&mut command, "--input");
}

#[test]
fn keys_and_passphrases() {
    let folder = Folder::new();
    fs::copy(key("rsa1024"), folder.path("key")).unwrap();
    let mut command = Command::new(program::path());
    command.current_dir(&folder.0);
    folder.refuses(
        command.args(["--key", "key", "--input", "messages", "--output", "key"]),
        "--key",
    );
    fs::write(folder.path("passphrase"), "secret\n").unwrap();
    let args = ["--input", "messages", "--passphrase-file", "passphrase"];
    let args = [&args[..], &["--output", "passphrase"]].concat();
    folder.refuses(&mut folder.command(&args), "--passphrase-file");
}

/// A check prints what fails. If that is appended to its input, it is read again.
#[test]
fn of_a_check_that_prints_what_fails() {
    let folder = Folder::new();
    fs::write(folder.path("signatures"), "00\n00\n").unwrap();
    for (name, option) in [("messages", "--input"), ("signatures", "--signatures")] {
        let mut command = Command::new(program::path());
        command.args(["verify", "--key", &key("rsa1024"), "--input", "messages"]);
        command.args(["--signatures", "signatures"]);
        command.current_dir(&folder.0);
        let out = File::options().append(true).open(folder.path(name));
        command.stdout(Stdio::from(out.unwrap()));
        folder.refuses(&mut command, option);
    }
}

/// The running times that `throughput --tune` measured.
#[test]
fn calibrations() {
    let folder = Folder::new();
    fs::write(folder.path("times"), "times\n").unwrap();
    let args = ["--input", "messages", "--calibration", "times"];
    let args = [&args[..], &["--output", "times"]].concat();
    folder.refuses(&mut folder.command(&args), "--calibration");
}

/// A terminal may be both input and output, and so may a device.
#[test]
fn devices_are_no_files() {
    let args = [
        "--key",
        &key("rsa1024"),
        "--input",
        "/dev/null",
        "--output",
        "/dev/null",
    ];
    assert_eq!(stdout(&run_with_input(&args, b"")), "");
}
