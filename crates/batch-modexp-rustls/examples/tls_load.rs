//! Counts full TLS 1.3 handshakes over loopback, client and server on the same cores: signed through a queue, and by
//! ring, in turns.
//!
//! ```text
//! cargo run --release -p batch-modexp-rustls --example tls_load -- --in-flight 1,8,64
//! ```

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use batch_modexp::backend::Auto;
use batch_modexp::queue::BatchQueue;
use batch_modexp::rsa::KeyHandle;
use batch_modexp_rustls::QueueSigningKey;
use clap::Parser;
use rustls::client::Resumption;
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

/// Handshakes a second and their latency, with RSA-2048.
#[derive(Parser)]
struct Options {
    /// Handshakes at a time: so many threads of the client, and of the server unless it has fewer.
    #[arg(long, value_delimiter = ',', default_values = ["1", "8", "64"])]
    in_flight: Vec<NonZeroUsize>,
    /// The most threads of the server. One for each core is what an asynchronous server has, whose handshakes wait for
    /// signatures one on a thread.
    #[arg(long)]
    server_threads: Option<NonZeroUsize>,
    /// Seconds for each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Measurements of each kind, taken in turns; the median rate is shown.
    #[arg(long, default_value = "3")]
    rounds: NonZeroUsize,
}

const KEY: &str = include_str!("../../../tests/keys/rsa2048-pkcs8.pem");
const CERTIFICATE: &[u8] = include_bytes!("../tests/localhost.der");

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
    let span = Duration::try_from_secs_f64(options.seconds)?;
    let backend = Auto::new()?;
    println!("backend: {}, {}", backend.name(), backend.reason());
    let queue = BatchQueue::new(backend, getrandom::SysRng)?;
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let ours = QueueSigningKey::new(&queue, &KeyHandle::from_pkcs8_pem(KEY)?)?;
    let rings = any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    let contenders = [
        ("queue", server(ours.certified(chain.clone())?)?),
        ("ring", server(CertifiedKey::new(chain, rings))?),
    ];
    let client = client()?;
    println!(
        "{:>9} {:>6} {:>13} {:>9} {:>9}",
        "in flight", "signer", "handshakes/s", "p50, ms", "p99, ms"
    );
    for &in_flight in &options.in_flight {
        let mut rounds = [Vec::new(), Vec::new()];
        let threads = options
            .server_threads
            .map_or(in_flight, |most| most.min(in_flight));
        for _ in 0..options.rounds.get() {
            for ((_, server), rounds) in contenders.iter().zip(&mut rounds) {
                rounds.push(measure(
                    server,
                    &client,
                    [threads, in_flight].map(NonZeroUsize::get),
                    span,
                )?);
            }
        }
        for ((name, _), mut rounds) in contenders.iter().zip(rounds) {
            rounds.sort_by(|a, b| a.rate.total_cmp(&b.rate));
            let Measured { rate, p50, p99 } = rounds[rounds.len() / 2];
            let [p50, p99] = [p50, p99].map(|time| time.as_secs_f64() * 1e3);
            println!("{in_flight:>9} {name:>6} {rate:>13.0} {p50:>9.2} {p99:>9.2}");
        }
    }
    let stats = queue.stats();
    println!(
        "the queue: {} signatures in {} batches",
        stats.signed, stats.batches
    );
    Ok(())
}

fn server(certified: CertifiedKey) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client() -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFICATE.into())?;
    let mut config = ClientConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

struct Measured {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

type Failure = Box<dyn Error + Send + Sync>;

fn measure(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
    [threads, in_flight]: [usize; 2],
    span: Duration,
) -> Result<Measured, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (is_over, started) = (AtomicBool::new(false), Instant::now());
    let mut latencies = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| serve(&listener, server, &is_over));
        }
        let clients: Vec<_> = (0..in_flight)
            .map(|_| scope.spawn(|| connect(address, client, started + span)))
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        is_over.store(true, Relaxed);
        // Each wakes a thread that waits for a connection.
        for _ in 0..threads {
            drop(TcpStream::connect(address));
        }
        let mut latencies = Vec::new();
        for result in results {
            latencies.extend(result.unwrap_or_else(|_| Err("a client panicked".into()))?);
        }
        Ok::<_, Failure>(latencies)
    })?;
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize];
    Ok(Measured {
        rate,
        p50: at(0.5),
        p99: at(0.99),
    })
}

/// Answers handshakes until it is over. The client sees what goes wrong.
fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let _ = || -> Result<(), Failure> {
            let (mut socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            let mut connection = ServerConnection::new(config.clone())?;
            while connection.is_handshaking() {
                connection.complete_io(&mut socket)?;
            }
            // The client's end of the connection.
            let _: Result<usize, _> = socket.read(&mut [0]);
            Ok(())
        }();
    }
}

/// Makes one handshake after the other, at least one, and returns their times.
fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    end: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut latencies = Vec::new();
    while latencies.is_empty() || Instant::now() < end {
        let started = Instant::now();
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let mut connection = ClientConnection::new(config.clone(), "localhost".try_into()?)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        socket.flush()?;
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}
