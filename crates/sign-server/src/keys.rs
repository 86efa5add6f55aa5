//! The keys of a directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use batch_modexp::rsa::KeyHandle;
use batch_modexp::secret::Secret;

/// By name.
pub(crate) type Keys = BTreeMap<String, KeyHandle>;

/// A directory or a file that cannot be used.
#[derive(Debug)]
pub(crate) struct KeyError {
    path: PathBuf,
    problem: String,
}

/// Reads the key of each file `NAME.pem`.
pub(crate) fn load(directory: &Path) -> Result<Keys, KeyError> {
    let failed = |path: &Path, problem: &dyn fmt::Display| KeyError {
        path: path.into(),
        problem: problem.to_string(),
    };
    let mut keys = Keys::new();
    let entries = std::fs::read_dir(directory).map_err(|error| failed(directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(directory, &error))?.path();
        if path.extension() != Some("pem".as_ref()) {
            continue;
        }
        // It will be a part of URLs.
        let is_plain = |name: &&str| {
            let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
            name.bytes().all(is_plain)
        };
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .filter(is_plain);
        let name = name.ok_or_else(|| {
            let problem =
                "a name of a key has letters and digits of ASCII and the characters - _ . only";
            failed(&path, &problem)
        })?;
        let pem = std::fs::read_to_string(&path).map(Secret::new);
        let pem = pem.map_err(|error| failed(&path, &error))?;
        let key = match pem.contains("BEGIN RSA PRIVATE KEY") {
            true => KeyHandle::from_pkcs1_pem(&pem),
            false => KeyHandle::from_pkcs8_pem(&pem),
        };
        let key = key.map_err(|error| failed(&path, &error))?;
        keys.insert(name.into(), key);
    }
    if keys.is_empty() {
        return Err(failed(
            directory,
            &"there are no keys, files with names that end in .pem",
        ));
    }
    Ok(keys)
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for KeyError {}
