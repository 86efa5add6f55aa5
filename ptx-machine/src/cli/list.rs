//! The command `ptx-machine list`.

use std::fmt::Write;
use std::path::Path;

use ptx_machine::Entry;

use super::failure::Failure;
use super::file;

/// Lists the entry points of a file.
pub fn run(path: &Path) -> Result<String, Failure> {
    let module = file::module(path)?;
    let entries: Vec<_> = module.entries().iter().map(entry).collect();
    Ok(entries.join("\n"))
}

fn entry(entry: &Entry) -> String {
    let threads = match entry.threads() {
        Some(threads) => threads.to_string(),
        None => "no bound".to_owned(),
    };
    let dynamic = match entry.uses_dynamic_shared() {
        true => ", and dynamic shared memory",
        false => "",
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |line: String| writeln!(text, "{line}").unwrap_or_default();
    line(entry.name().to_owned());
    line(format!("  threads in a block: {threads}"));
    line(format!(
        "  shared memory: {} bytes{dynamic}",
        entry.shared_bytes()
    ));
    for (number, parameter) in entry.parameters().iter().enumerate() {
        line(format!(
            "  parameter {number}: {} {}",
            parameter.kind, parameter.name
        ));
    }
    if let Err(error) = entry.decode() {
        line(format!("  cannot be checked: {error}"));
    }
    text
}
