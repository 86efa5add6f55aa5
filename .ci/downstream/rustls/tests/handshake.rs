//! Several concurrent handshakes in memory; rustls as the client checks the signatures.

use std::sync::Arc;
use std::thread;

use batch_modexp::rsa::KeyHandle;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tree_rustls::BatchKey;

/// Exchanges messages until both sides are done.
fn handshake(client: ClientConfig, server: ServerConfig) -> Result<(), rustls::Error> {
    let mut client = ClientConnection::new(client.into(), "localhost".try_into().unwrap())?;
    let mut server = ServerConnection::new(server.into())?;
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

/// A handshake whose server has the certificate of one key and signs with `pem`.
fn with_key(
    pem: &str,
    version: &'static rustls::SupportedProtocolVersion,
    count: usize,
) -> Vec<bool> {
    let certificate = CertificateDer::from(&include_bytes!("localhost.der")[..]);
    let key = BatchKey::new(KeyHandle::from_pkcs8_pem(pem).unwrap()).unwrap();
    let certified = CertifiedKey::new(vec![certificate.clone()], Arc::new(key));
    let provider = Arc::new(default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    thread::scope(|scope| {
        let handshake = || handshake(client.clone(), server.clone()).is_ok();
        let all: Vec<_> = (0..count).map(|_| scope.spawn(handshake)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn clients_accept_what_was_signed() {
    let pem = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
    for version in [&TLS12, &TLS13] {
        assert_eq!(with_key(pem, version, 20), [true; 20]);
    }
}

/// A control: shows that the test above checks signatures.
#[test]
fn clients_refuse_another_key() {
    let pem = include_str!("../../../../tests/keys/pss.pem");
    assert_eq!(with_key(pem, &TLS13, 1), [false]);
}
