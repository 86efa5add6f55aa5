//! Requests signatures from a signing service on several connections at once.
//!
//! ```text
//! cargo run --release -p batch-modexp-sign-server --example sign_load -- 127.0.0.1:8080 --key main --connections 64
//! ```

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

/// Signatures a second of a signing service, and the times that it takes.
#[derive(Parser)]
struct Options {
    /// Where the service listens, without TLS.
    address: String,
    /// The name of the key.
    #[arg(long)]
    key: String,
    /// The scheme, by its name in JOSE.
    #[arg(long, default_value = "RS256")]
    scheme: String,
    /// Connections, each with one request at a time.
    #[arg(long, default_value = "64")]
    connections: NonZeroUsize,
    /// For how many seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

/// The longest answer, in bytes: a signature, or a line of text.
const LONGEST: usize = 1 << 16;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not `eprintln!`, which panics if standard error is closed.
            let _ = writeln!(std::io::stderr(), "sign_load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let span = Duration::try_from_secs_f64(options.seconds)?;
    let started = Instant::now();
    let end = started.checked_add(span).ok_or("--seconds is too long")?;
    let mut latencies = thread::scope(|scope| {
        let connections: Vec<_> = (0..options.connections.get())
            .map(|_| scope.spawn(|| ask(options, end)))
            .collect();
        let mut all = Vec::new();
        for connection in connections {
            let latencies = connection.join();
            all.extend(latencies.unwrap_or_else(|_| Err("a connection's thread panicked".into()))?);
        }
        Ok::<_, Failure>(all)
    })?;
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    writeln!(
        std::io::stdout(),
        "{} connections: {rate:.0} signatures/s, p50 {:.2} ms, p99 {:.2} ms",
        options.connections,
        at(0.5),
        at(0.99)
    )?;
    Ok(())
}

/// Sends requests one after another on one connection, at least one, and returns their times.
fn ask(options: &Options, end: Instant) -> Result<Vec<Duration>, Failure> {
    let mut stream = BufReader::new(TcpStream::connect(&options.address)?);
    stream.get_ref().set_nodelay(true)?;
    let request = format!(
        "POST /sign/{}/{} HTTP/1.1\r\nHost: {}\r\nContent-Length: 7\r\n\r\nmessage",
        options.key, options.scheme, options.address
    );
    let mut latencies = Vec::new();
    while latencies.is_empty() || Instant::now() < end {
        let started = Instant::now();
        stream.get_mut().write_all(request.as_bytes())?;
        let (status, body) = answer(&mut stream)?;
        if status != "200" {
            let text = String::from_utf8_lossy(&body);
            return Err(format!("status {status}: {}", text.trim()).into());
        }
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}

/// Status and body of an answer.
fn answer(stream: &mut impl BufRead) -> Result<(String, Vec<u8>), Failure> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).ok_or("no answer")?.to_owned();
    let mut len = 0;
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                len = value.parse()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    if len > LONGEST {
        return Err(format!("an answer of {len} bytes").into());
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body)?;
    Ok((status, body))
}
