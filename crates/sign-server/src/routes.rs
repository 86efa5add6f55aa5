//! What the service answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use batch_modexp::queue::{BatchQueue, QueueError};
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle};

use crate::keys::Keys;
use crate::metrics;

/// What all requests share.
pub(crate) struct Service {
    queue: BatchQueue,
    keys: Keys,
    is_ending: AtomicBool,
}

impl Service {
    pub(crate) fn new(queue: BatchQueue, keys: Keys) -> Self {
        Self {
            queue,
            keys,
            is_ending: AtomicBool::new(false),
        }
    }

    /// Says so to whoever asks for the service's health, such as a load balancer.
    pub(crate) fn begin_shutdown(&self) {
        self.is_ending.store(true, Relaxed);
    }

    fn key(&self, name: &str) -> Result<&KeyHandle, Refusal> {
        let unknown = || Refusal(StatusCode::NOT_FOUND, "there is no key of this name".into());
        self.keys.get(name).ok_or_else(unknown)
    }
}

pub(crate) fn router(service: Arc<Service>, max_message: usize) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(numbers))
        .route("/keys", get(names))
        .route("/keys/{key}", get(public_key))
        .route("/sign/{key}/{scheme}", post(sign))
        .route("/sign-digest/{key}/{scheme}", post(sign_digest))
        .layer(DefaultBodyLimit::max(max_message))
        .with_state(service)
}

async fn health(State(service): State<Arc<Service>>) -> (StatusCode, &'static str) {
    match service.is_ending.load(Relaxed) {
        false => (StatusCode::OK, "ok\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
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
        .map(|(name, key)| format!("{name} {}\n", key.bits()));
    lines.collect()
}

async fn public_key(
    State(service): State<Arc<Service>>,
    Path(key): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let pem = service.key(&key)?.public_key_pem();
    Ok(([content_type("application/x-pem-file")], pem))
}

async fn sign(
    State(service): State<Arc<Service>>,
    Path((key, scheme)): Path<(String, String)>,
    message: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let (key, scheme) = (service.key(&key)?, scheme_of(&scheme)?);
    // If the client goes, so does this future, and with it the request.
    let signature = service.queue.try_sign(key, scheme, &message)?.await?;
    Ok((
        [content_type("application/octet-stream")],
        Vec::from(signature),
    ))
}

async fn sign_digest(
    State(service): State<Arc<Service>>,
    Path((key, scheme)): Path<(String, String)>,
    digest: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let (key, scheme) = (service.key(&key)?, scheme_of(&scheme)?);
    let signature = service
        .queue
        .try_sign_prehash(key, scheme, &digest)?
        .await?;
    Ok((
        [content_type("application/octet-stream")],
        Vec::from(signature),
    ))
}

/// By its name in JOSE (RFC 7518, sections 3.3 and 3.5).
fn scheme_of(name: &str) -> Result<AnyScheme, Refusal> {
    let hash = match name.get(2..) {
        Some("256") => Hash::Sha256,
        Some("384") => Hash::Sha384,
        Some("512") => Hash::Sha512,
        _ => return Err(unknown_scheme()),
    };
    match &name[..2] {
        "RS" => Ok(AnyScheme::Pkcs1v15 { hash }),
        "PS" => Ok(AnyScheme::Pss {
            hash,
            salt_len: hash.digest_len(),
        }),
        _ => Err(unknown_scheme()),
    }
}

fn unknown_scheme() -> Refusal {
    let text = "schemes are RS256, RS384, RS512, PS256, PS384 and PS512";
    Refusal(StatusCode::NOT_FOUND, text.into())
}

fn content_type(value: &'static str) -> (HeaderName, HeaderValue) {
    (header::CONTENT_TYPE, HeaderValue::from_static(value))
}

/// An answer that is no signature, with the reason.
pub(crate) struct Refusal(StatusCode, String);

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        use batch_modexp::Error::{DigestLength, KeyRestricted, KeyTooShort};
        let status = match &error {
            QueueError::Full | QueueError::ShutDown => StatusCode::SERVICE_UNAVAILABLE,
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
                let again = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
                (self.0, again, text).into_response()
            }
            status => (status, text).into_response(),
        }
    }
}
