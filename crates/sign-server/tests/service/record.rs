//! The record has one line for each request, whatever its content.

use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rsa::sha2::{Digest, Sha256};

use crate::server::{PATIENCE, Server, command, keys, talk_with};

/// The value of a field.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let found = line
        .split(' ')
        .find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name}: {line}"))
}

#[test]
fn who_asked_for_what() {
    let server = Server::start(&[]);
    let start = std::time::SystemTime::now() - Duration::from_secs(1);
    let socket = server.connect();
    let peer = socket.local_addr().unwrap().to_string();
    let lines = "Host: localhost\r\n";
    let answer = talk_with(socket, "POST", "/sign/main/PS256", lines, b"message");
    assert_eq!(answer.unwrap().0, 200);
    assert_eq!(
        server.ask("POST", "/sign-digest/main/RS256", &[0xab; 32]).0,
        200
    );
    assert_eq!(
        server.ask("POST", "/sign-digest/main/RS256", &[0xab; 31]).0,
        400
    );
    assert_eq!(server.ask("POST", "/sign/pss/RS256", b"message").0, 400);
    assert_eq!(server.ask("POST", "/sign/none/RS256", b"message").0, 404);
    // Not UTF-8.
    assert_eq!(server.ask("POST", "/sign/%FF/PS256", b"message").0, 400);
    // Other requests have no line.
    assert_eq!(server.get("/keys").0, 200);
    let record = server.record();
    let digest: String = Sha256::digest(b"message")
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let given = "ab".repeat(32);
    for (line, key, scheme, digest, outcome, status) in [
        (&record[0], "main", "PS256", &digest[..], "signed", "200"),
        (&record[1], "main", "RS256", &given, "signed", "200"),
        (&record[2], "main", "RS256", "-", "refused", "400"),
        (&record[3], "pss", "RS256", &digest, "refused", "400"),
        (&record[4], "none", "RS256", "-", "refused", "404"),
        (&record[5], "-", "-", "-", "refused", "400"),
    ] {
        let names = ["key", "scheme", "digest", "outcome", "status"];
        let found = names.map(|name| field(line, name));
        assert_eq!(found, [key, scheme, digest, outcome, status], "{line}");
        let time = humantime::parse_rfc3339(field(line, "time")).unwrap();
        assert!(
            start < time && time <= std::time::SystemTime::now(),
            "{line}"
        );
    }
    assert_eq!(record.len(), 6);
    assert_eq!(field(&record[0], "peer"), peer);
}

#[test]
fn lines_cannot_be_forged() {
    let server = Server::start(&[]);
    let forged = "/sign/main%0D%0Arequest%20key=main%20outcome=signed%00%E2%80%A8/RS256%0Ax";
    assert_eq!(server.ask("POST", forged, b"m").0, 404);
    let lines = "Host: localhost\r\nOrigin: x outcome=signed\r\n";
    let page = talk_with(server.connect(), "POST", "/sign/main/RS256", lines, b"m");
    assert_eq!(page.unwrap().0, 403);
    let record = server.record();
    assert_eq!(record.len(), 2, "{record:?}");
    for line in &record {
        assert_eq!(field(line, "outcome"), "refused");
        assert!(!line.contains("outcome=signed"), "{line}");
        assert!(
            line.bytes().all(|octet| (b' '..=b'~').contains(&octet)),
            "{line}"
        );
    }
    assert_eq!(field(&record[1], "status"), "403");
}

#[test]
fn clients_that_leave() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    let head = "POST /sign/main/RS256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nm";
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    let start = Instant::now();
    while server.record().is_empty() {
        assert!(start.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(10));
    }
    let record = server.record();
    assert!(
        ["left", "refused"].contains(&field(&record[0], "outcome")),
        "{record:?}"
    );
}

/// If the record cannot be written, no signature is returned.
#[test]
fn a_record_that_cannot_be_written() {
    let keys = keys();
    let options = ["--listen", "127.0.0.1:0", "--record", "/dev/full"];
    let server = Server::spawn(command(keys.path(), &options), keys);
    let (status, text) = server.ask("POST", "/sign/main/RS256", b"m");
    assert_eq!(status, 500);
    assert!(String::from_utf8(text).unwrap().contains("record"));
}

/// Without a record, the program does not start.
#[test]
fn a_standard_error_that_is_closed() {
    let keys = keys();
    // It cannot listen there, and ends after it has named its keys.
    let address = format!("unix:{}", keys.path().display());
    let words = |redirection: &str, options: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_sign-server"));
        shell.arg("--keys").arg(keys.path()).args(options);
        let output = shell.args(["--listen", &address]).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(words("2>&-", &[]), "");
    assert!(words("2>/dev/null", &[]).starts_with("key main"));
    assert!(words("2>&-", &["--record", "/dev/null"]).starts_with("key main"));
}

/// If nobody reads the record, signatures stay in the service, but it answers in time and ends.
#[test]
fn a_record_that_nobody_reads() {
    let keys = keys();
    let options = [
        "--listen",
        "127.0.0.1:0",
        "--request-timeout",
        "1",
        "--grace",
        "5",
    ];
    let mut command = command(keys.path(), &options);
    // A full pipe.
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 1 << 12]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    command.stderr(writer);
    let server = Server::spawn(command, keys);
    for _ in 0..8 {
        assert_eq!(server.ask("POST", "/sign/main/RS256", b"m").0, 503);
    }
    assert_eq!(server.get("/healthz").0, 200);
    let start = Instant::now();
    server.terminate();
    assert!(start.elapsed() < Duration::from_secs(8));
    drop(reader);
}
