//! Handshakes whose signatures clients verify: rustls in memory, and OpenSSL over a socket.

#[path = "../../../tests/common/need.rs"]
mod need;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use batch_modexp::backend::Cpu;
use batch_modexp::queue::{BatchQueue, QueueError, Shutdown};
use batch_modexp::rsa::KeyHandle;
use batch_modexp_rustls::QueueSigningKey;
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::sign::{SigningKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
    StreamOwned, SupportedProtocolVersion,
};

fn key() -> KeyHandle {
    KeyHandle::from_pkcs8_pem(include_str!("../../../tests/keys/rsa2048-pkcs8.pem")).unwrap()
}

fn queue() -> BatchQueue {
    BatchQueue::new(Cpu::new().unwrap(), getrandom::SysRng).unwrap()
}

/// Self-signed certificate of the key above.
fn certificate() -> CertificateDer<'static> {
    CertificateDer::from(&include_bytes!("localhost.der")[..])
}

fn server(queue: &BatchQueue, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
    let key = QueueSigningKey::new(queue, &key()).unwrap();
    let certified = key.certified(vec![certificate()]).unwrap();
    let config = ServerConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    Arc::new(config)
}

fn client(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).unwrap();
    let mut config = ClientConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A resumed session needs no signature.
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// Exchanges messages until neither side is handshaking.
fn handshake(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Result<(), rustls::Error> {
    let mut client = ClientConnection::new(client, "localhost".try_into().unwrap())?;
    let mut server = ServerConnection::new(server)?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets()?;
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut wire = &wire[..];
        while !wire.is_empty() {
            client.read_tls(&mut wire).unwrap();
            client.process_new_packets()?;
        }
    }
    Ok(())
}

#[test]
fn rustls_accepts_what_was_signed() {
    let queue = queue();
    for version in [&TLS12, &TLS13] {
        let (client, server) = (client(version), server(&queue, version));
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| handshake(client.clone(), server.clone()).unwrap());
            }
        });
    }
    assert_eq!(queue.stats().signed, 40);
}

/// OpenSSL's report on the signature.
fn openssl(port: u16, options: &[&str]) -> String {
    let chain = std::env::temp_dir().join(format!(
        "batch-modexp-rustls-{}-{port}.pem",
        std::process::id()
    ));
    let mut convert = Command::new("openssl")
        .args(["x509", "-inform", "der", "-out"])
        .arg(&chain)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    convert
        .stdin
        .take()
        .unwrap()
        .write_all(&certificate())
        .unwrap();
    assert!(convert.wait().unwrap().success());
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-brief",
            "-verify_return_error",
            "-verify_hostname",
            "localhost",
        ])
        .args([
            "-servername",
            "localhost",
            "-connect",
            &format!("127.0.0.1:{port}"),
            "-CAfile",
        ])
        .arg(&chain)
        .args(options)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::remove_file(&chain).unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{options:?}: {words}");
    words
}

#[test]
fn openssl_accepts_what_was_signed() {
    let version = Command::new("openssl").arg("version").output();
    if need::available("openssl", version).is_none() {
        return;
    }
    let queue = queue();
    for (version, options, hash, scheme) in [
        (&TLS13, &["-tls1_3"][..], "SHA256", "RSA-PSS"),
        (&TLS13, &["-sigalgs", "RSA-PSS+SHA384"], "SHA384", "RSA-PSS"),
        (&TLS13, &["-sigalgs", "RSA-PSS+SHA512"], "SHA512", "RSA-PSS"),
        (&TLS12, &["-tls1_2"], "SHA256", "RSA-PSS"),
        (&TLS12, &["-sigalgs", "RSA+SHA256"], "SHA256", "RSA"),
        (&TLS12, &["-sigalgs", "RSA+SHA384"], "SHA384", "RSA"),
        (&TLS12, &["-sigalgs", "RSA+SHA512"], "SHA512", "RSA"),
    ] {
        let config = server(&queue, version);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let connection = ServerConnection::new(config).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            // Until the client ends, perhaps by closing the socket.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let words = openssl(port, options);
        for line in [
            format!("Hash used: {hash}"),
            format!("Signature type: {scheme}"),
            "Verification: OK".into(),
        ] {
            assert!(
                words.lines().any(|found| found == line),
                "no {line} in {words}"
            );
        }
        serving.join().unwrap();
    }
    assert_eq!(queue.stats().signed, 7);
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let other = include_str!("../../../tests/keys/rsa2048.pem");
    let other = KeyHandle::from_pkcs1_pem(other).unwrap();
    let key = QueueSigningKey::new(&queue(), &other).unwrap();
    assert!(key.clone().certified(vec![certificate()]).is_err());
    assert!(key.certified(Vec::new()).is_err());
}

#[test]
fn a_restricted_key_is_refused() {
    let key = KeyHandle::from_pkcs8_pem(include_str!("../../../tests/keys/pss.pem")).unwrap();
    let refused = QueueSigningKey::new(&queue(), &key).unwrap_err();
    assert!(matches!(
        refused,
        batch_modexp::rsa::Error::KeyRestricted { .. }
    ));
}

#[test]
fn schemes_are_those_that_the_key_has_room_for() {
    let short = include_str!("../../../tests/keys/rsa1024.pem");
    let short = KeyHandle::from_pkcs1_pem(short).unwrap();
    let short = QueueSigningKey::new(&queue(), &short).unwrap();
    let long = QueueSigningKey::new(&queue(), &key()).unwrap();
    let chosen = |key: &QueueSigningKey, offered: &[SignatureScheme]| {
        let signer = key.choose_scheme(offered)?;
        signer.sign(b"m").unwrap();
        Some(signer.scheme())
    };
    use SignatureScheme::*;
    assert_eq!(
        chosen(&long, &[RSA_PSS_SHA512, RSA_PKCS1_SHA512]),
        Some(RSA_PSS_SHA512)
    );
    assert_eq!(
        chosen(&short, &[RSA_PSS_SHA512, RSA_PKCS1_SHA512]),
        Some(RSA_PKCS1_SHA512)
    );
    assert_eq!(chosen(&short, &[RSA_PSS_SHA512]), None);
    assert_eq!(chosen(&short, &[RSA_PSS_SHA384]), Some(RSA_PSS_SHA384));
    assert_eq!(
        chosen(&long, &[RSA_PKCS1_SHA1, ECDSA_NISTP256_SHA256]),
        None
    );
}

#[test]
fn a_handshake_fails_when_the_queue_does() {
    let queue = queue();
    let (client, server) = (client(&TLS13), server(&queue, &TLS13));
    queue.shutdown(Shutdown::Drain);
    let error = handshake(client, server).unwrap_err();
    let rustls::Error::Other(other) = error else {
        panic!("{error}");
    };
    assert_eq!(other.0.downcast_ref(), Some(&QueueError::ShutDown));
}
