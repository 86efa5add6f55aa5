//! Where the messages come from.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use super::args::is_dash;
use super::failure::Failure;

/// A stream of messages.
pub enum Messages {
    /// The lines of a file.
    Lines {
        path: PathBuf,
        reader: Box<dyn BufRead>,
    },
    /// Messages made up here.
    Generated { next: u64, count: u64 },
}

impl Messages {
    /// The lines of the file at `path`, `-` for standard input.
    pub fn from_lines(path: &Path) -> Result<Self, Failure> {
        let reader: Box<dyn BufRead> = if is_dash(path) {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
            Box::new(BufReader::new(file))
        };
        Ok(Self::Lines {
            path: path.into(),
            reader,
        })
    }

    /// `count` different messages.
    pub fn generated(count: NonZeroU64) -> Self {
        Self::Generated {
            next: 0,
            count: count.get(),
        }
    }

    /// How many there are, if that is known.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Lines { .. } => None,
            Self::Generated { count, .. } => Some(*count),
        }
    }

    /// The next messages, `most` of them if there are as many; empty at the end.
    pub fn next_batch(&mut self, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let mut batch = Vec::new();
        while batch.len() < most {
            let Some(message) = self.next()? else { break };
            batch.push(message);
        }
        Ok(batch)
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::Lines { path, reader } => {
                next_line(reader.as_mut()).map_err(|error| Failure::unreadable(path, &error))
            }
            Self::Generated { next, count } if *next < *count => {
                *next += 1;
                Ok(Some(format!("message {next} of {count}").into_bytes()))
            }
            Self::Generated { .. } => Ok(None),
        }
    }
}

/// The bytes up to the next newline or the end; `None` if there are none left.
fn next_line(reader: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(line))
}
