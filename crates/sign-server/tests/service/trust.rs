//! Tests of which clients are admitted, and which files are accepted as keys.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::server::{Server, command, failure, keys, set_mode, talk, talk_with, tls_options};

#[test]
fn web_pages_get_no_signatures() {
    let server = Server::start(&["--host", "sign.example"]);
    let ask = |lines: &str| {
        let answer = talk_with(server.connect(), "POST", "/sign/main/RS256", lines, b"m");
        answer.unwrap().0
    };
    let known = [
        "localhost",
        "localhost:8080",
        "127.0.0.1:1",
        "[::1]",
        "Sign.Example",
    ];
    for host in known {
        assert_eq!(ask(&format!("Host: {host}\r\n")), 200, "{host}");
    }
    for lines in [
        "",
        "Host: evil.example\r\n",
        "Host: localhost.evil.example:8080\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(ask(lines), 403, "{lines}");
    }
    // Other paths are refused too.
    for path in ["/keys", "/keys/main", "/metrics", "/healthz", "/none"] {
        let lines = "Host: evil.example\r\n";
        let answer = talk_with(server.connect(), "GET", path, lines, b"");
        assert_eq!(answer.unwrap().0, 403, "{path}");
    }
    assert!(
        server
            .terminate()
            .starts_with(&format!("{} signatures in ", known.len()))
    );
}

