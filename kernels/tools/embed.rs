//! Generates a table of entry points for each kernel family, with the deflated PTX of their
//! modules.
//!
//! A family is a folder of `kernels/` with a `shapes.csv`. `src/backend/cuda/family/*.rs` include
//! the tables.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec;

/// The best compression of the format, within one percent.
const COMPRESSION_LEVEL: u8 = 8;

const SHAPE_COLUMNS: &str = "bits,lanes,limbs,threads,blocks,scratch_doubles,shared_bytes,min_r2_bits,\
                             operations,alone_ms,shared_ms";
const OPERATION_COLUMNS: &str = "operation,width_factor,entry,module,source,window_table,feature";

/// The naming of the entry points for an operation.
struct Operation {
    name: String,
    width_factor: u32,
    entry: String,
    module: String,
    /// Whether it exponentiates through a window table, which needs scratch memory and most of the
    /// time.
    window_table: bool,
    /// Whether the features of the crate require it.
    embedded: bool,
}

/// A row of a family's table.
struct Shape {
    bits: u32,
    lanes: u32,
    limbs: u32,
    threads: u32,
    scratch_doubles: u32,
    shared_bytes: u32,
    min_r2_bits: u32,
    operations: Vec<String>,
    /// `alone_ms` and `shared_ms`.
    times: Option<[f64; 2]>,
}

/// Writes `FAMILY.rs` and the modules that it includes to Cargo's output folder for this crate.
pub(crate) fn all_families() -> Result<(), String> {
    let kernels = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("kernels");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let path = kernels.join("operations.csv");
    let operations = each_row(&path, OPERATION_COLUMNS, operation)?;
    rerun_if_changed(&kernels.join("ptx"));
    for folder in entries_of(&kernels)? {
        let path = folder.join("shapes.csv");
        if path.is_file() {
            let family = file_name(&folder);
            let shapes = each_row(&path, SHAPE_COLUMNS, |cells| shape(cells, &operations))?;
            let table = Table::new(&kernels.join("ptx"), &family, &shapes, &operations)?;
            table.write(&out, &family)?;
        }
    }
    Ok(())
}

/// The entry points of a family, and their modules.
#[derive(Default)]
struct Table {
    modules: Vec<Module>,
    /// Rust expressions.
    entries: Vec<String>,
}

/// A file of `kernels/ptx`.
struct Module {
    name: String,
    text: String,
}

impl Table {
    /// Makes the table, ordered by operation and then by shape.
    fn new(
        ptx: &Path,
        family: &str,
        shapes: &[Shape],
        operations: &[Operation],
    ) -> Result<Self, String> {
        let mut table = Self::default();
        for operation in operations.iter().filter(|operation| operation.embedded) {
            let does = |shape: &&Shape| shape.operations.contains(&operation.name);
            for shape in shapes.iter().filter(does) {
                let name = named(&operation.entry, shape, operation);
                let file = named(&operation.module, shape, operation);
                let index = table.module(ptx, format!("{family}_{file}.ptx"))?;
                let module = &table.modules[index];
                if !module.text.contains(&format!(".entry {name}(")) {
                    return Err(format!(
                        "kernels/ptx/{} has no {name}: run kernels/build_ptx",
                        module.name
                    ));
                }
                let entry = entry(&name, &module.name, index, shape, operation);
                table.entries.push(entry);
            }
        }
        Ok(table)
    }

    /// The index of a module, which is read on first use.
    fn module(&mut self, ptx: &Path, name: String) -> Result<usize, String> {
        if let Some(index) = self.modules.iter().position(|module| module.name == name) {
            return Ok(index);
        }
        let text = read(&ptx.join(&name));
        let text = text.map_err(|message| format!("{message}: run kernels/build_ptx"))?;
        self.modules.push(Module { name, text });
        Ok(self.modules.len() - 1)
    }

    fn write(&self, out: &Path, family: &str) -> Result<(), String> {
        let mut code = format!("// Made from kernels/{family}/shapes.csv and kernels/ptx.\n");
        code += &format!("const NAME: &str = {family:?};\n");
        code += &format!(
            "static MODULES: [CompressedPtx; {}] = [\n",
            self.modules.len()
        );
        for Module { name, text } in &self.modules {
            let file = format!("{name}.deflated");
            let text = without_comments(text);
            let deflated = compress_to_vec(text.as_bytes(), COMPRESSION_LEVEL);
            store(&out.join(&file), &deflated)?;
            code += &format!(
                "    CompressedPtx {{ text_bytes: {}, fingerprint: {}, deflated: include_bytes!({file:?}) }},\n",
                text.len(),
                fingerprint(text.as_bytes())
            );
        }
        code += "];\n/// By operation, then in the order of the shapes.\n";
        code += &format!(
            "pub(crate) static ENTRIES: [Entry; {}] = [\n",
            self.entries.len()
        );
        code += &self.entries.concat();
        code += "];\n";
        store(&out.join(format!("{family}.rs")), code.as_bytes())
    }
}

/// The text without comment lines. The compiler puts them around every statement of inline
/// assembly.
fn without_comments(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect()
}

