//! The command line.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;

/// Signs by HTTP with the RSA keys of a directory.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Options {
    /// The directory of the keys: each file NAME.pem has one, in PKCS#8 or PKCS#1, readable only by
    /// its owner.
    #[arg(long)]
    pub(crate) keys: PathBuf,
    /// Reads only files with names that begin so; the name of the key is what follows.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) key_prefix: String,
    /// Where to listen: an address and a port, or unix:/PATH for a Unix socket. Anything but a Unix
    /// socket and this machine's own addresses (127.0.0.0/8, ::1) needs --client-ca.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) listen: Listen,
    /// The permissions of the Unix socket, in octal.
    #[arg(long, default_value = "600", value_parser = octal)]
    pub(crate) socket_mode: u32,
    /// A name that clients may use for this server (the header Host), besides localhost and
    /// loopback addresses. May be given more than once. Not asked of Unix sockets, and of TLS only
    /// if it is given.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Certificates of the server for TLS, its own first, in PEM.
    #[arg(long, requires = "tls_key")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// The private key of the first of these certificates, in PEM, readable only by its owner.
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificates in PEM, of which one must have signed that of a client. Without, any client can
    /// sign.
    #[arg(long, requires = "tls_certificates")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Appends the record of requests to this file, instead of writing it to standard error.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Lets GPUs compute, where there are any and the program was built for them: keys reach their
    /// memory.
    #[arg(long)]
    pub(crate) gpus: bool,
    /// The most requests of a batch.
    #[arg(long, default_value = "1024")]
    pub(crate) max_batch: NonZeroUsize,
    /// The most requests that wait; others are refused with 503.
    #[arg(long, default_value = "1024")]
    pub(crate) capacity: NonZeroUsize,
    /// The most requests for one key that wait or are being signed; others are refused with 503
    /// [default: half of --capacity, or all of it if there is one key].
    #[arg(long)]
    pub(crate) key_capacity: Option<NonZeroUsize>,
    /// The most connections; others wait until one ends.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,
    /// The longest message in bytes.
    #[arg(long, default_value_t = 1 << 20)]
    pub(crate) max_message: u64,
    /// Seconds for the whole header of a request to arrive, from the connection or the last answer
    /// on: how long a connection may be idle.
    #[arg(long, default_value_t = 30, value_parser = seconds())]
    pub(crate) idle_timeout: u64,
    /// Seconds for a TLS handshake, for the body of a request, and for the client to take some of
    /// an answer.
    #[arg(long, default_value_t = 10, value_parser = seconds())]
    pub(crate) transfer_timeout: u64,
    /// Seconds from the header of a request to its signature.
    #[arg(long, default_value_t = 30, value_parser = seconds())]
    pub(crate) request_timeout: u64,
    /// Seconds for requests to end after SIGTERM or SIGINT.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(crate) grace: u64,
}

/// The address to listen on.
#[derive(Clone)]
pub(crate) enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Options {
    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout)
    }

    pub(crate) fn transfer_timeout(&self) -> Duration {
        Duration::from_secs(self.transfer_timeout)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout)
    }

    /// The limit for one of `keys` keys.
    pub(crate) fn key_capacity(&self, keys: usize) -> usize {
        match self.key_capacity {
            Some(capacity) => capacity.get(),
            None if keys == 1 => self.capacity.get(),
            None => self.capacity.get().div_ceil(2),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err("the path of a Unix socket begins with /".into()),
            };
        }
        let expected = "expected an address and a port, such as 127.0.0.1:8080, or unix:/PATH";
        text.parse().map(Self::Tcp).map_err(|_| expected.into())
    }
}

/// At most a day, so that no sum of times overflows.
fn seconds() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=86_400)
}

fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("expected permissions in octal, such as 660".into()),
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
