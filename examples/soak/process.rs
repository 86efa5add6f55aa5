//! Memory, files and threads of this process, from Linux's /proc.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::verdict::Handles;

/// Time for ending threads to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// Resident memory in bytes.
pub(crate) fn resident_memory() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok());
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has no VmRSS");
    Ok(kib.ok_or_else(missing)? << 10)
}

/// Open files and threads.
pub(crate) fn handles() -> io::Result<Handles> {
    Ok(Handles {
        files: fs::read_dir("/proc/self/fd")?.count(),
        threads: fs::read_dir("/proc/self/task")?.count(),
    })
}

/// Returns open files and threads once they are no more than `before`, or after some seconds.
pub(crate) fn handles_left(before: Handles) -> io::Result<Handles> {
    let started = Instant::now();
    loop {
        let now = handles()?;
        let is_less = now.files <= before.files && now.threads <= before.threads;
        if is_less || started.elapsed() > PATIENCE {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
