//! Counts full TLS 1.3 handshakes over loopback as batch-modexp-rustls's example `tls_load` does, and beside ring with
//! aws-lc-rs, which makes the whole handshake of its server. A third server of ours leaves all but the signature to
//! aws-lc-rs.
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
    /// So many cores are the server's, the first ones, and the others the client's; by default both share all. On Linux.
    #[arg(long)]
    server_cores: Option<NonZeroUsize>,
}

/// Leaves the calling thread, and those that it starts, these cores.
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
        // The queue's threads, which are started from here, and the server's.
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
        // It worked once.
        let _ = servers.map(|servers| stay_on(servers..cores));
    })
}