/// Over TLS, host names are checked only if some are configured.
#[test]
fn names_over_tls() {
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    let tls = tls.each_ref().map(String::as_str);
    let mut roots = RootCertStore::empty();
    roots.add(crate::server::CERTIFICATE.into()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for (options, status) in [(&[][..], 200), (&["--host", "sign.example"], 403)] {
        let server = Server::start(&[&tls[..], options].concat());
        let connection =
            ClientConnection::new(config.clone().into(), "localhost".try_into().unwrap());
        let stream = StreamOwned::new(connection.unwrap(), server.connect());
        let lines = "Host: other.example\r\n";
        let answer = talk_with(stream, "POST", "/sign/main/RS256", lines, b"m");
        assert_eq!(answer.unwrap().0, status);
    }
}

#[test]
fn unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let address = format!("unix:{}", path.display());
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    let sign = |server: &Server| {
        // Any name is accepted.
        let lines = "Host: anything.example\r\n";
        talk_with(
            server.connect_unix(),
            "POST",
            "/sign/main/RS256",
            lines,
            b"m",
        )
        .unwrap()
    };
    let server = Server::listen(&address, &[]);
    assert_eq!(mode(), 0o600);
    assert_eq!(sign(&server).0, 200);
    let lines = "Host: localhost\r\nOrigin: http://evil.example\r\n";
    let page = talk_with(
        server.connect_unix(),
        "POST",
        "/sign/main/RS256",
        lines,
        b"m",
    );
    assert_eq!(page.unwrap().0, 403);
    // The client is this process.
    let record = server.record();
    let end = format!(" pid={}", std::process::id());
    let is_mine = |line: &String| line.contains(" uid=") && line.ends_with(&end);
    assert!(record.iter().all(is_mine), "{record:?}");
    assert_eq!(record.len(), 2);

    // A second server does not take over the socket of the first.
    let keys = keys();
    let words = failure(keys.path(), &["--listen", &address]);
    assert!(words.contains("another server"), "{words}");
    assert_eq!(sign(&server).0, 200);
    // A killed server leaves its socket behind, which two servers may want to replace.
    server.signal("KILL");
    drop(server);
    assert!(path.exists());
    let lock = File::options()
        .append(true)
        .open(directory.path().join("socket.lock"));
    let lock = lock.unwrap();
    lock.lock().unwrap();
    let words = failure(keys.path(), &["--listen", &address]);
    assert!(words.contains("another server is about to"), "{words}");
    assert!(path.exists());
    drop(lock);
    let server = Server::listen(&address, &["--socket-mode", "660"]);
    assert_eq!(mode(), 0o660);
    assert_eq!(sign(&server).0, 200);
    server.terminate();
    assert!(!path.exists());
    // A server that ends leaves the socket of its successor alone.
    let first = Server::listen(&address, &[]);
    std::fs::remove_file(&path).unwrap();
    let second = Server::listen(&address, &[]);
    first.terminate();
    assert_eq!(sign(&second).0, 200);
    second.terminate();
    assert!(!path.exists());

    std::fs::write(&path, "precious").unwrap();
    let words = failure(keys.path(), &["--listen", &address]);
    assert!(words.contains("no socket"), "{words}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert!(failure(keys.path(), &["--listen", "unix:socket"]).contains("begins with /"));
}

/// A lock file that another user has planted neither locks nor creates a file elsewhere.
#[test]
fn a_lock_file_that_is_a_link() {
    let (keys, directory) = (keys(), tempfile::tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    let address = format!("unix:{}", path("socket").display());
    // Locked, so that a server that follows the first link fails too, with another message.
    let precious = File::create(path("precious")).unwrap();
    precious.lock().unwrap();
    for target in ["precious", "missing"] {
        std::os::unix::fs::symlink(path(target), path("socket.lock")).unwrap();
        let words = failure(keys.path(), &["--listen", &address]);
        let is_clear = ["socket.lock: ", "symbolic link", "remove it"]
            .iter()
            .all(|text| words.contains(text));
        assert!(is_clear, "{words}");
        assert!(!path("missing").exists() && !path("socket").exists());
        std::fs::remove_file(path("socket.lock")).unwrap();
    }
    Server::listen(&address, &[]).terminate();
}

/// Whether the tests run as root, who owns the files then.
fn is_root(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().uid() == 0
}

#[test]
fn keys_that_others_can_read_or_write() {
    let keys = keys();
    let main = keys.path().join("main.pem");
    let mut modes = vec![0o644, 0o660, 0o602, 0o601, 0o777];
    if !is_root(&main) {
        modes.push(0o640);
    }
    for mode in modes {
        set_mode(&main, mode);
        let words = failure(keys.path(), &[]);
        let is_clear = ["main.pem", &format!("{mode:04o}"), "chmod 600"]
            .iter()
            .all(|text| words.contains(text));
        assert!(is_clear, "{mode:o}: {words}");
    }
    set_mode(&main, 0o600);
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    set_mode(Path::new(&tls[3]), 0o644);
    let words = failure(keys.path(), &tls.each_ref().map(String::as_str));
    assert!(
        words.contains("tls.key") && words.contains("0644"),
        "{words}"
    );
    for mode in [0o770, 0o707, 0o1777] {
        set_mode(keys.path(), mode);
        let words = failure(keys.path(), &[]);
        assert!(words.contains("replace keys"), "{words}");
    }
    set_mode(keys.path(), 0o700);
    // The parents of the folder are checked too.
    let nested = keys.path().join("open").join("keys");
    std::fs::create_dir_all(&nested).unwrap();
    std::fs::copy(&main, nested.join("main.pem")).unwrap();
    set_mode(nested.parent().unwrap(), 0o777);
    assert!(failure(&nested, &[]).contains("replace keys"));
    set_mode(nested.parent().unwrap(), 0o1777);
    let server = Server::spawn(command(&nested, &["--listen", "127.0.0.1:0"]), keys);
    assert_eq!(server.ask("POST", "/sign/main/RS256", b"m").0, 200);
}

#[test]
fn keys_of_other_users() {
    let keys = keys();
    let main = keys.path().join("main.pem");
    if !is_root(&main) {
        eprintln!("skipped: keys_of_other_users: only root can give files away");
        return;
    }
    for path in [&main, keys.path()] {
        std::os::unix::fs::chown(path, Some(12345), None).unwrap();
        let words = failure(keys.path(), &[]);
        assert!(words.contains("belongs to user 12345"), "{words}");
        std::os::unix::fs::chown(path, Some(0), None).unwrap();
    }
    // As systemd provides credentials.
    set_mode(&main, 0o440);
    let server = Server::spawn(command(keys.path(), &["--listen", "127.0.0.1:0"]), keys);
    assert_eq!(
        talk(server.connect(), "POST", "/sign/main/RS256", b"m")
            .unwrap()
            .0,
        200
    );
}
