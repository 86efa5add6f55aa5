//! A temporary file beside the one that it will replace. It is removed however the program ends: by
//! an error, a panic, or a signal. It stays only if a copy of it may be incomplete.

use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// The files that a signal must remove. The lock is held while one is made or renamed, so that a
/// signal finds it under its name or not at all. One that an error has removed stays in the list.
static REMOVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub struct Temporary(NamedTempFile);

impl Temporary {
    /// Creates a file in `folder` with `permissions`, less the user's mask.
    pub fn new(folder: &Path, permissions: Option<Permissions>) -> io::Result<Self> {
        #[cfg(unix)]
        signals::watch_once()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".sign_batch-");
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        let mut remove = to_remove();
        let file = builder.tempfile_in(folder)?;
        remove.push(file.path().into());
        Ok(Self(file))
    }

    /// Sets the permissions, whatever the user's mask.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.0.as_file().set_permissions(permissions)
    }

    /// Renames the file to `path`, and replaces an existing file.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        let mut remove = to_remove();
        let name = self.0.path().to_owned();
        self.0.persist(path).map_err(|error| error.error)?;
        remove.retain(|path| *path != name);
        Ok(())
    }

    /// Renames the file to `path`, or fails if that exists.
    pub fn persist_new(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        let mut remove = to_remove();
        let name = self.0.path().to_owned();
        self.0
            .persist_noclobber(path)
            .map_err(|error| error.error)?;
        remove.retain(|path| *path != name);
        Ok(())
    }

    /// Copies the file over `original`, and removes it. If that fails, the file stays, and the
    /// error names it.
    pub fn copy_to(mut self, mut original: File) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        self.0.rewind()?;
        // A signal waits until the copy is complete.
        let mut remove = to_remove();
        let name = self.0.path().to_owned();
        remove.retain(|path| *path != name);
        let copied = original
            .set_len(0)
            .and_then(|()| io::copy(&mut self.0, &mut original))
            .and_then(|_| original.sync_all());
        match copied {
            Ok(()) => self.0.close(),
            Err(error) => {
                self.0.disable_cleanup(true);
                let text = format!(
                    "{error}; the output may be incomplete, {} is whole",
                    name.display()
                );
                Err(io::Error::new(error.kind(), text))
            }
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn to_remove() -> MutexGuard<'static, Vec<PathBuf>> {
    REMOVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Watches for signals from the first call on.
    pub fn watch_once() -> io::Result<()> {
        static IS_WATCHED: Mutex<bool> = Mutex::new(false);
        let mut is_watched = IS_WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_watched {
            watch()?;
            *is_watched = true;
        }
        Ok(())
    }

    /// Starts a thread that waits for interrupt, terminate and hang-up. It removes the files, and
    /// then lets the signal end the program as usual.
    fn watch() -> io::Result<()> {
        let ignored = ignored();
        let watched = [SIGHUP, SIGINT, SIGTERM]
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let mut signals = Signals::new(watched)?;
        thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                // Held until the end, so that no other file is created.
                let remove = super::to_remove();
                for path in &*remove {
                    // An error is ignored: the file is gone, or the program ends anyway.
                    let _ = std::fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
            }
        })?;
        Ok(())
    }

    /// The signals that are ignored since the start, as by `nohup`; signal n is bit n - 1. Zero
    /// without procfs.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    }
}
