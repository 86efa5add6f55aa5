//! The examples of batch-modexp, run as programs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The path of an example; a plain `cargo test` builds it with the tests.
///
/// # Panics
///
/// If it was not built, or is older than its sources while the tests are not.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "test",
        other => other.unwrap_or_default(),
    };
    let help = format!(
        "a plain `cargo test` builds it, and so does `cargo build --profile {profile} --example {name}`"
    );
    let program = folder
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "no {}: {help}", program.display());
    let (built, tests_built) = (modified(&program), modified(&test));
    // Cargo lists the sources in this file. A source that changes while tests run belongs to the
    // next build.
    let sources = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let newer = sources.split_whitespace().find(|source| {
        let changed = modified(Path::new(source));
        changed > built && changed <= tests_built
    });
    if let Some(source) = newer {
        panic!("{} is older than {source}: {help}", program.display());
    }
    program
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}
