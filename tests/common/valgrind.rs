//! Tests under memcheck, which finds branches and addresses that depend on secrets.
//!
//! Secrets are marked as undefined memory (A. Langley, "Checking that functions are constant time
//! with Valgrind", 2010). Code may compute with them, but valgrind reports every branch and address
//! that depends on them.
//!
//! Each case is an ignored unit test, which another test runs under valgrind. The build must not
//! have debug assertions, since those are branches: `cargo test --release --lib memcheck`. The
//! crates with cases include this file.

use alloc::string::String;
use core::slice;
use std::env;
use std::io::Write;
use std::process::Command;

use batch_modexp_core::monty::ModulusRef;
use rayon::prelude::*;

use crate::{WORKSPACE, need};

/// The exit status of a case in which valgrind found something.
const FOUND: i32 = 99;

/// Runs ignored tests of `module` under valgrind. It must find nothing in those in `clean`, and
/// something in those in `leaks`.
pub(crate) fn run_under_valgrind(module: &str, clean: &[&str], leaks: &[&str]) {
    let build = match cfg!(debug_assertions) {
        true => Err("run `cargo test --release --lib memcheck`"),
        false => Ok(()),
    };
    let valgrind = Command::new("valgrind").arg("--version").output();
    if need::available("no-debug-assertions", build).is_none()
        || need::available("valgrind", valgrind).is_none()
    {
        return;
    }
    let clean = clean.par_iter().map(|case| (case, 0));
    let leaks = leaks.par_iter().map(|case| (case, FOUND));
    clean.chain(leaks).for_each(|(case, expected)| {
        let (status, report) = under_valgrind(module, case);
        assert_eq!(
            status,
            Some(expected),
            "{case}, {FOUND} if something was found: {report}"
        );
    });
}

/// Runs one of the ignored tests and returns its exit status and its output.
fn under_valgrind(module: &str, case: &str) -> (Option<i32>, String) {
    // The file names the one branch that may depend on secrets.
    let suppressions = alloc::format!("--suppressions={WORKSPACE}/tests/common/valgrind.supp");
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=99", &suppressions])
        // Suppressions name functions as compiled.
        .args(["--read-inline-info=no", "--"])
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "--test-threads=1"])
        .arg(alloc::format!("{module}::{case}"))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    for line in text.lines().filter(|line| line.starts_with("skipped: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    assert!(text.contains("running 1 test"), "no case {case}: {text}");
    (output.status.code(), text)
}

/// Marks a modulus and its constants.
pub(crate) fn set_modulus_undefined(modulus: ModulusRef<'_>, undefined: bool) {
    set_undefined(modulus.limbs, undefined);
    set_undefined(modulus.r2, undefined);
    set_undefined(slice::from_ref(modulus.mod_inv), undefined);
}

/// Whether the process runs under valgrind.
#[allow(dead_code, reason = "one of the crates asks")]
pub(crate) fn is_under_valgrind() -> bool {
    /// `RUNNING_ON_VALGRIND` of valgrind.h.
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    client_request(&[RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) != 0
}

/// Marks memory as undefined, or as defined again, for valgrind; does nothing elsewhere.
pub(crate) fn set_undefined<T>(values: &[T], undefined: bool) {
    /// `VALGRIND_MAKE_MEM_UNDEFINED` of memcheck.h: the letters M and C, and number 1.
    const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
    /// `VALGRIND_MAKE_MEM_DEFINED`.
    const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
    let request = [
        if undefined {
            MAKE_MEM_UNDEFINED
        } else {
            MAKE_MEM_DEFINED
        },
        values.as_ptr() as u64,
        size_of_val(values) as u64,
        0,
        0,
        0,
    ];
    client_request(&request);
}

/// Makes a client request, encoded as valgrind.h does for amd64: four rotations by 128 bits in all,
/// which change nothing, and an exchange of `rbx` with itself.
#[allow(unsafe_code)]
fn client_request(request: &[u64; 6]) -> u64 {
    let answer;
    // SAFETY: outside valgrind nothing changes. Valgrind reads the request, writes its answer to
    // `rdx`, and changes its state about the memory, not the memory.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdx") 0u64 => answer,
            in("rax") request.as_ptr(),
            inout("rdi") 0u64 => _,
        );
    }
    answer
}
