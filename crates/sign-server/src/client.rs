//! The client of a connection, as fields of the record.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use batch_modexp::rsa::sha2::{Digest, Sha256};
use rustls::pki_types::CertificateDer;
use tokio::net::unix::UCred;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::record::{encode, hex};

/// Encoded fields of the record.
#[derive(Clone)]
pub(crate) struct Client(Arc<str>);

impl Client {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self(format!("peer={address}").into())
    }

    pub(crate) fn of_process(credentials: &UCred) -> Self {
        let mut text = format!("uid={} gid={}", credentials.uid(), credentials.gid());
        if let Some(pid) = credentials.pid() {
            // Writing to a string does not fail.
            let _ = write!(text, " pid={pid}");
        }
        Self(text.into())
    }

    /// Adds the client's certificate, which TLS has verified.
    pub(crate) fn with_certificate(self, der: &CertificateDer<'_>) -> Self {
        // A certificate that this parser rejects is identified by its fingerprint.
        let subject = Certificate::from_der(der).map(|certificate| {
            let subject = certificate.tbs_certificate().subject();
            encode(&subject.to_string())
        });
        let subject = subject.unwrap_or_else(|_| "-".into());
        let fingerprint = hex(&Sha256::digest(der));
        Self(format!("{} subject={subject} certificate={fingerprint}", self.0).into())
    }

    pub(crate) fn fields(&self) -> &str {
        &self.0
    }
}
