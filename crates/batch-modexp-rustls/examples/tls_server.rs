//! A TLS server with a thread for each connection, whose handshakes are signed in batches.
//!
//! ```text
//! cargo run --release -p batch-modexp-rustls --example tls_server -- --certificates chain.pem --key key.pem
//! openssl s_client -connect localhost:8443
//! ```

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::queue::BatchQueue;
use batch_modexp::rsa::KeyHandle;
use batch_modexp::secret::Secret;
use batch_modexp_rustls::QueueSigningKey;
use clap::Parser;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Serves one line of text to each TLS client that sends one.
#[derive(Parser)]
struct Options {
    /// The certificate of the key and those that lead from it to a root, in PEM.
    #[arg(long)]
    certificates: PathBuf,
    /// The private RSA key in PEM: PKCS#8 or PKCS#1.
    #[arg(long)]
    key: PathBuf,
    /// Where to listen.
    #[arg(long, default_value = "localhost:8443")]
    listen: String,
    /// The most connections at a time; others wait.
    #[arg(long, default_value = "256")]
    connections: std::num::NonZeroUsize,
    /// Lets GPUs compute, where there are any: the key reaches their memory.
    #[arg(long)]
    gpus: bool,
}

/// Time limit for a silent client.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("tls_server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<std::convert::Infallible, Box<dyn Error>> {
    let kind = if options.gpus {
        Kind::GpuOrCpu
    } else {
        Kind::Cpu
    };
    let backend = Auto::with(kind, None)?;
    println!("signs on {}: {}", backend.name(), backend.reason());
    let queue = BatchQueue::new(backend, getrandom::SysRng)?;
    let pem = fs::read(&options.key).map_err(|error| at(&options.key, &error))?;
    let key = KeyHandle::from_pem(Secret::new(pem)).map_err(|error| at(&options.key, &error))?;
    let chain = CertificateDer::pem_file_iter(&options.certificates)
        .and_then(Iterator::collect)
        .map_err(|error| at(&options.certificates, &error))?;
    let certified = QueueSigningKey::new(&queue, &key)?.certified(chain)?;
    let config =
        ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    let config = Arc::new(config);

    let listener = TcpListener::bind(&options.listen)?;
    println!("listens on {}", listener.local_addr()?);
    let threads: Vec<_> = (0..options.connections.get())
        .map(|_| {
            let (listener, config, queue) = (listener.try_clone()?, config.clone(), queue.clone());
            let serve = move || {
                loop {
                    let served = listener
                        .accept()
                        .and_then(|(socket, _)| answer(socket, &config, &queue));
                    if let Err(error) = served {
                        eprintln!("tls_server: {error}");
                    }
                }
            };
            thread::Builder::new().spawn(serve)
        })
        .collect::<Result<_, _>>()?;
    for thread in threads {
        let _ = thread.join();
    }
    Err("all threads have ended".into())
}

/// An error, prefixed with the path of its file.
fn at(path: &Path, error: &dyn Error) -> String {
    format!("{}: {error}", path.display())
}

/// Reads one line and answers with one line.
fn answer(
    socket: TcpStream,
    config: &Arc<ServerConfig>,
    queue: &BatchQueue,
) -> std::io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let connection = ServerConnection::new(config.clone()).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, socket));
    stream.read_line(&mut String::new())?;
    let stats = queue.stats();
    let text = format!("{} handshakes in {} batches\n", stats.signed, stats.batches);
    let stream = stream.get_mut();
    stream.write_all(text.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}
