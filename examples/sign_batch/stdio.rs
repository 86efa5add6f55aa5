//! Standard output and standard error, which may be closed or full.

use std::io::{self, Write};

use super::failure::Failure;

/// What [`Failure::unwritable`] calls standard output.
pub const STDOUT: &str = "to standard output";

/// Prints `text`, which ends with a newline, on standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::unwritable(STDOUT, &error))
}

/// Prints a line on standard error.
pub fn note(line: &str) {
    // Nobody is left to tell if this fails, and `eprintln` would panic.
    let _ = writeln!(io::stderr(), "{line}");
}
