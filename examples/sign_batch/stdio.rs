//! Standard output and standard error, which may be closed or full.

use std::io::{self, Write};
use std::path::Path;

use super::failure::Failure;

/// What [`Failure::unwritable`] calls standard output.
pub const STDOUT: &str = "to standard output";

/// Prints `text`, which ends with a newline, on standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    check()?;
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::unwritable(STDOUT, &error))
}

/// Fails if standard output was closed when the program started: a shell's `>&-`.
///
/// Rust's runtime opens /dev/null in the place of what is closed, and what is written there is lost without a word. It
/// opens it for reading and writing, which tells it from `>/dev/null`. Only Linux lets a program look.
pub fn check() -> Result<(), Failure> {
    if cfg!(target_os = "linux") && is_read_and_write(1) && is_null(1) {
        return Err(Failure::unwritable(STDOUT, &io::Error::other("closed")));
    }
    Ok(())
}

fn is_null(descriptor: u32) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
    link.is_ok_and(|path| path == Path::new("/dev/null"))
}

/// As /proc says it (proc_pid_fdinfo(5)): an octal number, whose lowest two bits are 2.
fn is_read_and_write(descriptor: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"));
    text.is_ok_and(|text| {
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).is_ok_and(|f| f & 3 == 2))
    })
}

/// Prints a line on standard error.
pub fn note(line: &str) {
    // Nobody is left to tell if this fails, and `eprintln` would panic.
    let _ = writeln!(io::stderr(), "{line}");
}
