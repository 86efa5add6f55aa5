//! Counts full TLS 1.3 handshakes over loopback as batch-modexp-rustls's example `tls_load` does, and beside ring with
//! aws-lc-rs, which makes the whole handshake of its server. A third server of ours leaves all but the signature to
//! aws-lc-rs.
//!
//! `cargo run --release -p batch-modexp-tls-bench -- --in-flight 1,8,64`

#[path = "../../../crates/batch-modexp-rustls/examples/tls_load/load.rs"]
mod load;

use std::process::ExitCode;

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use batch_modexp::rsa::KeyHandle;
use batch_modexp_rustls::QueueSigningKey;
use clap::Parser;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use load::{CERTIFICATE, Failure, KEY, Load, server};

/// Handshakes a second and their latency, with RSA-2048 and X25519.
#[derive(Parser)]
#[command(name = "batch-modexp-tls-bench")]
struct Options {
    #[command(flatten)]
    load: Load,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("batch-modexp-tls-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let backend = Auto::new()?;
    println!("backend: {}, {}", backend.name(), backend.reason());
    let queue = BatchQueue::new(backend, getrandom::SysRng)?;
    let key = KeyHandle::from_pkcs8_pem(KEY)?;
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let ours = || QueueSigningKey::new(&queue, &key)?.certified(chain.clone());
    let ring_key = ring::sign::any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let aws_key =
        aws_lc_rs::sign::any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let [ring, aws] = [ring::default_provider(), aws_lc_rs::default_provider()];
    let aws = CryptoProvider {
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws
    };
    options.load.compare(&[
        ("queue, ring", server(ours()?, ring.clone())?),
        (
            "ring",
            server(CertifiedKey::new(chain.clone(), ring_key), ring)?,
        ),
        ("queue, aws-lc-rs", server(ours()?, aws.clone())?),
        (
            "aws-lc-rs",
            server(CertifiedKey::new(chain.clone(), aws_key), aws)?,
        ),
    ])?;
    Ok(())
}
