//! The table of entry points in `kernels/README.md`, which is what hosts go by.

use std::fs;
use std::path::Path;

/// An entry point that the crate ships.
#[derive(Clone, Debug)]
pub(crate) struct ShippedEntry {
    pub(crate) name: String,
    /// The text of its module.
    pub(crate) ptx: String,
    pub(crate) bits: u32,
    pub(crate) threads: u32,
    pub(crate) instances_per_block: u32,
    /// Doubles of scratch memory for each thread and each entry of the window table; 0 without a table.
    pub(crate) scratch_doubles: u32,
    pub(crate) shared_bytes: usize,
    /// The narrowest Montgomery parameters that it takes, in bits.
    pub(crate) min_r2_bits: u32,
}

/// The entry points whose names begin with `prefix`, in the order of the tables.
///
/// # Panics
///
/// If a table cannot be read, or names a module or a function that is not there.
pub(crate) fn entries(prefix: &str) -> Vec<ShippedEntry> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let readme = fs::read_to_string(kernels.join("README.md")).unwrap();
    let start = format!("| `{prefix}");
    let rows = readme
        .lines()
        .filter(|line| line.starts_with(&start) && line.contains(" ..= "));
    let entries: Vec<_> = rows.map(|row| entry(&kernels, row)).collect();
    assert!(!entries.is_empty(), "kernels/README.md has no {prefix}");
    entries
}

/// Names of the functions in all modules.
pub(crate) fn shipped() -> Vec<String> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/ptx");
    let mut names = Vec::new();
    for file in fs::read_dir(kernels).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let headers = text.lines().filter_map(|line| line.split_once(".entry "));
        names.extend(headers.map(|(_, name)| name.trim_end_matches('(').to_owned()));
    }
    names
}

/// Some tables have a column for the limbs of a thread, which hosts need not know.
fn entry(kernels: &Path, row: &str) -> ShippedEntry {
    let cells: Vec<_> = row
        .split('|')
        .map(|cell| cell.trim().trim_matches('`'))
        .collect();
    let [
        _,
        name,
        file,
        threads,
        instances,
        ..,
        scratch,
        shared,
        r2_bits,
        _,
    ] = cells[..]
    else {
        panic!("unexpected columns: {row}");
    };
    let number = |cell: &str| -> u32 {
        let digits = cell.trim_end_matches(" halves");
        digits.parse().unwrap_or_else(|_| panic!("{cell}: {row}"))
    };
    let (min_r2_bits, bits) = r2_bits.split_once(" ..= ").unwrap();
    let ptx = fs::read_to_string(kernels.join("ptx").join(file)).unwrap();
    assert!(
        ptx.contains(&format!(".entry {name}(")),
        "{name} is not in {file}"
    );
    ShippedEntry {
        name: name.to_owned(),
        ptx,
        bits: number(bits),
        threads: number(threads),
        instances_per_block: number(instances),
        scratch_doubles: if scratch == "-" { 0 } else { number(scratch) },
        shared_bytes: number(shared) as usize,
        min_r2_bits: number(min_r2_bits),
    }
}
