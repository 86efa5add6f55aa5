//! Checks of ownership and permissions of files with private keys, and of their folders.
//!
//! Files follow the rule of PostgreSQL, folders that of OpenSSH's `StrictModes`, up to the root.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use batch_modexp::secret::Secret;

/// Far longer than a key of 16,384 bits with its certificates.
const LONGEST: u64 = 1 << 20;

/// An unusable file or folder, and why.
#[derive(Debug)]
pub(crate) struct FileError {
    path: PathBuf,
    problem: String,
}

impl FileError {
    pub(crate) fn new(path: &Path, problem: impl fmt::Display) -> Self {
        Self {
            path: path.into(),
            problem: problem.to_string(),
        }
    }
}

/// Reads a file with a private key.
///
/// # Errors
///
/// If another user may read or write it.
pub(crate) fn read_secret(path: &Path) -> Result<Secret<Vec<u8>>, FileError> {
    let failed = |error: io::Error| FileError::new(path, error);
    // Before it is opened: opening a pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(FileError::new(path, "it is no regular file"));
    }
    let file = File::open(path).map_err(failed)?;
    // Metadata of the open file, even if its name now belongs to another one.
    let metadata = file.metadata().map_err(failed)?;
    if let Some(fault) = fault_of_file(&Owned::new(&metadata), effective_user()) {
        return Err(FileError::new(path, fault));
    }
    if metadata.len() > LONGEST {
        let problem = format_args!("it is longer than {LONGEST} bytes");
        return Err(FileError::new(path, problem));
    }
    // Allocated at its final size, so that no partial copy is left behind.
    let mut octets = Secret::new(Vec::with_capacity(metadata.len() as usize + 1));
    file.take(metadata.len())
        .read_to_end(&mut octets)
        .map_err(failed)?;
    Ok(octets)
}

/// Checks that no other user can add or replace files in `directory`.
///
/// # Errors
///
/// If another user can.
pub(crate) fn check_directory(directory: &Path) -> Result<(), FileError> {
    let failed = |error: io::Error| FileError::new(directory, error);
    let real = directory.canonicalize().map_err(failed)?;
    for folder in real.ancestors() {
        let metadata = folder.metadata().map_err(failed)?;
        let is_ancestor = folder != real;
        if let Some(fault) = fault_of_folder(&Owned::new(&metadata), effective_user(), is_ancestor)
        {
            return Err(FileError::new(folder, fault));
        }
    }
    Ok(())
}

/// The metadata that the rules use.
struct Owned {
    mode: u32,
    owner: u32,
}

impl Owned {
    fn new(metadata: &Metadata) -> Self {
        Self {
            mode: metadata.mode() & 0o7777,
            owner: metadata.uid(),
        }
    }
}

fn fault_of_file(file: &Owned, user: u32) -> Option<String> {
    let Owned { mode, owner } = *file;
    if owner != 0 && owner != user {
        return Some(format!(
            "it belongs to user {owner}; a file with a private key must belong to root or to the user of the \
             service, {user}"
        ));
    }
    // root gives files to a service through their group, as systemd's credentials do.
    let others = if owner == 0 { 0o037 } else { 0o077 };
    (mode & others != 0).then(|| {
        format!(
            "its permissions {mode:04o} are too open; a file with a private key must be 0600 or less, or 0640 or \
             less if it belongs to root: chmod 600"
        )
    })
}

fn fault_of_folder(folder: &Owned, user: u32, is_ancestor: bool) -> Option<String> {
    let Owned { mode, owner } = *folder;
    if owner != 0 && owner != user {
        return Some(format!(
            "the folder belongs to user {owner}, who could replace keys; it must belong to root or to the user of \
             the service, {user}"
        ));
    }
    // In a sticky folder, users cannot replace what belongs to others, but they can add keys.
    let is_sticky = mode & 0o1000 != 0;
    (mode & 0o022 != 0 && !(is_ancestor && is_sticky)).then(|| {
        let or = if is_ancestor {
            ", or set the sticky bit"
        } else {
            ""
        };
        format!(
            "the folder's permissions {mode:04o} let others add or replace keys: chmod go-w{or}"
        )
    })
}

fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u32 = 0;
    const SERVICE: u32 = 990;
    const OTHER: u32 = 1000;

    #[test]
    fn files() {
        for (mode, owner, is_good) in [
            (0o600, SERVICE, true),
            (0o400, SERVICE, true),
            (0o640, SERVICE, false),
            (0o620, SERVICE, false),
            (0o604, SERVICE, false),
            (0o602, SERVICE, false),
            (0o600, ROOT, true),
            // A credential of systemd, with an access control list.
            (0o440, ROOT, true),
            (0o640, ROOT, true),
            (0o660, ROOT, false),
            (0o650, ROOT, false),
            (0o644, ROOT, false),
            (0o600, OTHER, false),
            (0o400, OTHER, false),
        ] {
            let fault = fault_of_file(&Owned { mode, owner }, SERVICE);
            assert_eq!(fault.is_none(), is_good, "{mode:o} of {owner}: {fault:?}");
        }
        let owner = ROOT;
        assert!(fault_of_file(&Owned { mode: 0o640, owner }, ROOT).is_none());
        assert!(fault_of_file(&Owned { mode: 0o644, owner }, ROOT).is_some());
    }

    #[test]
    fn folders() {
        for (mode, owner, is_good, is_good_ancestor) in [
            (0o755, ROOT, true, true),
            (0o550, ROOT, true, true),
            (0o700, SERVICE, true, true),
            (0o1755, ROOT, true, true),
            (0o1777, ROOT, false, true),
            (0o1770, SERVICE, false, true),
            (0o777, ROOT, false, false),
            (0o775, SERVICE, false, false),
            (0o757, SERVICE, false, false),
            (0o700, OTHER, false, false),
        ] {
            for (is_ancestor, is_good) in [(false, is_good), (true, is_good_ancestor)] {
                let fault = fault_of_folder(&Owned { mode, owner }, SERVICE, is_ancestor);
                assert_eq!(fault.is_none(), is_good, "{mode:o} of {owner}: {fault:?}");
            }
        }
    }
}
