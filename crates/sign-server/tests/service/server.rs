//! The program, started for one test.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rsa::pkcs8::LineEnding;
use rsa::pkcs8::der::pem;
use tempfile::TempDir;

pub(crate) const KEY: &str = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
pub(crate) const CERTIFICATE: &[u8] =
    include_bytes!("../../../batch-modexp-rustls/tests/localhost.der");

/// Longest wait for an expected event; only failures take that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with three keys.
pub(crate) fn keys() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_secret(&path("main.pem"), KEY);
    let old = include_str!("../../../../tests/keys/rsa1024.pem");
    write_secret(&path("old.key.pem"), old);
    let pss = include_str!("../../../../tests/keys/pss.pem");
    write_secret(&path("pss.pem"), pss);
    std::fs::write(path("README"), "not a key").unwrap();
    directory
}

/// Writes a file that only its owner may read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    set_mode(path, 0o600);
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Options for TLS with a certificate for `localhost`, and its files in `directory`.
pub(crate) fn tls_options(directory: &Path) -> [String; 4] {
    let (key, certificate) = (directory.join("tls.key"), directory.join("certificate"));
    write_secret(&key, KEY);
    let text = pem::encode_string("CERTIFICATE", LineEnding::LF, CERTIFICATE).unwrap();
    std::fs::write(&certificate, text).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    [
        "--tls-certificates".into(),
        text(certificate),
        "--tls-key".into(),
        text(key),
    ]
}

pub(crate) fn command(keys: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sign-server"));
    command.arg("--keys").arg(keys).args(options);
    command
}

/// The error message of a program that does not start.
pub(crate) fn failure(keys: &Path, options: &[&str]) -> String {
    let output = command(keys, options).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) struct Server {
    process: Child,
    words: BufReader<ChildStdout>,
    pub(crate) address: String,
    keys: TempDir,
}

impl Server {
    /// Starts on a free port, with the record in a file.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::listen("127.0.0.1:0", options)
    }

    pub(crate) fn listen(address: &str, options: &[&str]) -> Self {
        let keys = keys();
        let record = keys.path().join("record");
        let mut command = command(keys.path(), &["--listen", address]);
        command.arg("--record").arg(record).args(options);
        Self::spawn(command, keys)
    }

    pub(crate) fn spawn(mut command: Command, keys: TempDir) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(words.read_line(&mut line).unwrap(), 0, "it has not started");
            if let Some(address) = line.strip_prefix("listens on ") {
                break address.trim().into();
            }
        };
        Self {
            process,
            words,
            address,
            keys,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn connect_unix(&self) -> UnixStream {
        UnixStream::connect(self.address.strip_prefix("unix:").unwrap()).unwrap()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        talk(self.connect(), method, path, body).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let (status, body) = self.ask("GET", path, b"");
        (status, String::from_utf8(body).unwrap())
    }

    /// The lines of the record.
    pub(crate) fn record(&self) -> Vec<String> {
        let record = std::fs::read_to_string(self.keys.path().join("record")).unwrap();
        assert!(record.is_empty() || record.ends_with('\n'));
        record.lines().map(String::from).collect()
    }

    /// Ends the program as systemd does, and returns its remaining output.
    pub(crate) fn terminate(mut self) -> String {
        self.signal("TERM");
        let mut rest = String::new();
        self.words.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        rest
    }

    /// Ends the program while its standard output is closed.
    pub(crate) fn terminate_unheard(mut self) -> ExitStatus {
        let mut nobody = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
        self.words = BufReader::new(nobody.stdout.take().unwrap());
        nobody.wait().unwrap();
        self.signal("TERM");
        self.process.wait().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // For failed tests.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends one request on `stream`; returns status and body.
pub(crate) fn talk(
    stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &[u8],
) -> std::io::Result<(u16, Vec<u8>)> {
    talk_with(stream, method, path, "Host: localhost\r\n", body)
}

/// Sends one request with other header lines.
pub(crate) fn talk_with(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    lines: &str,
    body: &[u8],
) -> std::io::Result<(u16, Vec<u8>)> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    answer(stream)
}

/// Reads an answer until the connection ends.
pub(crate) fn answer(mut stream: impl Read) -> std::io::Result<(u16, Vec<u8>)> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // The server did not read all that was sent.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !answer.is_empty() => {}
        read => drop(read?),
    }
    let end = answer.windows(4).position(|octets| octets == b"\r\n\r\n");
    let bad = || std::io::Error::other(format!("no answer: {answer:?}"));
    let end = end.ok_or_else(bad)?;
    let status = answer.get(9..12).and_then(|text| str::from_utf8(text).ok());
    let status = status.and_then(|text| text.parse().ok()).ok_or_else(bad)?;
    Ok((status, answer[end + 4..].to_vec()))
}
