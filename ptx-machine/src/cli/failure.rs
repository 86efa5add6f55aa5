//! Errors that end the program without a verdict, with one line of text and exit status 2.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ptx_machine::{LaunchError, PtxError};

/// An error with its line for standard error.
#[derive(Debug)]
pub enum Failure {
    /// The command line does not fit the kernel.
    Usage(String),
    /// A file that cannot be read.
    Unreadable(PathBuf, io::Error),
    /// A file that cannot be used.
    File(PathBuf, String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl Failure {
    pub fn ptx(path: &Path, error: &PtxError) -> Self {
        Self::File(path.to_owned(), error.to_string())
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(line) => f.write_str(line),
            Self::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::File(path, what) => write!(f, "{}: {what}", path.display()),
            Self::Output(error) => write!(f, "cannot write the result: {error}"),
        }
    }
}