/// FNV-1a of 64 bits, which ties measured times to these kernels.
fn fingerprint(text: &[u8]) -> u64 {
    let step = |hash: u64, &octet: &u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A Rust expression for an entry point. `index` is that of its module in `MODULES`.
fn entry(name: &str, module: &str, index: usize, shape: &Shape, operation: &Operation) -> String {
    let Shape {
        bits,
        lanes,
        limbs,
        threads,
        shared_bytes,
        min_r2_bits,
        ..
    } = shape;
    let (scratch_doubles, times) = match operation.window_table {
        true => {
            let times = shape.times.unwrap_or_else(|| panic!("{name} has no times"));
            (shape.scratch_doubles, times)
        }
        false => (0, [0.0; 2]),
    };
    let [alone_ns, shared_ns] = times.map(|ms| (ms * 1e6).round() as u64);
    format!(
        "    Entry {{
        family: FAMILY,
        operation: Operation::{},
        bits: {bits},
        limbs: {},
        min_r2_bits: {min_r2_bits},
        scratch_doubles: {scratch_doubles},
        times: BlockTimes {{ alone_ns: {alone_ns}, shared_ns: {shared_ns} }},
        key: KernelKey {{
            family: NAME,
            bits: {bits},
            variant: \"t{lanes}\",
        }},
        function: {name:?},
        module: {module:?},
        ptx: &MODULES[{index}],
        threads: {threads},
        instances_per_block: {},
        shared_bytes: {shared_bytes},
    }},\n",
        camel_case(&operation.name),
        lanes * limbs,
        threads / lanes,
    )
}

/// Expands the pattern of a name.
fn named(pattern: &str, shape: &Shape, operation: &Operation) -> String {
    let width = shape.bits * operation.width_factor;
    pattern
        .replace("{width}", &width.to_string())
        .replace("{lanes}", &shape.lanes.to_string())
}

fn operation(cells: &[&str]) -> Result<Operation, String> {
    let [
        name,
        width_factor,
        entry,
        module,
        _source,
        window_table,
        feature,
    ] = *cells
    else {
        return Err("a cell is missing".into());
    };
    let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase());
    Ok(Operation {
        name: name.into(),
        width_factor: number("width_factor", width_factor)?,
        entry: entry.into(),
        module: module.into(),
        window_table: match window_table {
            "yes" => true,
            "no" => false,
            _ => return Err(format!("window_table is yes or no, not '{window_table}'")),
        },
        embedded: feature.is_empty() || env::var_os(variable).is_some(),
    })
}

fn shape(cells: &[&str], known: &[Operation]) -> Result<Shape, String> {
    let [
        bits,
        lanes,
        limbs,
        threads,
        _blocks,
        scratch,
        shared,
        min_r2_bits,
        operations,
        alone,
        together,
    ] = *cells
    else {
        return Err("a cell is missing".into());
    };
    let operations: Vec<_> = operations.split('+').map(String::from).collect();
    for name in &operations {
        if !known.iter().any(|operation| operation.name == *name) {
            return Err(format!("operations.csv has no '{name}'"));
        }
    }
    let with_table = |operation: &&Operation| operation.window_table;
    let mut with_table = known.iter().filter(with_table);
    let exponentiates = with_table.any(|operation| operations.contains(&operation.name));
    let times = [("alone_ms", alone), ("shared_ms", together)];
    let times = match exponentiates {
        true => Some([number(times[0].0, alone)?, number(times[1].0, together)?]),
        false if times.iter().all(|(_, cell)| cell.is_empty()) => None,
        false => return Err("a shape that does not exponentiate has no times".into()),
    };
    let shape = Shape {
        bits: number("bits", bits)?,
        lanes: number("lanes", lanes)?,
        limbs: number("limbs", limbs)?,
        threads: number("threads", threads)?,
        scratch_doubles: number("scratch_doubles", scratch)?,
        shared_bytes: number("shared_bytes", shared)?,
        min_r2_bits: number("min_r2_bits", min_r2_bits)?,
        operations,
        times,
    };
    let whole_instances = shape.lanes > 0 && shape.threads.is_multiple_of(shape.lanes);
    if !shape.bits.is_multiple_of(64) || !whole_instances {
        return Err("bits come in whole words, and threads in whole instances".into());
    }
    Ok(shape)
}

fn number<N: core::str::FromStr>(column: &str, cell: &str) -> Result<N, String> {
    cell.parse()
        .map_err(|_| format!("'{cell}' in column {column} is no number"))
}

/// Applies `parse` to each row of a table with these columns.
fn each_row<T>(
    path: &Path,
    columns: &str,
    parse: impl Fn(&[&str]) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    rerun_if_changed(path);
    let text = read(path)?;
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if header != columns {
        return Err(format!(
            "{}: the columns are {header}, not {columns}",
            path.display()
        ));
    }
    let row = |(index, line): (usize, &str)| {
        let cells: Vec<_> = line.split(',').collect();
        parse(&cells).map_err(|message| format!("{}:{}: {message}", path.display(), index + 2))
    };
    lines.enumerate().map(row).collect()
}

/// Converts `mod_exp` to `ModExp`.
fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn entries_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let found: Result<Vec<_>, std::io::Error> = read();
    let mut found = found.map_err(|error| format!("{}: {error}", folder.display()))?;
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn store(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

fn rerun_if_changed(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
}
