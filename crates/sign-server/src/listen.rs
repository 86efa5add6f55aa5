//! Listening on an address or a Unix socket.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::client::Client;
use crate::options::Listen;
use crate::permissions::FileError;

pub(crate) enum Listener {
    Tcp(TcpListener),
    /// The file is removed first: the open socket keeps its inode number from being used again.
    Unix(SocketFile, UnixListener),
}

/// A connection over TCP or a Unix socket.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The file of a Unix socket, removed on drop unless the path has another file.
pub(crate) struct SocketFile {
    path: PathBuf,
    metadata: Metadata,
}

impl Listener {
    /// Starts to listen. A Unix socket gets the permissions `mode`.
    pub(crate) async fn bind(listen: &Listen, mode: u32) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Listen::Unix(path) => {
                let _lock = lock(path)?;
                remove_stale(path).await?;
                // main() has set the umask, so no other user can connect before the permissions are
                // set.
                let listener = UnixListener::bind(path)?;
                let file = SocketFile {
                    path: path.clone(),
                    metadata: symlink_metadata(path)?,
                };
                std::fs::set_permissions(path, Permissions::from_mode(mode))?;
                Ok(Self::Unix(file, listener))
            }
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(Stream, Client)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // An answer is one write, so there is nothing to coalesce.
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), Client::at(address)))
            }
            Self::Unix(_, listener) => {
                let (stream, _) = listener.accept().await?;
                let client = Client::of_process(&stream.peer_cred()?);
                Ok((Stream::Unix(stream), client))
            }
        }
    }

    /// The address in the format of `--listen`, with the actual port.
    pub(crate) fn address(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Self::Unix(file, _) => Ok(format!("unix:{}", file.path.display())),
        }
    }
}

/// Locks the file beside the socket at `path` that holds other servers off while this one takes the
/// path over. The file stays: if it were removed, two servers could lock two files of its name.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = Path::new(&name);
    let of_file = |error: io::Error| {
        let problem = match symlink_metadata(name).is_ok_and(|file| file.is_symlink()) {
            true => "the lock file is a symbolic link, which could create or lock any other file; remove \
                     it, and let only the user of the service write to its folder"
                .into(),
            false => error.to_string(),
        };
        io::Error::new(error.kind(), FileError::new(name, problem))
    };
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(name).map_err(of_file)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another server is about to listen on that socket",
        )),
        Err(TryLockError::Error(error)) => Err(of_file(error)),
    }
}

/// Removes the socket that a killed server has left: only a socket, and only if no process listens
/// on it.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => {
            let problem = "there is a file of that name, which is no socket";
            return Err(io::Error::new(ErrorKind::AlreadyExists, problem));
        }
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another server listens on that socket",
        )),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let id = |file: &Metadata| (file.dev(), file.ino());
        if symlink_metadata(&self.path).is_ok_and(|file| id(&file) == id(&self.metadata)) {
            // An error means that the file is already gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
