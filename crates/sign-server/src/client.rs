//! Who is at the other end of a connection, in the words of the record.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use batch_modexp::rsa::sha2::{Digest, Sha256};
use rustls::pki_types::CertificateDer;
use tokio::net::unix::UCred;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::record::{encode, hex};

/// Fields of the record, encoded.
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

    /// The same client, who has shown this certificate. TLS has verified it.
    pub(crate) fn with_certificate(self, der: &CertificateDer<'_>) -> Self {
        // One that this parser does not take is known by its fingerprint.
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
