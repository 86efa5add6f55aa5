//! Requirements of tests that some machines lack.
//!
//! A test that cannot run prints one line to the standard error of the process, which cargo does
//! not hide:
//!
//! ```text
//! skipped: records_move_and_are_wiped: needs cuda: no NVIDIA driver library was found
//! ```
//!
//! With `BATCH_MODEXP_REQUIRE=cuda,openssl` in the environment, a test that lacks one of these
//! fails instead. Each test program includes this file, and so do the library's unit tests.

use core::fmt::Display;
use core::panic::Location;
use std::io::Write;

/// The requirements, as `BATCH_MODEXP_REQUIRE` names them.
const NAMES: [&str; 13] = [
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
    // Either of the two IFMA instruction sets.
    "ifma",
    // A build for memcheck, which reports the branches of debug assertions as leaks.
    "no-debug-assertions",
    // No emulator, such as qemu-user, that cargo was told to run tests in.
    "no-emulator",
    // The command.
    "openssl",
    // The command.
    "ssh-keygen",
    // The command, and permission to trace.
    "strace",
    // The command, and permission to mount in a new namespace.
    "unshare",
    // The command.
    "valgrind",
];

/// The environment variable that lists requirements, separated by commas.
const VARIABLE: &str = "BATCH_MODEXP_REQUIRE";

/// The requirement, or `None` for a test that must then be skipped. The error of `found` is the
/// reason.
///
/// # Panics
///
/// If the requirement is missing but demanded by the environment, or if the environment names an
/// unknown one.
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
        // The test has no thread with its name: all tests are on one thread, or this is no test.
        "main" => location,
        _ => &name,
    };
    assert!(
        !required.any(|name| name == need),
        "{test}: {VARIABLE} names {need}: {why}"
    );
    // One call, so that lines of several tests do not mix. Not `eprintln`, which cargo hides.
    let line = std::format!("skipped: {test}: needs {need}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}
