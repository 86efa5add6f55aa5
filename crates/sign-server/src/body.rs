//! The body of a request. It is hashed while it arrives, so messages of any number and length take
//! no memory.

use axum::body::Body;
use axum::http::StatusCode;
use batch_modexp::rsa::Hash;
use batch_modexp::rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::routes::Refusal;

/// Hashes a body of at most `max` bytes.
pub(crate) async fn digest_of(body: Body, hash: Hash, max: u64) -> Result<Vec<u8>, Refusal> {
    match hash {
        Hash::Sha256 => digest::<Sha256>(body, max).await,
        Hash::Sha384 => digest::<Sha384>(body, max).await,
        Hash::Sha512 => digest::<Sha512>(body, max).await,
        // No scheme uses another.
        _ => {
            let text = "this hash function is not supported";
            Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, text.into()))
        }
    }
}

async fn digest<D: Digest>(body: Body, max: u64) -> Result<Vec<u8>, Refusal> {
    let mut state = D::new();
    each_piece(body, max, |piece| state.update(piece)).await?;
    Ok(state.finalize().to_vec())
}

/// Reads a body that is a digest.
pub(crate) async fn digest_in(body: Body, hash: Hash) -> Result<Vec<u8>, Refusal> {
    let expected = hash.digest_len();
    let mut digest = Vec::with_capacity(expected);
    let read = each_piece(body, expected as u64, |piece| {
        digest.extend_from_slice(piece);
    })
    .await;
    match read {
        Ok(()) if digest.len() == expected => Ok(digest),
        Ok(()) | Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, _)) => {
            let text = format!("a digest of this scheme has {expected} bytes");
            Err(Refusal(StatusCode::BAD_REQUEST, text))
        }
        Err(other) => Err(other),
    }
}

async fn each_piece(mut body: Body, max: u64, mut take: impl FnMut(&[u8])) -> Result<(), Refusal> {
    let too_long = || {
        let text = format!("the message is longer than {max} bytes");
        Refusal(StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    // Checked before a client that waits for 100 Continue is told to send the body.
    if body.size_hint().lower() > max {
        return Err(too_long());
    }
    let mut rest = max;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let text = "the body ends too early, or is not encoded as the header says";
            Refusal(StatusCode::BAD_REQUEST, text.into())
        })?;
        // Trailers are ignored.
        if let Ok(piece) = frame.into_data() {
            rest = rest.checked_sub(piece.len() as u64).ok_or_else(too_long)?;
            take(&piece);
        }
    }
    Ok(())
}
