//! Measures full TLS 1.3 handshakes over loopback, with client and server on the same cores.
//! Signatures come from a queue and from ring, in turns.
//!
//! ```text
//! cargo run --release -p batch-modexp-rustls --example tls_load -- --in-flight 1,8,64
//! ```

mod load;

use std::process::ExitCode;

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use batch_modexp::rsa::KeyHandle;
use batch_modexp_rustls::QueueSigningKey;
use clap::Parser;
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use load::{CERTIFICATE, Failure, KEY, Load, server};

/// Handshakes a second and their latency, with RSA-2048.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    load: Load,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tls_load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let backend = Auto::new()?;
    println!("backend: {}, {}", backend.name(), backend.reason());
    let queue = BatchQueue::new(backend, getrandom::SysRng)?;
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let ours = QueueSigningKey::new(&queue, &KeyHandle::from_pkcs8_pem(KEY)?)?;
    let rings = any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let contenders = [
        (
            "queue",
            server(ours.certified(chain.clone())?, default_provider())?,
        ),
        (
            "ring",
            server(CertifiedKey::new(chain, rings), default_provider())?,
        ),
    ];
    options.load.compare(&contenders, &|| ())?;
    let stats = queue.stats();
    println!(
        "the queue: {} signatures in {} batches, {} of them on the callers' threads",
        stats.signed, stats.batches, stats.led
    );
    Ok(())
}
