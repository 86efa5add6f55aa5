//! Tests of the program from outside. The `rsa` crate verifies its signatures.

mod limits;
mod output;
mod record;
mod server;
mod trust;
mod unit;

use std::net::TcpStream;
use std::path::Path;
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

use crate::server::{CERTIFICATE, KEY, Server, failure, keys, talk, tls_options, write_secret};

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

/// Accepted requests are answered, and then the program ends.
#[test]
fn it_ends_when_asked_to() {
    let server = Server::start(&[]);
    let (address, signed) = (server.address.clone(), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (address, signed) = (address.clone(), signed.clone());
            thread::spawn(move || {
                // Until the listener is closed.
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
    let keys = keys();
    let open = failure(keys.path(), &["--listen", "0.0.0.0:0"]);
    assert!(open.contains("--client-ca"), "{open}");
    let empty = tempfile::tempdir().unwrap();
    assert!(failure(empty.path(), &[]).contains("no keys"));
    assert!(failure(&empty.path().join("none"), &[]).contains("none"));
    let bad = empty.path().join("bad.pem");
    for text in ["nonsense", ""] {
        write_secret(&bad, text);
        assert!(failure(empty.path(), &[]).contains("bad.pem"));
    }
    std::fs::write(&bad, b"\xff\xfe").unwrap();
    assert!(failure(empty.path(), &[]).contains("bad.pem"));
    let encrypted = include_str!("../../../../tests/keys/encrypted-pkcs8.pem");
    write_secret(&bad, encrypted);
    let words = failure(empty.path(), &[]);
    assert!(
        words.contains("bad.pem") && words.contains("encrypted"),
        "{words}"
    );
    std::fs::remove_file(&bad).unwrap();
    write_secret(&empty.path().join("a b.pem"), KEY);
    assert!(failure(empty.path(), &[]).contains("a b.pem"));
}

/// Errors of TLS name the file.
#[test]
fn it_does_not_start_with_wrong_tls_files() {
    let (keys, directory) = (keys(), tempfile::tempdir().unwrap());
    let tls = tls_options(directory.path());
    let tls = tls.each_ref().map(String::as_str);
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let wrong = |options: &[&str], text: &str| {
        let words = failure(keys.path(), &[&tls[..], options].concat());
        assert!(words.contains(text), "{words}");
    };
    let (empty, damaged, other) = (path("empty"), path("damaged"), path("other.key"));
    std::fs::write(&empty, KEY).unwrap();
    let block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&damaged, block).unwrap();
    wrong(&["--client-ca", &empty], "empty: there is no certificate");
    wrong(&["--client-ca", &damaged], &format!("{damaged}: "));
    let old = include_str!("../../../../tests/keys/rsa1024.pem");
    write_secret(Path::new(&other), old);
    for (certificates, key, text) in [
        (&empty, tls[3], "empty: there is no certificate"),
        (&damaged, tls[3], &damaged),
        (&path("certificate"), &other, &other),
    ] {
        let options = ["--tls-certificates", certificates, "--tls-key", key];
        let words = failure(keys.path(), &options);
        assert!(words.contains(text), "{words}");
    }
}

#[test]
fn it_asks_who_is_there() {
    let directory = tempfile::tempdir().unwrap();
    // The certificate serves both sides and the authority.
    let tls = tls_options(directory.path());
    let tls = tls.each_ref().map(String::as_str);
    let server = Server::start(&[&tls[..], &["--client-ca", tls[1]]].concat());
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
    // The record identifies the client.
    let record = server.record();
    let fingerprint = Sha256::digest(CERTIFICATE);
    let fingerprint: String = fingerprint
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let end = format!(" subject=CN%3Dlocalhost certificate={fingerprint}");
    assert!(record.len() == 1 && record[0].ends_with(&end), "{record:?}");
    assert!(server.terminate().starts_with("1 signatures in "));
}
