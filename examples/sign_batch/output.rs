//! Targets for signatures. A file appears completely or not at all, unless it is a mount point.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, HEXLOWER};

use super::failure::Failure;
use super::options::Encoding;
use super::place::{Place, is_mount_point};
use super::stdio::{self, STDOUT};
use super::temporary::Temporary;

/// Bytes written at a time.
const BUFFER: usize = 1 << 18;

/// A place to write signatures to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target<'a> {
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
    /// Standard output, a pipe or a device: written output cannot be taken back.
    Stream {
        name: String,
        writer: Box<dyn Write + Send>,
    },
    File {
        path: PathBuf,
        temporary: BufWriter<Temporary>,
        /// The target itself, if no file can be renamed onto it.
        in_place: Option<File>,
    },
}

impl Output {
    /// Opens `target`. An existing file is unchanged until [`commit`](Self::commit).
    pub fn new(target: Target<'_>, encoding: Encoding) -> Result<Self, Failure> {
        let sink = match target {
            Target::Stdout => {
                stdio::check()?;
                Sink::Stream {
                    name: STDOUT.into(),
                    writer: Box::new(BufWriter::with_capacity(BUFFER, io::stdout())),
                }
            }
            Target::File(path) => Sink::open(path).map_err(|error| {
                Failure::Input(format!("cannot write {}: {error}", path.display()))
            })?,
        };
        Ok(Self { sink, encoding })
    }

    /// An output that discards everything.
    pub fn nowhere() -> Self {
        Self {
            sink: Sink::Nowhere,
            encoding: Encoding::Hex,
        }
    }

    /// Whether signatures appear on the terminal, where a progress bar would disturb them.
    pub fn is_on_terminal(&self) -> bool {
        matches!(&self.sink, Sink::Stream { name, .. } if name == STDOUT)
            && io::stdout().is_terminal()
    }

    /// Writes one signature a line. A stream is flushed after each call.
    pub fn write(&mut self, signatures: &[Vec<u8>]) -> Result<(), Failure> {
        let (name, result) = match &mut self.sink {
            Sink::Nowhere => return Ok(()),
            Sink::Stream { name, writer } => (
                name.clone(),
                write_lines(writer, self.encoding, signatures).and_then(|()| writer.flush()),
            ),
            Sink::File {
                path, temporary, ..
            } => (
                path.display().to_string(),
                write_lines(temporary, self.encoding, signatures),
            ),
        };
        result.map_err(|error| Failure::unwritable(&name, &error))
    }

    /// Finishes: only now does a file appear under its name.
    pub fn commit(self) -> Result<(), Failure> {
        let Sink::File {
            path,
            temporary,
            in_place,
        } = self.sink
        else {
            return Ok(());
        };
        let file = temporary
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        file.and_then(|file| match in_place {
            Some(original) => file.copy_to(original),
            None => file.persist(&path),
        })
        .map_err(|error| Failure::unwritable(&path.display().to_string(), &error))
    }
}

impl Sink {
    /// Decides how to write `path` before anything is signed. A file replaces another one
    /// completely; everything else is written through.
    fn open(path: &Path) -> io::Result<Self> {
        let path = match Place::of(path)? {
            Place::Name(path) => path,
            // Opened again, it would be written from its beginning, over the output of others.
            Place::Descriptor if path.metadata()?.is_file() => {
                return Err(io::Error::other(
                    "it is the descriptor of a file; name the file, or redirect standard output",
                ));
            }
            // `SignArgs::output_target` has handled standard output.
            Place::Descriptor | Place::Stdout => path.into(),
        };
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
        let (temporary, in_place) = if is_mount_point(&path) {
            let file = OpenOptions::new().write(true).open(&path)?;
            (Temporary::new(&std::env::temp_dir(), None)?, Some(file))
        } else {
            let folder = path.parent();
            let folder = folder.filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new("."));
            let temporary = match existing {
                None => Temporary::new(folder, new_file())?,
                Some(file) => {
                    let temporary = Temporary::new(folder, None)?;
                    temporary.set_permissions(file.permissions())?;
                    temporary
                }
            };
            (temporary, None)
        };
        Ok(Self::File {
            path,
            temporary: BufWriter::with_capacity(BUFFER, temporary),
            in_place,
        })
    }
}

fn write_lines(
    writer: &mut dyn Write,
    encoding: Encoding,
    signatures: &[Vec<u8>],
) -> io::Result<()> {
    let encoding = match encoding {
        Encoding::Hex => HEXLOWER,
        Encoding::Base64 => BASE64,
    };
    let mut text = String::new();
    for signature in signatures {
        text.clear();
        encoding.encode_append(signature, &mut text);
        text.push('\n');
        writer.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The permissions of any new file, before the user's mask. Those of a temporary file are stricter.
fn new_file() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    return None;
}
