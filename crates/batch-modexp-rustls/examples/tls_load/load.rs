//! TLS handshakes over loopback with several servers in turn.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

/// The extent of a measurement.
#[derive(Args)]
pub(crate) struct Load {
    /// Concurrent handshakes: threads of the client, and of the server unless it has fewer.
    #[arg(long, value_delimiter = ',', default_values = ["1", "8", "64"])]
    in_flight: Vec<NonZeroUsize>,
    /// The most threads of the server. One for each core is what an asynchronous server has, whose
    /// handshakes wait for signatures one on a thread.
    #[arg(long)]
    server_threads: Option<NonZeroUsize>,
    /// Seconds for each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Measurements of each kind, taken in turns; the median rate is shown.
    #[arg(long, default_value = "3")]
    rounds: NonZeroUsize,
}

/// A server's name and its configuration.
pub(crate) type Contender = (&'static str, Arc<ServerConfig>);

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

impl Load {
    /// Prints rates and latencies of all contenders, which take turns. Each client thread calls
    /// `begin` first.
    pub(crate) fn compare(
        &self,
        contenders: &[Contender],
        begin: &(dyn Fn() + Sync),
    ) -> Result<(), Failure> {
        let span = Duration::try_from_secs_f64(self.seconds)?;
        let client = client()?;
        println!(
            "{:>9} {:>16} {:>13} {:>9} {:>9}",
            "in flight", "signer", "handshakes/s", "p50, ms", "p99, ms"
        );
        for &in_flight in &self.in_flight {
            let mut rounds: Vec<Vec<_>> = contenders.iter().map(|_| Vec::new()).collect();
            let threads = self
                .server_threads
                .map_or(in_flight, |most| most.min(in_flight));
            let threads = [threads, in_flight].map(NonZeroUsize::get);
            for _ in 0..self.rounds.get() {
                for ((_, server), rounds) in contenders.iter().zip(&mut rounds) {
                    rounds.push(measure(server, (&client, begin), threads, span)?);
                }
            }
            for ((name, _), mut rounds) in contenders.iter().zip(rounds) {
                rounds.sort_by(|a, b| a.rate.total_cmp(&b.rate));
                let Measured { rate, p50, p99 } = rounds[rounds.len() / 2];
                let [p50, p99] = [p50, p99].map(|time| time.as_secs_f64() * 1e3);
                println!("{in_flight:>9} {name:>16} {rate:>13.0} {p50:>9.2} {p99:>9.2}");
            }
        }
        Ok(())
    }
}

/// The certificate of [`KEY`].
pub(crate) const CERTIFICATE: &[u8] = include_bytes!("../../tests/localhost.der");

/// An RSA-2048 key.
pub(crate) const KEY: &str = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");

/// A server that signs with `certified` and leaves the rest of the handshake to `provider`.
pub(crate) fn server(
    certified: CertifiedKey,
    provider: CryptoProvider,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client() -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
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

fn measure(
    server: &Arc<ServerConfig>,
    (client, begin): (&Arc<ClientConfig>, &(dyn Fn() + Sync)),
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
            .map(|_| {
                scope.spawn(|| {
                    begin();
                    connect(address, client, started + span)
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        is_over.store(true, Relaxed);
        // Each connection wakes a thread that waits in `accept`.
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

/// Answers handshakes until `is_over`. Errors are ignored; the client reports them.
fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let _ = || -> Result<(), Failure> {
            let (mut socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            let mut connection = ServerConnection::new(config.clone())?;
            while connection.is_handshaking() {
                connection.complete_io(&mut socket)?;
            }
            // Waits until the client closes the connection.
            let _: Result<usize, _> = socket.read(&mut [0]);
            Ok(())
        }();
    }
}

/// Makes handshakes one after another, at least one, and returns their times.
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
