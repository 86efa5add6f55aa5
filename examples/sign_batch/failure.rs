//! Errors that end the program: one line and an exit status.

use std::fmt;
use std::io;
use std::path::Path;

use batch_modexp::{Error, rsa};

/// A line for standard error, by exit status.
#[derive(Debug)]
pub enum Failure {
    /// The command line, a file or a key cannot be used: exit status 2.
    Input(String),
    /// Signing, checking or writing failed: exit status 1.
    Work(String),
}

impl Failure {
    pub fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Work(_) => 1,
        }
    }

    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Input(format!("cannot read {}: {error}", name(path)))
    }

    pub fn unwritable(name: &str, error: &io::Error) -> Self {
        Self::Work(format!("cannot write {name}: {error}"))
    }

    /// An input file at `path` that can be read, but not used.
    pub fn bad_file(path: &Path, what: &str) -> Self {
        Self::Input(format!("{}: {what}", name(path)))
    }
}

/// The name of an input in messages.
pub fn name(path: &Path) -> String {
    if super::args::is_dash(path) {
        "standard input".into()
    } else {
        path.display().to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(line) | Self::Work(line)) = self;
        f.write_str(line)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::ThreadPool { .. }
            | Error::Unsupported { .. }
            | Error::CudaUnavailable(_)
            | Error::Calibration(_) => Self::Input(error.to_string()),
            _ => Self::Work(error.to_string()),
        }
    }
}

impl From<rsa::Error> for Failure {
    fn from(error: rsa::Error) -> Self {
        match error {
            rsa::Error::Backend(error) => error.into(),
            rsa::Error::KeySize { .. }
            | rsa::Error::KeyTooShort { .. }
            | rsa::Error::KeyRestricted { .. }
            | rsa::Error::GeneratedKeySize { .. }
            | rsa::Error::GeneratedExponent { .. } => Self::Input(error.to_string()),
            _ => Self::Work(error.to_string()),
        }
    }
}
