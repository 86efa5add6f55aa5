//! The record of requests and signatures: one line a request, in a file or on standard error.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::client::Client;

/// The longest field controlled by a client, in octets before encoding.
const LONGEST: usize = 256;

pub(crate) struct Record(Mutex<Sink>);

struct Sink {
    to: Box<dyn Write + Send>,
    /// Whether the last line may lack its end.
    is_torn: bool,
}

impl Record {
    /// Opens a file to append to, or standard error. A new file is private to its owner.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let to: Box<dyn Write + Send> = match path {
            None => Box::new(io::stderr()),
            Some(path) => Box::new(File::options().append(true).create(true).open(path)?),
        };
        Ok(Self::new(to))
    }

    fn new(to: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Sink { to, is_torn: false }))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sink.is_torn {
            sink.to.write_all(b"\n")?;
        }
        sink.is_torn = true;
        // One write for each line, so that lines do not mix.
        sink.to.write_all(format!("{line}\n").as_bytes())?;
        sink.is_torn = false;
        Ok(())
    }
}

/// A pending line. It is always written: if the client leaves before the answer, on drop.
pub(crate) struct Entry<'a> {
    record: &'a Record,
    client: Client,
    key: String,
    scheme: String,
    digest: String,
    is_written: bool,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(record: &'a Record, client: Client, key: &str, scheme: &str) -> Self {
        Self {
            record,
            client,
            key: encode(key),
            scheme: encode(scheme),
            digest: "-".into(),
            is_written: false,
        }
    }

    pub(crate) fn set_digest(&mut self, digest: &[u8]) {
        self.digest = hex(digest);
    }

    /// Writes the line. `outcome` needs no encoding.
    pub(crate) fn finish(mut self, outcome: &str, status: u16) -> io::Result<()> {
        self.is_written = true;
        self.write(outcome, &status.to_string())
    }

    fn write(&self, outcome: &str, status: &str) -> io::Result<()> {
        let Self {
            key,
            scheme,
            digest,
            ..
        } = self;
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let client = self.client.fields();
        self.record.write(&format!(
            "request time={time} key={key} scheme={scheme} digest={digest} outcome={outcome} status={status} {client}"
        ))
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            // An error is ignored: the client has left.
            let _ = self.write("left", "-");
        }
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
    use std::sync::Arc;

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
        let record = Record::new(Box::new(disk));
        record.write("first").unwrap();
        record.write("second").unwrap_err();
        *capacity.lock().unwrap() = 100;
        record.write("third").unwrap();
        record.write("fourth").unwrap();
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert_eq!(written, "first\nseco\nthird\nfourth\n");
    }
}
