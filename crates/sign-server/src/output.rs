//! Output on standard output and standard error.
//!
//! A service may outlive the readers of its output, so errors are ignored; `println!` would panic.

use std::fmt::Arguments;
use std::io::Write;

pub(crate) fn print_line(line: Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

pub(crate) fn print_error(line: Arguments<'_>) {
    // One write, so that lines of the record stay whole.
    let _ = std::io::stderr().write_all(format!("sign-server: {line}\n").as_bytes());
}
