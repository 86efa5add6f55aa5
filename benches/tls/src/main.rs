//! Counts full TLS 1.3 handshakes over loopback, like the example `tls_load` of
//! batch-modexp-rustls. Compares ring and aws-lc-rs, which each compute the whole handshake of
//! their server. A third server of ours leaves all but the signature to aws-lc-rs.
//!
//! `cargo run --release -p batch-modexp-tls-bench -- --in-flight 1,8,64`

#[path = "../../../crates/batch-modexp-rustls/examples/tls_load/load.rs"]
mod load;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::process::ExitCode;

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use batch_modexp::rsa::KeyHandle;
use batch_modexp_rustls::QueueSigningKey;
use clap::Parser;
#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_setaffinity};
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
    /// The number of cores for the server, from the first; the client gets the others. By default
    /// both share all. Linux only.
    #[arg(long)]
    server_cores: Option<NonZeroUsize>,
}

/// Restricts the calling thread, and threads that it starts later, to these cores.
#[cfg(target_os = "linux")]
fn stay_on(cores: Range<usize>) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    cores.for_each(|core| set.set(core));
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_: Range<usize>) -> Result<(), Failure> {
    Err("threads are bound to cores on Linux only".into())
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
    let cores = std::thread::available_parallelism()?.get();
    let servers = options.server_cores.map(NonZeroUsize::get);
    if let Some(servers) = servers {
        if servers >= cores {
            return Err(format!("no core of {cores} is left for the client").into());
        }
        // Applies to the threads of the queue and of the server, which start from here.
        stay_on(0..servers)?;
    }
    let backend = Auto::new()?;
    println!("backend: {}, {}", backend.name(), backend.reason());
    let queue = BatchQueue::new(backend, getrandom::SysRng)?;
    let key = KeyHandle::from_pkcs8_pem(KEY)?;
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let ours = || -> Result<_, Failure> {
        Ok(QueueSigningKey::new(&queue, &key)?.certified(chain.clone())?)
    };
    let ring_key = ring::sign::any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let aws_key =
        aws_lc_rs::sign::any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let [ring, aws] = [ring::default_provider(), aws_lc_rs::default_provider()];
    let aws = CryptoProvider {
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws
    };
    let contenders = [
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
    ];
    options.load.compare(&contenders, &|| {
        // The same call succeeded before.
        let _ = servers.map(|servers| stay_on(servers..cores));
    })
}
