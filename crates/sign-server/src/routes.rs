//! Routes and answers of the service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use batch_modexp::queue::{BatchQueue, QueueError};
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body;
use crate::client::Client;
use crate::guard::Guard;
use crate::keys::Keys;
use crate::metrics;
use crate::options::Options;
use crate::record::{Entry, Record};

/// State that all requests share.
pub(crate) struct Service {
    queue: BatchQueue,
    keys: BTreeMap<String, Key>,
    guard: Guard,
    record: Record,
    max_message: u64,
    body_timeout: Duration,
    request_timeout: Duration,
}

struct Key {
    handle: KeyHandle,
    /// One permit for each waiting or active request, so that one key does not use up the queue.
    permits: Semaphore,
}

/// The kind of a request's body.
#[derive(Clone, Copy)]
enum Input {
    Message,
    Digest,
}

impl Service {
    pub(crate) fn new(
        queue: BatchQueue,
        keys: Keys,
        guard: Guard,
        record: Record,
        options: &Options,
    ) -> Self {
        let capacity = options.key_capacity(keys.len()).min(Semaphore::MAX_PERMITS);
        let keys = keys.into_iter().map(|(name, handle)| {
            let permits = Semaphore::new(capacity);
            (name, Key { handle, permits })
        });
        Self {
            queue,
            keys: keys.collect(),
            guard,
            record,
            max_message: options.max_message,
            body_timeout: options.transfer_timeout(),
            request_timeout: options.request_timeout(),
        }
    }

    fn key(&self, name: &str) -> Result<&Key, Refusal> {
        let unknown = || Refusal(StatusCode::NOT_FOUND, "there is no key of this name".into());
        self.keys.get(name).ok_or_else(unknown)
    }
}

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(numbers))
        .route("/keys", get(names))
        .route("/keys/{key}", get(public_key))
        .route("/sign/{key}/{scheme}", post(sign))
        .route("/sign-digest/{key}/{scheme}", post(sign_digest))
        .layer(from_fn_with_state(service.clone(), guard))
        .with_state(service)
}

/// Refuses requests that a web page may have sent.
async fn guard(
    State(service): State<Arc<Service>>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    match service.guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(reason) => {
            let refusal = Refusal(StatusCode::FORBIDDEN, reason.into());
            // Errors of the record are ignored, because nothing is signed.
            if let Some(entry) = Entry::new(&service.record, client, "", "") {
                let written = entry.finish("refused", refusal.0.as_u16());
                let _ = timeout(service.request_timeout, written).await;
            }
            refusal.into_response()
        }
    }
}

async fn numbers(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let text = metrics::prometheus(&service.queue.stats());
    ([content_type("text/plain; version=0.0.4")], text)
}

async fn names(State(service): State<Arc<Service>>) -> String {
    let lines = service
        .keys
        .iter()
        .map(|(name, key)| format!("{name} {}\n", key.handle.bits()));
    lines.collect()
}

async fn public_key(
    State(service): State<Arc<Service>>,
    Path(key): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let pem = service.key(&key)?.handle.public_key_pem();
    Ok(([content_type("application/x-pem-file")], pem))
}

/// The names of a key and a scheme, unless they are not UTF-8.
type Names = Result<Path<(String, String)>, PathRejection>;

async fn sign(
    State(service): State<Arc<Service>>,
    Extension(client): Extension<Client>,
    names: Names,
    message: Body,
) -> Result<impl IntoResponse, Refusal> {
    answer(&service, client, names, Input::Message, message).await
}

async fn sign_digest(
    State(service): State<Arc<Service>>,
    Extension(client): Extension<Client>,
    names: Names,
    digest: Body,
) -> Result<impl IntoResponse, Refusal> {
    answer(&service, client, names, Input::Digest, digest).await
}

