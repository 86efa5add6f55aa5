//! Writes the headers with the constants of all bases.
//!
//! `cargo run -p rns-bases` writes `kernels/rns/bases_BITS.cuh`. A test compares the committed
//! files.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use rns_bases::{Bases, WIDTHS, file_name, text};

fn main() -> ExitCode {
    if env::args().len() > 1 {
        eprintln!("usage: rns-bases\n\nWrites kernels/rns/bases_BITS.cuh for every width.");
        return ExitCode::from(2);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for bases in WIDTHS.iter().filter_map(|&(bits, _)| Bases::new(bits)) {
        let path = folder.join(file_name(bases.bits));
        if let Err(error) = fs::write(&path, text(&bases)) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("{}", path.display());
    }
    ExitCode::SUCCESS
}
