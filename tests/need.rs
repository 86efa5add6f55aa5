//! Tests that a skipped test is visible, and fails where it must not be skipped.

#[path = "common/need.rs"]
mod need;

use std::process::{Command, Output};

#[test]
#[ignore = "run by the tests below"]
fn needs_a_gpu() {
    assert_eq!(need::available("cuda", Err::<(), _>("there is none")), None);
}

#[test]
#[ignore = "run by the tests below"]
fn has_a_gpu() {
    assert_eq!(need::available("cuda", Ok::<_, &str>(7)), Some(7));
}

/// Runs one of the tests above as cargo would.
fn run(test: &str, require: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]);
    match require {
        Some(names) => command.env("BATCH_MODEXP_REQUIRE", names),
        None => command.env_remove("BATCH_MODEXP_REQUIRE"),
    };
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("running 1 test"), "{stdout}");
    output
}

#[test]
fn what_was_skipped_is_seen() {
    for require in [None, Some(""), Some("openssl,valgrind")] {
        let output = run("needs_a_gpu", require);
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "skipped: needs_a_gpu: needs cuda: there is none\n"
        );
    }
}

#[test]
fn what_is_required_is_not_skipped() {
    for require in ["cuda", "openssl,cuda"] {
        let output = run("needs_a_gpu", Some(require));
        assert!(!output.status.success());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("names cuda: there is none"), "{stdout}");
    }
}

#[test]
fn what_is_there_is_used() {
    for require in [None, Some("cuda")] {
        let output = run("has_a_gpu", require);
        assert!(output.status.success());
        assert!(output.stderr.is_empty());
    }
}

/// A misspelt name would require nothing.
#[test]
fn unknown_names_are_refused() {
    for test in ["needs_a_gpu", "has_a_gpu"] {
        let output = run(test, Some("openssl,cudda"));
        assert!(!output.status.success());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("names cudda"), "{stdout}");
    }
}
