//! Where the signatures go. A file appears whole or not at all.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, HEXLOWER};
use tempfile::NamedTempFile;

use super::args::Encoding;
use super::failure::Failure;

/// Where signatures can go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target<'a> {
    Nowhere,
    Stdout,
    File(&'a Path),
}

/// An open target.
pub struct Output {
    sink: Sink,
    encoding: Encoding,
}

enum Sink {
    Nowhere,
    /// Standard output, a pipe or a device: what is written is gone.
    Stream {
        name: String,
        writer: Box<dyn Write>,
    },
    /// Written beside the file that it will replace, and gone if it is dropped before.
    File {
        path: PathBuf,
        temporary: BufWriter<NamedTempFile>,
    },
}

impl Output {
    /// Opens `target`. A file that is there already stays as it is until [`commit`](Self::commit).
    pub fn new(target: Target<'_>, encoding: Encoding) -> Result<Self, Failure> {
        let sink = match target {
            Target::Nowhere => Sink::Nowhere,
            Target::Stdout => Sink::Stream {
                name: "to standard output".into(),
                writer: Box::new(BufWriter::new(io::stdout())),
            },
            Target::File(path) => Sink::open(path).map_err(|error| {
                Failure::Input(format!("cannot write {}: {error}", path.display()))
            })?,
        };
        Ok(Self { sink, encoding })
    }

    /// Writes one signature as one line.
    pub fn write(&mut self, signature: &[u8]) -> Result<(), Failure> {
        let (name, writer): (_, &mut dyn Write) = match &mut self.sink {
            Sink::Nowhere => return Ok(()),
            Sink::Stream { name, writer } => (name.clone(), writer),
            Sink::File { path, temporary } => (path.display().to_string(), temporary),
        };
        let text = match self.encoding {
            Encoding::Hex => HEXLOWER.encode(signature),
            Encoding::Base64 => BASE64.encode(signature),
        };
        writeln!(writer, "{text}").map_err(|error| Failure::unwritable(&name, &error))
    }

    /// Finishes: only now does a file appear under its name.
    pub fn commit(self) -> Result<(), Failure> {
        match self.sink {
            Sink::Nowhere => Ok(()),
            Sink::Stream { name, mut writer } => writer
                .flush()
                .map_err(|error| Failure::unwritable(&name, &error)),
            Sink::File { path, temporary } => {
                let name = path.display().to_string();
                let cannot = |error| Failure::unwritable(&name, &error);
                let file = temporary
                    .into_inner()
                    .map_err(|error| cannot(error.into_error()))?;
                file.as_file().sync_all().map_err(cannot)?;
                file.persist(&path).map_err(|error| cannot(error.error))?;
                Ok(())
            }
        }
    }
}

impl Sink {
    fn open(path: &Path) -> io::Result<Self> {
        // What a link points to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        let existing = path.metadata().ok();
        if existing
            .as_ref()
            .is_some_and(|existing| !existing.is_file())
        {
            let file = OpenOptions::new().write(true).open(&path)?;
            let name = path.display().to_string();
            return Ok(Self::Stream {
                name,
                writer: Box::new(BufWriter::new(file)),
            });
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".sign_batch-");
        if let Some(permissions) = existing.map(|file| file.permissions()).or_else(new_file) {
            builder.permissions(permissions);
        }
        let temporary = builder.tempfile_in(folder)?;
        Ok(Self::File {
            path,
            temporary: BufWriter::new(temporary),
        })
    }
}

/// The permissions of any new file, less the user's mask: a temporary file has fewer.
fn new_file() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    return None;
}
