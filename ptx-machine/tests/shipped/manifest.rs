//! The shipped entry points, from `kernels/*/shapes.csv`; `kernels/README.md` explains the columns.

use std::fs;
use std::path::{Path, PathBuf};

/// An entry point that the crate ships.
#[derive(Clone, Debug)]
pub(crate) struct ShippedEntry {
    /// The name of its folder.
    pub(crate) family: String,
    pub(crate) name: String,
    /// The text of its module.
    pub(crate) ptx: String,
    pub(crate) bits: u32,
    pub(crate) threads: u32,
    pub(crate) instances_per_block: u32,
    /// Doubles of scratch memory for each thread and each entry of the window table; 0 without a
    /// table.
    pub(crate) scratch_doubles: u32,
    pub(crate) shared_bytes: usize,
    /// The least width of the Montgomery parameters, in bits.
    pub(crate) min_r2_bits: u32,
}

impl ShippedEntry {
    /// The same with as few warps as compute 16 instances and are at least two, where no warp
    /// computes with others. Every warp of such a block executes the same instructions.
    pub(crate) fn with_few_warps(&self) -> Self {
        let mut entry = self.clone();
        if !self.family.starts_with("rns") {
            let lanes = self.threads / self.instances_per_block;
            entry.threads = self.threads.min((16 * lanes).max(64));
            entry.instances_per_block = entry.threads / lanes;
        }
        entry
    }
}

/// The entry points whose names begin with `prefix`, by family, operation and shape.
///
/// # Panics
///
/// If a table cannot be read, or names a module or function that does not exist.
pub(crate) fn entries(prefix: &str) -> Vec<ShippedEntry> {
    let operations = table(&kernels().join("operations.csv"));
    let mut entries = Vec::new();
    for family in families() {
        let shapes = table(&family.join("shapes.csv"));
        for operation in &operations {
            let does = |shape: &&Row| {
                let mut names = shape.cell("operations").split('+');
                names.any(|name| name == operation.cell("operation"))
            };
            let shapes = shapes.iter().filter(does);
            entries.extend(shapes.filter_map(|shape| entry(&family, shape, operation, prefix)));
        }
    }
    assert!(!entries.is_empty(), "kernels/ has no {prefix}");
    entries
}

/// The names of the functions in all modules.
pub(crate) fn shipped() -> Vec<String> {
    let mut names = Vec::new();
    for file in fs::read_dir(kernels().join("ptx")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let headers = text.lines().filter_map(|line| line.split_once(".entry "));
        names.extend(headers.map(|(_, name)| name.trim_end_matches('(').to_owned()));
    }
    names
}

/// The entry point for an operation of a shape, if its name begins with `prefix`.
fn entry(family: &Path, shape: &Row, operation: &Row, prefix: &str) -> Option<ShippedEntry> {
    let bits = shape.number("bits");
    let lanes = shape.number("lanes");
    let threads = shape.number("threads");
    let width = (bits * operation.number("width_factor")).to_string();
    let named = |column| {
        let pattern = operation.cell(column).replace("{width}", &width);
        pattern.replace("{lanes}", &lanes.to_string())
    };
    let name = named("entry");
    if !name.starts_with(prefix) {
        return None;
    }
    let family = family.file_name().unwrap().to_str().unwrap();
    let file = kernels().join(format!("ptx/{family}_{}.ptx", named("module")));
    let ptx = fs::read_to_string(&file).unwrap();
    let header = format!(".entry {name}(");
    assert!(ptx.contains(&header), "{name} is not in {}", file.display());
    let scratch_doubles = match operation.cell("window_table") {
        "yes" => shape.number("scratch_doubles"),
        _ => 0,
    };
    Some(ShippedEntry {
        family: family.to_owned(),
        name,
        ptx,
        bits,
        threads,
        instances_per_block: threads / lanes,
        scratch_doubles,
        shared_bytes: shape.number("shared_bytes") as usize,
        min_r2_bits: shape.number("min_r2_bits"),
    })
}

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels")
}

/// The folders of the families, in alphabetical order.
fn families() -> Vec<PathBuf> {
    let folders = fs::read_dir(kernels()).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let is_family = |folder: &PathBuf| folder.join("shapes.csv").is_file();
    let mut families: Vec<_> = folders.filter(is_family).collect();
    families.sort();
    families
}

/// Cells with the names of their columns.
struct Row(Vec<(String, String)>);

impl Row {
    fn cell(&self, column: &str) -> &str {
        let cell = self.0.iter().find(|(name, _)| name == column);
        &cell
            .unwrap_or_else(|| panic!("no column {column}: {:?}", self.0))
            .1
    }

    fn number(&self, column: &str) -> u32 {
        let cell = self.cell(column);
        cell.parse()
            .unwrap_or_else(|_| panic!("{cell} in {column}: {:?}", self.0))
    }
}

fn table(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let columns: Vec<_> = lines.next().unwrap().collect();
    lines
        .map(|cells| Row(columns.iter().cloned().zip(cells).collect()))
        .collect()
}
