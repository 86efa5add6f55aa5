//! The keys of a directory.

use std::collections::BTreeMap;
use std::path::Path;

use batch_modexp::rsa::KeyHandle;

use crate::permissions::{self, FileError};

/// Keys by name.
pub(crate) type Keys = BTreeMap<String, KeyHandle>;

/// Reads the key of each file `PREFIXNAME.pem`, with `prefix` for `PREFIX`.
pub(crate) fn load(directory: &Path, prefix: &str) -> Result<Keys, FileError> {
    permissions::check_directory(directory)?;
    let mut keys = Keys::new();
    let entries = std::fs::read_dir(directory).map_err(|error| FileError::new(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| FileError::new(directory, error))?;
        let (path, file) = (entry.path(), entry.file_name());
        let name = file.as_encoded_bytes().strip_prefix(prefix.as_bytes());
        let Some(name) = name.and_then(|name| name.strip_suffix(b".pem")) else {
            continue;
        };
        // A hidden file, such as an editor's.
        if name.is_empty() {
            continue;
        }
        // The name becomes a part of URLs.
        let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.".contains(octet);
        let name = str::from_utf8(name).ok();
        let name = name.filter(|name| name.as_bytes().iter().all(is_plain));
        let name = name.ok_or_else(|| {
            let problem =
                "a name of a key has letters and digits of ASCII and the characters - _ . only";
            FileError::new(&path, problem)
        })?;
        let pem = permissions::read_secret(&path)?;
        let key = KeyHandle::from_pem(&pem).map_err(|error| FileError::new(&path, error))?;
        keys.insert(name.into(), key);
    }
    if keys.is_empty() {
        let problem =
            format_args!("there are no keys, files with names of the form {prefix}NAME.pem");
        return Err(FileError::new(directory, problem));
    }
    Ok(keys)
}
