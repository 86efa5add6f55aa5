//! Standard output and standard error, which may be closed or full.

use std::io::{self, Write};
use std::path::Path;

use super::failure::Failure;

/// The name of standard output for [`Failure::unwritable`].
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

/// Fails if standard output was closed when the program started, such as by a shell's `>&-`.
///
/// Rust's runtime then opens /dev/null instead, and output is lost silently. It opens it for
/// reading and writing, unlike `>/dev/null`. Only Linux lets a program check that.
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

/// Reads the access mode from /proc (proc_pid_fdinfo(5)): an octal number, whose lowest two bits
/// are 2.
fn is_read_and_write(descriptor: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"));
    text.is_ok_and(|text| {
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).is_ok_and(|f| f & 3 == 2))
    })
}

/// Prints a line on standard error.
pub fn note(line: &str) {
    // A failure cannot be reported, and `eprintln` would panic.
    let _ = writeln!(io::stderr(), "{line}");
}
