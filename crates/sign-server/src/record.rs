//! The record of requests and signatures: one line a request, in a file or on standard error.
//!
//! One thread writes, because a write waits for as long as the reader of a pipe takes nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
use tokio::sync::{mpsc, oneshot};

use crate::client::Client;
use crate::output::print_error;

/// The longest field controlled by a client, in octets before encoding.
const LONGEST: usize = 256;

/// Lines that may wait to be written, besides one for each connection.
const WAITING: usize = 1024;

/// Queues lines for the thread that writes them.
pub(crate) struct Record(mpsc::Sender<Line>);

struct Line {
    text: String,
    /// Takes the result of the write; absent if nobody waits for it.
    written: Option<oneshot::Sender<io::Result<()>>>,
}

impl Record {
    /// Opens a file to append to, or standard error. A new file is private to its owner.
    ///
    /// The thread ends when all lines are written and the record and its entries are dropped.
    pub(crate) fn open(
        path: Option<&Path>,
        connections: u32,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let to: Box<dyn Write + Send> = match path {
            None if is_closed(&io::stderr()) => {
                let problem = "standard error is closed or discarded; name --record FILE";
                return Err(io::Error::other(problem));
            }
            None => Box::new(io::stderr()),
            Some(path) => Box::new(File::options().append(true).create(true).open(path)?),
        };
        let (sender, mut lines) = mpsc::channel::<Line>(connections as usize + WAITING);
        let writer = thread::Builder::new()
            .name("record".into())
            .spawn(move || {
                let mut sink = Sink { to, is_torn: false };
                while let Some(Line { text, written }) = lines.blocking_recv() {
                    let result = sink.write(&text);
                    if let Err(error) = &result {
                        print_error(format_args!("cannot write the record: {error}"));
                    }
                    if let Some(written) = written {
                        // An error is ignored: nobody waits any more.
                        let _ = written.send(result);
                    }
                }
            })?;
        Ok((Self(sender), writer))
    }
}

/// Whether `output` was closed when the program started, such as by a shell's `2>&-`.
///
/// Rust's runtime then opens /dev/null instead, and output is lost silently. It opens it for
/// reading and writing, unlike `2>/dev/null`.
fn is_closed(output: &impl AsFd) -> bool {
    let is_null = match (fstat(output), stat("/dev/null")) {
        (Ok(file), Ok(null)) => (file.st_dev, file.st_ino) == (null.st_dev, null.st_ino),
        _ => false,
    };
    is_null && fcntl_getfl(output).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

struct Sink {
    to: Box<dyn Write + Send>,
    /// Whether the last line may lack its end.
    is_torn: bool,
}

impl Sink {
    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.is_torn {
            self.to.write_all(b"\n")?;
        }
        self.is_torn = true;
        // One write for each line, so that lines do not mix.
        self.to.write_all(format!("{line}\n").as_bytes())?;
        self.is_torn = false;
        Ok(())
    }
}

/// A pending line. It is always written: if the client leaves before the answer, on drop.
pub(crate) struct Entry {
    /// The place of the line in the queue; `None` when it is there.
    place: Option<mpsc::OwnedPermit<Line>>,
    client: Client,
    key: String,
    scheme: String,
    digest: String,
}

impl Entry {
    /// Returns `None` if too many lines wait to be written.
    pub(crate) fn new(record: &Record, client: Client, key: &str, scheme: &str) -> Option<Self> {
        let place = record.0.clone().try_reserve_owned().ok()?;
        Some(Self {
            place: Some(place),
            client,
            key: encode(key),
            scheme: encode(scheme),
            digest: "-".into(),
        })
    }

    pub(crate) fn set_digest(&mut self, digest: &[u8]) {
        self.digest = hex(digest);
    }

    /// Queues the line, and waits until it is written. `outcome` needs no encoding.
    ///
    /// The line is written even if the returned future is dropped after its first poll.
    pub(crate) async fn finish(mut self, outcome: &str, status: u16) -> io::Result<()> {
        let (written, result) = oneshot::channel();
        self.queue(outcome, &status.to_string(), Some(written));
        result
            .await
            .unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }

