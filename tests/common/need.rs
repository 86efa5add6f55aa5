//! What some tests need and not every machine has.
//!
//! A test that cannot run says so in one line of the process's standard error, which cargo does not hide:
//!
//! ```text
//! skipped: records_move_and_are_wiped: needs cuda: no NVIDIA driver library was found
//! ```
//!
//! With `BATCH_MODEXP_REQUIRE=cuda,openssl` in the environment, a test that lacks one of these fails
//! instead. Each file of tests includes this one, the library's unit tests too.

use core::fmt::Display;
use core::panic::Location;
use std::io::Write;

/// What may be missing, and so what `BATCH_MODEXP_REQUIRE` may name.
const NAMES: [&str; 12] = [
    // MULX, ADCX, ADOX and AVX2.
    "adx",
    // AVX-512 IFMA.
    "avx512ifma",
    // AVX-IFMA.
    "avxifma",
    // A GPU that `Cuda` can use.
    "cuda",
    // AVX2 and FMA, or NEON.
    "fma",
    // Either of the two IFMA.
    "ifma",
    // A build for memcheck, which takes the branches of debug assertions for leaks.
    "no-debug-assertions",
    // No emulator, such as qemu-user, in which cargo was told to run tests.
    "no-emulator",
    // The command.
    "openssl",
    // The command.
    "ssh-keygen",
    // The command, and the right to mount in a namespace of one's own.
    "unshare",
    // The command.
    "valgrind",
];

/// The environment variable with what must be there, separated by commas.
const VARIABLE: &str = "BATCH_MODEXP_REQUIRE";

/// What was found, or `None` for a test that must do without and so be skipped; the error of `found` says
/// why.
///
/// # Panics
///
/// If it is missing and required, or if the environment requires something that has no name here.
#[track_caller]
pub(crate) fn available<T>(need: &str, found: Result<T, impl Display>) -> Option<T> {
    assert!(NAMES.contains(&need), "{need} is not in the list of names");
    let required = std::env::var(VARIABLE).unwrap_or_default();
    let mut required = required.split(',').filter(|name| !name.is_empty());
    if let Some(unknown) = required.clone().find(|name| !NAMES.contains(name)) {
        panic!("{VARIABLE} names {unknown}, which is none of {NAMES:?}");
    }
    let why = match found {
        Ok(found) => return Some(found),
        Err(why) => why,
    };
    let thread = std::thread::current();
    let (name, location) = (thread.name().unwrap_or("main"), Location::caller());
    let test: &dyn Display = match name {
        // All tests on one thread, or no test: no name.
        "main" => location,
        _ => &name,
    };
    assert!(
        !required.any(|name| name == need),
        "{test}: {VARIABLE} names {need}: {why}"
    );
    // One call, so that lines of several tests do not mix; and not `eprintln`, which is hidden.
    let line = std::format!("skipped: {test}: needs {need}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}
