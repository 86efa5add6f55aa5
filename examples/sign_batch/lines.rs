//! Files that are read line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;

use super::args::is_dash;
use super::failure::{Failure, name};
use super::options::HashName;

/// The longest line in bytes, without its newline.
pub const MAX_LINE: usize = 16 << 20;

/// The content of lines.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Any bytes.
    Bytes,
    /// Digests in hexadecimal.
    Digests(HashName),
}

impl Content {
    /// Digests if `prehashed`, otherwise messages.
    pub fn new(prehashed: bool, hash: HashName) -> Self {
        if prehashed {
            Self::Digests(hash)
        } else {
            Self::Bytes
        }
    }
}

/// A file that is read line by line.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    content: Content,
    /// The number of lines read.
    count: u64,
}

impl Lines {
    /// Opens the file at `path`, `-` for standard input.
    pub fn open(path: &Path, content: Content) -> Result<Self, Failure> {
        let reader: Box<dyn BufRead + Send> = if is_dash(path) {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
            Box::new(BufReader::new(file))
        };
        Ok(Self {
            path: path.into(),
            reader,
            content,
            count: 0,
        })
    }

    /// Reads and decodes the next line; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let line = self.next_bytes()?;
        match (line, self.content) {
            (Some(line), Content::Digests(hash)) => self.digest(&line, hash).map(Some),
            (line, _) => Ok(line),
        }
    }

    /// Reads up to the next newline or the end.
    fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::unreadable(&self.path, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.count += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > MAX_LINE {
            return Err(self.bad_line("is longer than 16 MiB; is this a file of lines?"));
        }
        Ok(Some(line))
    }

    fn digest(&self, line: &[u8], hash: HashName) -> Result<Vec<u8>, Failure> {
        match HEXLOWER_PERMISSIVE.decode(without_return(line)) {
            Ok(digest) if digest.len() == hash.hash().digest_len() => Ok(digest),
            _ => Err(self.bad_line(&format!(
                "is no {} digest: {} hexadecimal digits and nothing else are expected",
                hash.hash(),
                2 * hash.hash().digest_len()
            ))),
        }
    }

    fn bad_line(&self, what: &str) -> Failure {
        Failure::Input(format!(
            "line {} of {} {what}",
            self.count,
            name(&self.path)
        ))
    }
}

/// Removes the carriage return of a Windows line ending.
pub fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
