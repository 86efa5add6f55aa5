//! Resolves the name of an output.

use std::io;
use std::path::{Path, PathBuf, is_separator};

/// The meaning of a name after links are followed.
pub enum Place {
    /// Standard output: /dev/stdout.
    Stdout,
    /// Another descriptor, perhaps of another process: /dev/fd/3.
    Descriptor,
    /// A name without links; the file need not exist.
    Name(PathBuf),
}

/// The number of links that Linux follows (path_resolution(7)).
const MAX_LINKS: usize = 40;

impl Place {
    /// Follows links from `path` to a file that need not exist.
    pub fn of(path: &Path) -> io::Result<Self> {
        if !cfg!(unix) {
            // This follows links only to existing files; `NUL` must stay unchanged.
            let found = path.canonicalize().unwrap_or_else(|_| path.into());
            return Ok(Self::Name(found));
        }
        let mut path = path.to_owned();
        for _ in 0..=MAX_LINKS {
            let Some(name) = path.file_name() else {
                return path.canonicalize().map(Self::Name);
            };
            let octets = path.as_os_str().as_encoded_bytes();
            if octets
                .last()
                .is_some_and(|last| is_separator((*last).into()))
            {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
            if is_of_descriptors(&folder) {
                let is_stdout = name == "1" && is_of_this_process(&folder);
                return Ok(if is_stdout {
                    Self::Stdout
                } else {
                    Self::Descriptor
                });
            }
            path = folder.join(name);
            match path.read_link() {
                Ok(link) => path = folder.join(link),
                Err(_) => return Ok(Self::Name(path)),
            }
        }
        Err(io::Error::other("too many links"))
    }
}

/// Whether `path` is a name of standard output, such as /dev/stdout.
pub fn is_stdout(path: &Path) -> bool {
    matches!(Place::of(path), Ok(Place::Stdout))
}

/// Whether the names in `folder` are descriptors: /dev/fd, or its target on Linux.
fn is_of_descriptors(folder: &Path) -> bool {
    let is_of_process = folder.starts_with("/proc") && folder.ends_with("fd");
    is_of_process || folder == Path::new("/dev/fd")
}

fn is_of_this_process(folder: &Path) -> bool {
    let own = format!("/proc/{}", std::process::id());
    folder.starts_with(own) || !folder.starts_with("/proc")
}

/// Whether a file system, or a single file as in a container, is mounted at `path`, so that nothing
/// can be renamed onto it. `path` is absolute and without links.
#[cfg(target_os = "linux")]
pub fn is_mount_point(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    // The fifth field is the mount point, with white space and backslashes escaped
    // (proc_pid_mountinfo(5)).
    let escaped: Vec<_> = path
        .as_os_str()
        .as_bytes()
        .iter()
        .flat_map(|octet| match octet {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{octet:03o}").into_bytes(),
            octet => vec![*octet],
        })
        .collect();
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    mounts
        .split(|octet| *octet == b'\n')
        .filter_map(|line| line.split(|octet| *octet == b' ').nth(4))
        .any(|point| point == escaped)
}

#[cfg(not(target_os = "linux"))]
pub fn is_mount_point(_: &Path) -> bool {
    false
}