    fn queue(
        &mut self,
        outcome: &str,
        status: &str,
        written: Option<oneshot::Sender<io::Result<()>>>,
    ) {
        let Some(place) = self.place.take() else {
            return;
        };
        let Self {
            key,
            scheme,
            digest,
            ..
        } = self;
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let client = self.client.fields();
        let text = format!(
            "request time={time} key={key} scheme={scheme} digest={digest} outcome={outcome} status={status} {client}"
        );
        place.send(Line { text, written });
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Nothing remains to be queued after an answer.
        self.queue("left", "-", None);
    }
}

/// Encodes text from a client as one field. No octet in it can end a field or a line, or resemble
/// another field.
pub(crate) fn encode(text: &str) -> String {
    if text.is_empty() {
        return "-".into();
    }
    let mut field = String::new();
    for &octet in text.as_bytes().iter().take(LONGEST) {
        match octet {
            b'-' | b'_' | b'.' | b':' | b'/' | b',' | b'+' | b'@' => field.push(octet.into()),
            octet if octet.is_ascii_alphanumeric() => field.push(octet.into()),
            // Writing to a string does not fail.
            octet => drop(write!(field, "%{octet:02X}")),
        }
    }
    if text.len() > LONGEST {
        field.push_str("...");
    }
    field
}

pub(crate) fn hex(octets: &[u8]) -> String {
    let mut text = String::with_capacity(2 * octets.len());
    for octet in octets {
        let _ = write!(text, "{octet:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn nothing_in_a_field_ends_it() {
        let forged = "main\r\nrequest time=now outcome=signed\u{2028}%\t\"\\\0\u{1b}[2K";
        let field = encode(forged);
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.:/,+@%".contains(&octet);
        assert!(field.bytes().all(is_plain), "{field}");
        assert!(field.starts_with("main%0D%0Arequest%20time%3Dnow%20outcome%3Dsigned%E2"));
        assert_eq!(encode(""), "-");
        assert_eq!(encode(&"\n".repeat(300)), "%0A".repeat(256) + "...");
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }

    /// Each entry has a place for its line, until that is written.
    #[test]
    fn entries_without_a_place() {
        let (sender, mut lines) = mpsc::channel(1);
        let record = Record(sender);
        let client = || Client::at(([127, 0, 0, 1], 1).into());
        let entry = || Entry::new(&record, client(), "main", "RS256");
        let first = entry().unwrap();
        assert!(entry().is_none());
        drop(first);
        assert!(entry().is_none());
        let Line { text, written } = lines.try_recv().unwrap();
        assert!(text.contains(" outcome=left ") && written.is_none());
        assert!(entry().is_some());
    }

    /// Accepts `capacity` octets, and then fails.
    struct Disk {
        capacity: Arc<Mutex<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let mut capacity = self.capacity.lock().unwrap();
            let len = octets.len().min(*capacity);
            *capacity -= len;
            self.written.lock().unwrap().extend(&octets[..len]);
            match len {
                0 => Err(io::ErrorKind::StorageFull.into()),
                len => Ok(len),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A line truncated by a full disk does not run into the next one.
    #[test]
    fn lines_begin_on_lines_of_their_own() {
        let (capacity, written) = (Arc::new(Mutex::new(10)), Arc::default());
        let disk = Disk {
            capacity: Arc::clone(&capacity),
            written: Arc::clone(&written),
        };
        let mut sink = Sink {
            to: Box::new(disk),
            is_torn: false,
        };
        sink.write("first").unwrap();
        sink.write("second").unwrap_err();
        *capacity.lock().unwrap() = 100;
        sink.write("third").unwrap();
        sink.write("fourth").unwrap();
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert_eq!(written, "first\nseco\nthird\nfourth\n");
    }
}
