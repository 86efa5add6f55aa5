//! Connections: their number, time limits and end.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::listen::{Listener, Stream};
use crate::output::print_error;

/// Octets that a connection reads ahead, and so the longest header of a request, in bytes.
const BUFFER: usize = 1 << 14;

/// Pause after a failure to accept a connection, such as for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// State that all connections share.
pub(crate) struct Server {
    pub(crate) routes: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) max_connections: u32,
    pub(crate) idle_timeout: Duration,
    pub(crate) transfer_timeout: Duration,
}

impl Server {
    /// Serves connections until `end` completes. Then it accepts no more, and requests have `grace`
    /// to end. Returns when that time is over.
    pub(crate) async fn run(
        self,
        listener: Listener,
        end: impl Future<Output = ()>,
        grace: Duration,
    ) -> Instant {
        let slots = Arc::new(Semaphore::new(self.max_connections as usize));
        let all = self.max_connections;
        let server = Arc::new(self);
        let (is_ending, ending) = watch::channel(false);
        let mut end = pin!(end);
        let mut fails = false;
        loop {
            let accepted = async {
                // The semaphore is never closed, so this cannot fail.
                let slot = slots.clone().acquire_owned().await;
                let slot = slot.map_err(io::Error::other)?;
                listener.accept().await.map(|accepted| (slot, accepted))
            };
            let accepted = tokio::select! {
                () = &mut end => break,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((slot, (stream, client))) => {
                    fails = false;
                    let (server, ending) = (server.clone(), ending.clone());
                    tokio::spawn(async move {
                        match stream {
                            Stream::Tcp(stream) => server.connection(stream, client, ending).await,
                            Stream::Unix(stream) => server.connection(stream, client, ending).await,
                        }
                        drop(slot);
                    });
                }
                Err(error) => {
                    if !fails {
                        // Waits if nobody reads standard error.
                        spawn_blocking(move || {
                            print_error(format_args!("cannot accept a connection: {error}"));
                        });
                    }
                    fails = true;
                    sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        is_ending.send_replace(true);
        // All permits are free when no connection is left.
        let limit = Instant::now() + grace;
        let _ = timeout_at(limit, slots.acquire_many(all)).await;
        limit
    }

    async fn connection<S>(&self, stream: S, client: Client, ending: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        // Ends a connection whose client sends requests but reads no answers.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.transfer_timeout));
        let stream = Box::pin(stream);
        let Some(acceptor) = &self.tls else {
            return self.http(stream, client, ending).await;
        };
        let handshake = timeout(self.transfer_timeout, acceptor.accept(stream));
        if let Ok(Ok(stream)) = handshake.await {
            let certificate = stream.get_ref().1.peer_certificates();
            let client = match certificate.and_then(<[_]>::first) {
                Some(certificate) => client.with_certificate(certificate),
                None => client,
            };
            self.http(stream, client, ending).await;
        }
    }

    async fn http<S>(&self, stream: S, client: Client, mut ending: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let routes = TowerToHyperService::new(self.routes.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(client.clone());
            routes.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle_timeout)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        tokio::select! {
            // An error ends only this connection.
            _ = connection.as_mut() => return,
            _ = ending.wait_for(|is_ending| *is_ending) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
