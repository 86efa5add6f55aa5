//! TLS, with certificates of clients if they are asked for.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::permissions::{self, FileError};

pub(crate) fn config(
    certificates: &Path,
    key: &Path,
    client_ca: Option<&Path>,
) -> Result<ServerConfig, Box<dyn Error>> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in read(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| FileError::new(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let pem = permissions::read_secret(key)?;
    let key_der =
        PrivateKeyDer::from_pem_slice(&pem).map_err(|error| FileError::new(key, error))?;
    let chain = read(certificates)?;
    let mut config = builder.with_single_cert(chain, key_der).map_err(|error| {
        let (key, certificates) = (key.display(), certificates.display());
        format!("{key} with {certificates}: {error}")
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let failed = |error| FileError::new(path, error);
    let certificates = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(failed)?;
    match certificates.is_empty() {
        true => Err(FileError::new(path, "there is no certificate in it")),
        false => Ok(certificates),
    }
}
