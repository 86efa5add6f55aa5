//! The program as its users meet it. What it signs is verified by the `rsa` crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::signature::Verifier;
use rsa::{PublicKey, pkcs1v15, pss};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

const KEY: &str = include_str!("../../../tests/keys/rsa2048-pkcs8.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../batch-modexp-rustls/tests/localhost.der");

/// A directory with two keys.
fn keys() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text| std::fs::write(directory.path().join(name), text).unwrap();
    write("main.pem", KEY);
    write(
        "old.key.pem",
        include_str!("../../../tests/keys/rsa1024.pem"),
    );
    write("pss.pem", include_str!("../../../tests/keys/pss.pem"));
    write("README", "not a key");
    directory
}

fn command(keys: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sign-server"));
    command.arg("--keys").arg(keys).args(options);
    command
}

struct Server {
    process: Child,
    words: BufReader<ChildStdout>,
    address: String,
    _keys: TempDir,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let keys = keys();
        let mut process = command(keys.path(), &["--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
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
            _keys: keys,
        }
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let socket = TcpStream::connect(&self.address).unwrap();
        talk(socket, method, path, body).unwrap()
    }

    fn get(&self, path: &str) -> (u16, String) {
        let (status, body) = self.ask("GET", path, b"");
        (status, String::from_utf8(body).unwrap())
    }

    /// Ends it as systemd does, and returns what it said after that.
    fn terminate(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        let mut rest = String::new();
        self.words.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // For tests that fail.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One request on a connection of its own: the status and the body.
fn talk(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &[u8],
) -> std::io::Result<(u16, Vec<u8>)> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|octets| octets == b"\r\n\r\n");
    let bad = || std::io::Error::other(format!("no answer: {answer:?}"));
    let end = end.ok_or_else(bad)?;
    let status = answer.get(9..12).and_then(|text| str::from_utf8(text).ok());
    let status = status.and_then(|text| text.parse().ok()).ok_or_else(bad)?;
    Ok((status, answer[end + 4..].to_vec()))
}

#[test]
fn what_it_signs_is_valid() {
    let server = Server::start(&[]);
    let (status, pem) = server.get("/keys/main");
    assert_eq!(status, 200);
    let public = PublicKey::from_public_key_pem(&pem).unwrap();
    assert_eq!(
        public,
        rsa::PrivateKey::from_pkcs8_pem(KEY)
            .unwrap()
            .to_public_key()
    );
    macro_rules! verify {
        ($($bits:literal, $hash:ident);*) => {$(
            for (path, body) in [
                ("sign", b"message".to_vec()),
                ("sign-digest", $hash::digest(b"message").to_vec()),
            ] {
                let sign = |scheme: &str| {
                    let path = format!("/{path}/main/{scheme}{}", $bits);
                    let (status, body) = server.ask("POST", &path, &body);
                    assert_eq!(status, 200, "{path}");
                    body
                };
                let signature = pkcs1v15::Signature::try_from(&sign("RS")[..]).unwrap();
                let verifier = pkcs1v15::VerifyingKey::<$hash>::new(public.clone());
                verifier.verify(b"message", &signature).unwrap();
                let signature = pss::Signature::try_from(&sign("PS")[..]).unwrap();
                let verifier = pss::VerifyingKey::<$hash>::new(public.clone());
                verifier.verify(b"message", &signature).unwrap();
            }
        )*};
    }
    verify!(256, Sha256; 384, Sha384; 512, Sha512);
    assert_eq!(server.ask("POST", "/sign/old.key/RS256", b"").0, 200);
    let (status, names) = server.get("/keys");
    assert_eq!(
        (status, &names[..]),
        (200, "main 2048\nold.key 1024\npss 1024\n")
    );
    let (status, metrics) = server.get("/metrics");
    assert_eq!(status, 200);
    for line in [
        "sign_requests_total 13",
        "sign_signatures_total 13",
        "sign_waiting 0",
        "sign_latency_seconds_count 13",
        "sign_latency_seconds_bucket{le=\"+Inf\"} 13",
        "sign_batch_size_sum 13",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}: {metrics}"
        );
    }
    assert!(server.terminate().starts_with("13 signatures in "));
}

