//! Reads files that may be larger than memory, or not regular files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ptx_machine::Module;

use super::failure::Failure;

/// The longest PTX file: the limit of `Module::parse`.
const MAX_PTX: usize = 16 << 20;

/// Reads a module with at least one entry point.
pub fn module(path: &Path) -> Result<Module, Failure> {
    let text = String::from_utf8(bytes(path, MAX_PTX)?)
        .map_err(|_| Failure::File(path.to_owned(), "this is no text".to_owned()))?;
    let module = Module::parse(&text).map_err(|error| Failure::ptx(path, &error))?;
    if module.entries().is_empty() {
        let nothing = "there is no entry point".to_owned();
        return Err(Failure::File(path.to_owned(), nothing));
    }
    Ok(module)
}

/// Reads a file of at most `max` bytes.
pub fn bytes(path: &Path, max: usize) -> Result<Vec<u8>, Failure> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| Failure::Unreadable(path.to_owned(), error))?;
    if bytes.len() > max {
        let too_long = format!("this has more than {max} bytes");
        return Err(Failure::File(path.to_owned(), too_long));
    }
    Ok(bytes)
}
