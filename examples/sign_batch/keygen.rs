//! Generates keys, each in its own file.

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::rsa::{GeneratedKey, KeyGenerator};
use getrandom::SysRng;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::args::KeygenArgs;
use super::failure::Failure;
use super::stdio;
use super::temporary::Temporary;

/// Threads that write keys.
const WRITERS: usize = 16;

/// The number of generated keys and the time for them.
struct Summary {
    count: usize,
    took: Duration,
}

pub fn run(args: &KeygenArgs) -> Result<(), Failure> {
    let kind = if args.gpus { Kind::GpuOrCpu } else { Kind::Cpu };
    let backend = Auto::with(kind, args.threads)?;
    let generator = KeyGenerator::new(&backend, args.bits)?;
    let mut generator = generator.public_exponent(args.exponent)?;
    if args.safe_primes {
        generator = generator.safe_primes();
    }
    let folder = Folder::new(&args.out_dir, args.count)?;
    if args.gpus && backend.name() != "cuda" && !args.quiet {
        let reason = backend.reason();
        stdio::note(&format!(
            "note: the processor tests all candidates: {reason}"
        ));
    }
    let progress = match args.quiet {
        true => ProgressBar::hidden(),
        false => progress_bar(args.count),
    };
    let started = Instant::now();
    generate_all(&generator, &folder, args.count.get(), &progress)?;
    progress.finish_and_clear();
    let summary = Summary {
        count: args.count.get(),
        took: started.elapsed(),
    };
    summary.print(args, &backend)
}

/// Generates keys in groups, and writes each group while the next one is generated.
fn generate_all(
    generator: &KeyGenerator<&Auto>,
    folder: &Folder<'_>,
    count: usize,
    progress: &ProgressBar,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut writing = None;
        let mut generated = 0;
        while generated < count {
            let missing = count - generated;
            let keys = generator.generate(&mut SysRng, missing.min(generator.granularity()))?;
            let first = generated + 1;
            generated += keys.len();
            writing.take().map_or(Ok(()), joined)?;
            let write = move || {
                folder.write_all(first, &keys, progress)?;
                folder.sync()
            };
            let thread = thread::Builder::new().spawn_scoped(scope, write);
            writing = Some(thread.map_err(no_thread)?);
        }
        writing.map_or(Ok(()), joined)
    })
}

/// The result of a thread. If it has panicked, so does this one.
fn joined(thread: ScopedJoinHandle<'_, Result<(), Failure>>) -> Result<(), Failure> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn no_thread(error: io::Error) -> Failure {
    Failure::Work(format!("the system refuses a thread for writing: {error}"))
}

/// The folder for the keys.
struct Folder<'a> {
    path: &'a Path,
    /// The folders whose entries are synchronized: the folder, and those in which it and folders
    /// above it were created.
    #[cfg(unix)]
    entries: Vec<fs::File>,
}

impl<'a> Folder<'a> {
    /// Creates the folder if it does not exist, and refuses to overwrite files.
    fn new(path: &'a Path, count: NonZeroUsize) -> Result<Self, Failure> {
        let unusable =
            |error| Failure::Input(format!("cannot use the folder {}: {error}", path.display()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if path.is_file() {
            return Err(Failure::Input(format!(
                "{} is a file; name a folder",
                path.display()
            )));
        }
        #[cfg(unix)]
        let parents: Vec<_> = path
            .ancestors()
            .take_while(|folder| *folder != Path::new("") && !folder.exists())
            .filter_map(Path::parent)
            .collect();
        builder.recursive(true).create(path).map_err(unusable)?;
        #[cfg(unix)]
        let entries = parents.into_iter().filter_map(|folder| {
            let here = folder == Path::new("");
            // Some folders can be written but not read, and thus not synchronized.
            fs::File::open(if here { Path::new(".") } else { folder }).ok()
        });
        let folder = Self {
            path,
            #[cfg(unix)]
            entries: entries
                .chain([fs::File::open(path).map_err(unusable)?])
                .collect(),
        };
        for number in 1..=count.get() {
            let file = folder.file(number);
            if file.symlink_metadata().is_ok() {
                return Err(Failure::Input(format!(
                    "{} is there already; keys replace no file, name another folder",
                    file.display()
                )));
            }
        }
        Ok(folder)
    }

    fn file(&self, number: usize) -> PathBuf {
        // The same name in every run, so that no folder gets two sets of keys unnoticed.
        self.path.join(format!("key-{number:06}.pem"))
    }

    /// Writes keys on several threads, because each waits until its file is on the disk. The first
    /// key has the number `first`.
    fn write_all(
        &self,
        first: usize,
        keys: &[GeneratedKey],
        progress: &ProgressBar,
    ) -> Result<(), Failure> {
        let share = keys.len().div_ceil(WRITERS).max(1);
        thread::scope(|scope| {
            let write = |(number, keys): (usize, &[GeneratedKey])| {
                for (number, key) in (number..).zip(keys) {
                    self.write(number, key)?;
                    progress.inc(1);
                }
                Ok(())
            };
            let shares = (first..).step_by(share).zip(keys.chunks(share));
            let start = |share| thread::Builder::new().spawn_scoped(scope, move || write(share));
            let threads: Vec<_> = shares.map(start).collect();
            let finish = |thread: io::Result<_>| joined(thread.map_err(no_thread)?);
            threads.into_iter().try_for_each(finish)
        })
    }

    /// Waits until the names of the files and of new folders are on the disk.
    fn sync(&self) -> Result<(), Failure> {
        #[cfg(unix)]
        for folder in &self.entries {
            match folder.sync_all() {
                // A file system that cannot synchronize folders.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                synced => synced.map_err(|error| {
                    Failure::unwritable(&self.path.display().to_string(), &error)
                })?,
            }
        }
        Ok(())
    }

    /// Writes a key atomically, readable by its owner alone.
    fn write(&self, number: usize, key: &GeneratedKey) -> Result<(), Failure> {
        let path = self.file(number);
        // Temporary files are readable by their owner alone.
        let write = || {
            let mut file = Temporary::new(self.path, None)?;
            file.write_all(key.to_pkcs8_pem().as_bytes())?;
            file.persist_new(&path)
        };
        write().map_err(|error| Failure::unwritable(&path.display().to_string(), &error))
    }
}

impl Summary {
    fn print(&self, args: &KeygenArgs, backend: &Auto) -> Result<(), Failure> {
        let seconds = self.took.as_secs_f64();
        let per_second = self.count as f64 / seconds.max(1e-9);
        if args.json {
            let summary = json!({
                "keys": self.count,
                "bits": args.bits,
                "public_exponent": args.exponent,
                "backend": backend.name(),
                "backend_reason": backend.reason(),
                "threads": backend.threads(),
                "seconds": seconds,
                "per_second": per_second,
            });
            return stdio::print(&format!("{summary}\n"));
        }
        if !args.quiet {
            stdio::note(&format!(
                "{} keys of {} bits in {}, {per_second:.1} a second",
                self.count,
                args.bits,
                args.out_dir.display()
            ));
        }
        Ok(())
    }
}

/// A progress bar on a terminal; hidden in a pipe or a file.
fn progress_bar(count: NonZeroUsize) -> ProgressBar {
    let bar = ProgressBar::new(count.get() as u64);
    match ProgressStyle::with_template(
        "generating {wide_bar} {human_pos} of {human_len}, {eta} left",
    ) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