#[test]
fn what_it_cannot_sign_is_refused() {
    let server = Server::start(&["--max-message", "1000"]);
    let post = |path, body: &[u8]| {
        let (status, text) = server.ask("POST", path, body);
        (status, String::from_utf8_lossy(&text).into_owned())
    };
    for path in [
        "/sign/none/RS256",
        "/sign/main/RS1",
        "/sign/main/XS256",
        "/sign/main/€",
        "/sign/main",
    ] {
        assert_eq!(post(path, b"m").0, 404, "{path}");
    }
    for (path, body) in [
        ("/sign-digest/main/RS256", &[0; 31][..]),
        ("/sign/pss/RS256", b"m"),
        ("/sign/old.key/PS512", b"m"),
    ] {
        let (status, text) = post(path, body);
        assert_eq!(status, 400, "{path}: {text}");
    }
    assert_eq!(post("/sign/main/RS256", &[0; 1000]).0, 200);
    assert_eq!(post("/sign/main/RS256", &[0; 1001]).0, 413);
    assert_eq!(server.get("/sign/main/RS256").0, 405);
    assert_eq!(server.get("/healthz"), (200, "ok\n".into()));
}

/// Who was accepted is answered, and then it ends.
#[test]
fn it_ends_when_asked_to() {
    let server = Server::start(&[]);
    let (address, signed) = (server.address.clone(), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (address, signed) = (address.clone(), signed.clone());
            thread::spawn(move || {
                // Until nobody listens any more.
                while let Ok(socket) = TcpStream::connect(&address) {
                    match talk(socket, "POST", "/sign/main/RS256", b"message") {
                        Ok((200, _)) => signed.fetch_add(1, SeqCst),
                        // Connected, but not accepted any more.
                        Ok((503, _)) | Err(_) => continue,
                        Ok(other) => panic!("{other:?}"),
                    };
                }
            })
        })
        .collect();
    while signed.load(SeqCst) < 50 {
        thread::yield_now();
    }
    let words = server.terminate();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    let count = signed.load(SeqCst);
    assert!(
        words.starts_with(&format!("{count} signatures in ")),
        "{count}: {words}"
    );
}

#[test]
fn it_does_not_start_with_what_is_wrong() {
    let failure = |keys: &Path, options: &[&str]| {
        let output = command(keys, options).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let keys = keys();
    let open = failure(keys.path(), &["--listen", "0.0.0.0:0"]);
    assert!(open.contains("--client-ca"), "{open}");
    let empty = tempfile::tempdir().unwrap();
    assert!(failure(empty.path(), &[]).contains("no keys"));
    assert!(failure(&empty.path().join("none"), &[]).contains("none"));
    std::fs::write(empty.path().join("bad.pem"), "nonsense").unwrap();
    assert!(failure(empty.path(), &[]).contains("bad.pem"));
    std::fs::write(empty.path().join("a b.pem"), KEY).unwrap();
    std::fs::remove_file(empty.path().join("bad.pem")).unwrap();
    assert!(failure(empty.path(), &[]).contains("a b.pem"));
}

#[test]
fn it_asks_who_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    // The same for both sides, and for the authority.
    let (key, certificate) = (path("key.pem"), path("certificate.pem"));
    std::fs::write(&key, KEY).unwrap();
    let der = path("certificate.der");
    std::fs::write(&der, CERTIFICATE).unwrap();
    let converted = Command::new("openssl")
        .args(["x509", "-inform", "der", "-in", &der, "-out", &certificate])
        .status();
    if !converted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: it_asks_who_is_there: needs openssl");
        return;
    }
    let server = Server::start(&[
        "--tls-certificates",
        &certificate,
        "--tls-key",
        &key,
        "--client-ca",
        &certificate,
    ]);
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFICATE.into()).unwrap();
    let client = || {
        let provider = rustls::crypto::ring::default_provider();
        ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
    };
    let sign = |config: ClientConfig| {
        let socket = TcpStream::connect(&server.address).unwrap();
        let connection = ClientConnection::new(config.into(), "localhost".try_into().unwrap());
        let stream = StreamOwned::new(connection.unwrap(), socket);
        talk(stream, "POST", "/sign/main/PS256", b"message")
    };
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let private = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let known = client().with_client_auth_cert(chain, private).unwrap();
    let (status, signature) = sign(known).unwrap();
    assert_eq!((status, signature.len()), (200, 256));
    sign(client().with_no_client_auth()).unwrap_err();
    assert!(server.terminate().starts_with("1 signatures in "));
}