/// Signs, and returns the signature once it is in the record. If the client leaves, this future is
/// dropped and the request cancelled.
async fn answer(
    service: &Service,
    client: Client,
    names: Names,
    input: Input,
    body: Body,
) -> Result<impl IntoResponse + use<>, Refusal> {
    let deadline = Instant::now() + service.request_timeout;
    let slow = || {
        let text = "the record takes too long, and no signature leaves before its line is written";
        Refusal(StatusCode::SERVICE_UNAVAILABLE, text.into())
    };
    let names = names.map(|Path(names)| names);
    let (key, scheme) = match &names {
        Ok((key, scheme)) => (&key[..], &scheme[..]),
        Err(_) => ("", ""),
    };
    let mut entry = Entry::new(&service.record, client, key, scheme).ok_or_else(slow)?;
    let signed = match &names {
        Ok((key, scheme)) => {
            let signed = signature(service, &mut entry, key, scheme, input, body);
            let signed = timeout_at(deadline, signed).await;
            signed.unwrap_or_else(|_| Err(QueueError::TimedOut.into()))
        }
        Err(problem) => Err(Refusal(problem.status(), problem.body_text())),
    };
    let (outcome, status) = match &signed {
        Ok(_) => ("signed", StatusCode::OK),
        Err(Refusal(status, _)) if *status == StatusCode::INTERNAL_SERVER_ERROR => {
            ("failed", *status)
        }
        Err(Refusal(status, _)) => ("refused", *status),
    };
    let written = entry.finish(outcome, status.as_u16());
    match timeout_at(deadline, written).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => {
            let text =
                "the service cannot write its record, without which it hands out no signature";
            return Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, text.into()));
        }
        // A refusal needs no line to leave.
        Err(_) => return Err(signed.err().unwrap_or_else(slow)),
    }
    Ok(([content_type("application/octet-stream")], signed?))
}

async fn signature(
    service: &Service,
    entry: &mut Entry,
    key: &str,
    scheme: &str,
    input: Input,
    body: Body,
) -> Result<Vec<u8>, Refusal> {
    let (key, (scheme, hash)) = (service.key(key)?, scheme_of(scheme)?);
    let full = |_| {
        let text = "too many requests for this key; try again later";
        Refusal(StatusCode::SERVICE_UNAVAILABLE, text.into())
    };
    // Checked first, to read nothing in vain, but released at once: slow clients hold no permit
    // while they send a body.
    drop(key.permits.try_acquire().map_err(full)?);
    let digest = async {
        match input {
            Input::Message => body::digest_of(body, hash, service.max_message).await,
            Input::Digest => body::digest_in(body, hash).await,
        }
    };
    let digest = timeout(service.body_timeout, digest).await.map_err(|_| {
        let text = "the body did not come in time";
        Refusal(StatusCode::REQUEST_TIMEOUT, text.into())
    })??;
    entry.set_digest(&digest);
    let _permit = key.permits.try_acquire().map_err(full)?;
    let signing = service
        .queue
        .try_sign_prehash(&key.handle, scheme, &digest)?;
    Ok(signing.await?.into())
}

/// Finds a scheme by its JOSE name (RFC 7518, sections 3.3 and 3.5).
fn scheme_of(name: &str) -> Result<(AnyScheme, Hash), Refusal> {
    let hash = match name.get(2..) {
        Some("256") => Hash::Sha256,
        Some("384") => Hash::Sha384,
        Some("512") => Hash::Sha512,
        _ => return Err(unknown_scheme()),
    };
    let scheme = match &name[..2] {
        "RS" => AnyScheme::Pkcs1v15 { hash },
        "PS" => AnyScheme::Pss {
            hash,
            salt_len: hash.digest_len(),
        },
        _ => return Err(unknown_scheme()),
    };
    Ok((scheme, hash))
}

fn unknown_scheme() -> Refusal {
    let text = "schemes are RS256, RS384, RS512, PS256, PS384 and PS512";
    Refusal(StatusCode::NOT_FOUND, text.into())
}

fn content_type(value: &'static str) -> (HeaderName, HeaderValue) {
    (header::CONTENT_TYPE, HeaderValue::from_static(value))
}

/// An answer without a signature, with the reason.
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) String);

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        use batch_modexp::rsa::Error::{DigestLength, KeyRestricted, KeyTooShort};
        let status = match &error {
            QueueError::Full | QueueError::ShutDown | QueueError::TimedOut => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            QueueError::Sign(DigestLength { .. } | KeyRestricted { .. } | KeyTooShort { .. }) => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = self.1 + "\n";
        match self.0 {
            StatusCode::SERVICE_UNAVAILABLE => {
                // Closed, because more clients may wait than there are connections.
                let again = [
                    (header::RETRY_AFTER, HeaderValue::from_static("1")),
                    (header::CONNECTION, HeaderValue::from_static("close")),
                ];
                (self.0, again, text).into_response()
            }
            status => (status, text).into_response(),
        }
    }
}
