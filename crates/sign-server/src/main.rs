//! A signing service: keys from a directory, one request for each signature, and batches behind them.
//!
//! README.md says how to run it and what it answers.

mod keys;
mod metrics;
mod routes;
mod tls;

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use batch_modexp::backend::{Auto, Kind};
use batch_modexp::queue::{BatchQueue, Shutdown};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::routes::Service;

/// Signs by HTTP with the RSA keys of a directory.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The directory of the keys: each file NAME.pem has one, in PKCS#8 or PKCS#1.
    #[arg(long)]
    keys: PathBuf,
    /// Where to listen. Anything but this machine's own addresses (127.0.0.0/8, ::1) needs --client-ca.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Certificates of the server for TLS, its own first, in PEM.
    #[arg(long, requires = "tls_key")]
    tls_certificates: Option<PathBuf>,
    /// The private key of the first of these certificates, in PEM.
    #[arg(long, requires = "tls_certificates")]
    tls_key: Option<PathBuf>,
    /// Certificates in PEM, of which one must have signed that of a client. Without, whoever can connect can sign.
    #[arg(long, requires = "tls_certificates")]
    client_ca: Option<PathBuf>,
    /// Lets GPUs compute, where there are any and the program was built for them: keys reach their memory.
    #[arg(long)]
    gpus: bool,
    /// The most requests of a batch.
    #[arg(long, default_value = "1024")]
    max_batch: std::num::NonZeroUsize,
    /// The most requests that wait; others are refused with 503.
    #[arg(long, default_value = "8192")]
    capacity: std::num::NonZeroUsize,
    /// The longest message in bytes.
    #[arg(long, default_value_t = 1 << 20)]
    max_message: usize,
    /// Seconds for requests to end after SIGTERM or SIGINT.
    #[arg(long, default_value_t = 30)]
    grace: u64,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sign-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    if !options.listen.ip().is_loopback() && options.client_ca.is_none() {
        let problem = "others can connect to that address, and whoever can connect can sign: \
                       name --client-ca, or listen on 127.0.0.1 behind something that asks who is there";
        return Err(problem.into());
    }
    let keys = keys::load(&options.keys)?;
    for (name, key) in &keys {
        println!("key {name}: {} bits", key.bits());
    }
    let kind = if options.gpus {
        Kind::GpuOrCpu
    } else {
        Kind::Cpu
    };
    let backend = Auto::with(kind, None)?;
    println!("signs on {}: {}", backend.name(), backend.reason());
    let queue = BatchQueue::builder(backend, getrandom::SysRng)
        .max_batch(options.max_batch.get())
        .capacity(options.capacity.get())
        .build()?;
    let tls = match (&options.tls_certificates, &options.tls_key) {
        (Some(certificates), Some(key)) => Some(tls::config(
            certificates,
            key,
            options.client_ca.as_deref(),
        )?),
        _ => None,
    };
    let service = Arc::new(Service::new(queue.clone(), keys));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(&options, service, tls));
    // Requests have ended, or their time is over.
    queue.shutdown(Shutdown::Cancel);
    println!("{}", metrics::last_words(&queue.stats()));
    Ok(served?)
}

async fn serve(
    options: &Options,
    service: Arc<Service>,
    tls: Option<rustls::ServerConfig>,
) -> std::io::Result<()> {
    let handle = Handle::new();
    let grace = Duration::from_secs(options.grace);
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()?;
    tokio::spawn({
        let (handle, service) = (handle.clone(), service.clone());
        async move {
            let [terminate, interrupt] = &mut signals[..] else {
                unreachable!("there are two");
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            service.begin_shutdown();
            handle.graceful_shutdown(Some(grace));
        }
    });
    let listener = TcpListener::bind(options.listen)?;
    listener.set_nonblocking(true)?;
    println!("listens on {}", listener.local_addr()?);
    let routes = routes::router(service, options.max_message).into_make_service();
    match tls {
        None => {
            let server = axum_server::from_tcp(listener)?;
            server.handle(handle).serve(routes).await
        }
        Some(config) => {
            let config = RustlsConfig::from_config(Arc::new(config));
            let server = axum_server::from_tcp_rustls(listener, config)?;
            server.handle(handle).serve(routes).await
        }
    }
}
