//! Limits on the time, memory and queue space that a client can hold.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::{PATIENCE, Server, answer, talk, tls_options};

/// Reads everything until the server ends the connection, which it must do.
fn until_the_end(mut stream: TcpStream) -> Vec<u8> {
    let mut words = Vec::new();
    match stream.read_to_end(&mut words) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        read => drop(read.expect("the connection is still open")),
    }
    words
}

#[test]
fn headers_that_do_not_end() {
    let server = Server::start(&["--idle-timeout", "1"]);
    let mut stopped = server.connect();
    stopped.write_all(b"GET /keys HTTP/1.1\r\nHost:").unwrap();
    until_the_end(stopped);
    // Single octets do not extend the limit.
    let (mut slow, start) = (server.connect(), Instant::now());
    slow.write_all(b"GET /keys HTTP/1.1\r\nX: ").unwrap();
    while slow.write_all(b"x").is_ok() {
        assert!(start.elapsed() < PATIENCE, "the connection is still open");
        thread::sleep(Duration::from_millis(100));
    }
    let mut long = server.connect();
    long.write_all(b"GET /keys HTTP/1.1\r\nHost: localhost\r\nX: ")
        .unwrap();
    let _ = long.write_all(&[b'x'; 20_000]);
    assert_eq!(answer(long).unwrap().0, 431);
}

#[test]
fn connections_that_are_idle() {
    let server = Server::start(&["--idle-timeout", "1"]);
    assert!(until_the_end(server.connect()).is_empty());
    let mut asked = server.connect();
    asked
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(until_the_end(asked).starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn bodies_that_do_not_end() {
    let server = Server::start(&["--transfer-timeout", "1"]);
    let head = "POST /sign/main/RS256 HTTP/1.1\r\nHost: localhost\r\n";
    for rest in [
        "Content-Length: 2\r\n\r\nx",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nx",
    ] {
        let mut stream = server.connect();
        stream
            .write_all(format!("{head}{rest}").as_bytes())
            .unwrap();
        assert_eq!(answer(stream).unwrap().0, 408, "{rest}");
    }
    // A complete request is answered.
    assert_eq!(server.ask("POST", "/sign/main/RS256", b"m").0, 200);
}

/// The time limit of a request includes its body.
#[test]
fn requests_that_take_too_long() {
    let server = Server::start(&["--transfer-timeout", "1000", "--request-timeout", "1"]);
    let mut stream = server.connect();
    let head = "POST /sign/main/RS256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(answer(stream).unwrap().0, 503);
}

#[test]
fn handshakes_that_do_not_end() {
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    let tls = tls.each_ref().map(String::as_str);
    let server = Server::start(&[&tls[..], &["--transfer-timeout", "1"]].concat());
    assert!(until_the_end(server.connect()).is_empty());
}

#[test]
fn answers_that_nobody_takes() {
    let server = Server::start(&["--transfer-timeout", "1"]);
    let (mut stream, start) = (server.connect(), Instant::now());
    let requests = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let error = loop {
        if let Err(error) = stream.write_all(requests.as_bytes()) {
            break error;
        }
        assert!(start.elapsed() < PATIENCE, "it reads for ever");
    };
    // `WouldBlock` would be the client's own time limit.
    let ends = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(ends.contains(&error.kind()), "{error}");
}

#[test]
fn more_connections_than_there_may_be() {
    let server = Server::start(&["--max-connections", "2"]);
    let idle = [server.connect(), server.connect()];
    let mut third = server.connect();
    third
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let early = third.read(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    drop(idle);
    assert_eq!(answer(third).unwrap().0, 200);
}

/// The resident memory of a process in bytes.
fn memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib << 10
}

/// 300 messages of one MiB, each without its last octet.
#[test]
fn messages_take_no_memory() {
    let server = Server::start(&["--transfer-timeout", "1000", "--request-timeout", "1000"]);
    let before = memory(server.id());
    let len = 1 << 20;
    let head = format!(
        "POST /sign/main/RS256 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + len - 1, b'x');
    let mut streams: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&request).unwrap();
            stream
        })
        .collect();
    // Unread octets are in the kernel's memory.
    thread::sleep(Duration::from_millis(500));
    let grown = memory(server.id()).saturating_sub(before);
    assert!(grown < 50 << 20, "{grown} bytes");
    let mut last = streams.pop().unwrap();
    last.write_all(b"x").unwrap();
    let (status, signature) = answer(last).unwrap();
    let whole = vec![b'x'; len];
    assert_eq!(
        (status, &signature),
        (200, &server.ask("POST", "/sign/main/RS256", &whole).1)
    );
}

/// Many requests for one key do not block those for others.
#[test]
fn one_key_does_not_fill_the_queue() {
    let server = Server::start(&["--capacity", "4", "--key-capacity", "2"]);
    let (refused, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    match talk(server.connect(), "POST", "/sign/main/RS256", b"m") {
                        Ok((200, _)) => {}
                        Ok((503, _)) => drop(refused.fetch_add(1, SeqCst)),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let others: Vec<_> = (0..100)
            .map(|_| talk(server.connect(), "POST", "/sign/old.key/RS256", b"m"))
            .collect();
        let start = Instant::now();
        while refused.load(SeqCst) == 0 && start.elapsed() < PATIENCE {
            thread::yield_now();
        }
        is_over.store(true, SeqCst);
        for other in others {
            assert_eq!(other.unwrap().0, 200);
        }
    });
    assert_ne!(refused.into_inner(), 0);
}

/// HTTP/2 has streams and settings that no limit here counts.
#[test]
fn nobody_speaks_http_2() {
    let server = Server::start(&["--idle-timeout", "1"]);
    let mut stream = server.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    stream
        .write_all(&[&preface[..], &settings].concat())
        .unwrap();
    let words = until_the_end(stream);
    assert!(
        words.is_empty() || words.starts_with(b"HTTP/1.1 4"),
        "{words:?}"
    );
}
