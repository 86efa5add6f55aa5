//! A signing service over HTTP, which signs single requests in batches with keys from a directory.
//!
//! README.md describes how to run it and its answers.

mod body;
mod client;
mod guard;
mod keys;
mod listen;
mod metrics;
mod options;
mod output;
mod permissions;
mod record;
mod routes;
mod serve;
mod tls;

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::queue::{BatchQueue, Shutdown};
use clap::Parser;
use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, setrlimit, umask};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::guard::Guard;
use crate::listen::Listener;
use crate::options::{Listen, Options};
use crate::output::{print_error, print_line};
use crate::record::Record;
use crate::routes::Service;
use crate::serve::Server;

/// File descriptors besides connections: the listener, the record, the runtime, a driver.
const OTHER_FILES: u64 = 64;

/// Time for the last lines of the record and of standard output, even if the grace period is over.
const TIME_FOR_OUTPUT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // New files, such as a Unix socket or a record, are private unless an option says otherwise.
    umask(Mode::from_raw_mode(0o077));
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if let Listen::Tcp(address) = options.listen
        && !address.ip().is_loopback()
        && options.client_ca.is_none()
    {
        let problem = "others can connect to that address, and whoever can connect can sign: \
                       name --client-ca, or listen on 127.0.0.1 behind something that asks who is there";
        return Err(problem.into());
    }
    allow_descriptors(options.max_connections)?;
    let (record, writer) = Record::open(options.record.as_deref(), options.max_connections)
        .map_err(|error| format!("cannot open the record: {error}"))?;
    let keys = keys::load(&options.keys, &options.key_prefix)?;
    for (name, key) in &keys {
        print_line(format_args!("key {name}: {} bits", key.bits()));
    }
    let tls = match (&options.tls_certificates, &options.tls_key) {
        (Some(certificates), Some(key)) => Some(tls::config(
            certificates,
            key,
            options.client_ca.as_deref(),
        )?),
        _ => None,
    };
    let kind = if options.gpus {
        Kind::GpuOrCpu
    } else {
        Kind::Cpu
    };
    let backend = Auto::with(kind, None)?;
    print_line(format_args!(
        "signs on {}: {}",
        backend.name(),
        backend.reason()
    ));
    let queue = BatchQueue::builder(backend, getrandom::SysRng)
        .max_batch(options.max_batch.get())
        .capacity(options.capacity.get())
        .build()?;
    // Browsers cannot reach Unix sockets, and TLS clients verify the name in the certificate.
    let is_open =
        matches!(options.listen, Listen::Unix(_)) || (tls.is_some() && options.hosts.is_empty());
    let guard = Guard::new(&options.hosts, is_open);
    let service = Arc::new(Service::new(queue.clone(), keys, guard, record, options));
    let server = Server {
        routes: routes::router(service.clone()),
        tls: tls.map(|config| TlsAcceptor::from(Arc::new(config))),
        max_connections: options.max_connections,
        idle_timeout: options.idle_timeout(),
        transfer_timeout: options.transfer_timeout(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let limit = runtime.block_on(serve(options, server))?;
    // Requests have ended, or their grace period is over.
    queue.shutdown(Shutdown::Cancel);
    let rest = || {
        limit
            .saturating_duration_since(Instant::now())
            .max(TIME_FOR_OUTPUT)
    };
    runtime.shutdown_timeout(rest());
    // On another thread, because nobody may read the record or standard output any more.
    let (said, is_said) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        drop(service);
        let _ = writer.join();
        print_line(format_args!("{}", metrics::summary(&queue.stats())));
        let _ = said.send(());
    })?;
    let _ = is_said.recv_timeout(rest());
    Ok(())
}

/// Returns when the grace period ends.
async fn serve(options: &Options, server: Server) -> Result<Instant, Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let listener = Listener::bind(&options.listen, options.socket_mode)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", options.listen))?;
    print_line(format_args!("listens on {}", listener.address()?));
    let grace = Duration::from_secs(options.grace);
    Ok(server.run(listener, end, grace).await)
}

/// Raises the limit of file descriptors, so that it exceeds the limit of connections.
fn allow_descriptors(connections: u32) -> Result<(), Box<dyn Error>> {
    let needed = u64::from(connections) + OTHER_FILES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let problem = format!(
            "{connections} connections need {needed} open files, and the limit is {}: raise it (ulimit -n, or \
             LimitNOFILE= of systemd), or lower --max-connections",
            limit.maximum.unwrap_or_default()
        );
        return Err(problem.into());
    }
    limit.current = Some(needed);
    Ok(setrlimit(Resource::Nofile, limit)?)
}
