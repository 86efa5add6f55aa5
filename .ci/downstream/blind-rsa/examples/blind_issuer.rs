//! Issues tokens in all four variants of RFC 9474. Clients blind and verify with
//! blind-rsa-signatures. The issuer signs in batches, and one by one for comparison.
//!
//! ```text
//! cargo run --release -p tree-blind-rsa --example blind_issuer -- 1000
//! ```

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use batch_modexp::backend::Auto;
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::blind::BlindSigner;
use blind_rsa_signatures::*;
use getrandom::SysRng;

/// A key that protects nothing.
const KEY: &str = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");

fn main() -> ExitCode {
    let count = match std::env::args().nth(1).map(|count| count.parse()) {
        None => 256,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            eprintln!("usage: blind_issuer [number of tokens]");
            return ExitCode::from(2);
        }
    };
    match run(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blind_issuer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(count: usize) -> Result<(), Box<dyn Error>> {
    let backend = Auto::new()?;
    println!("issues on {}: {}", backend.name(), backend.reason());
    let key = KeyHandle::from_pkcs8_pem(KEY)?;
    issue::<PSS, Randomized>("RSABSSA-SHA384-PSS-Randomized", &backend, &key, count)?;
    issue::<PSSZero, Randomized>("RSABSSA-SHA384-PSSZERO-Randomized", &backend, &key, count)?;
    issue::<PSS, Deterministic>("RSABSSA-SHA384-PSS-Deterministic", &backend, &key, count)?;
    issue::<PSSZero, Deterministic>("RSABSSA-SHA384-PSSZERO-Deterministic", &backend, &key, count)
}

fn issue<S: SaltMode, M: MessagePrepare>(
    variant: &str,
    backend: &Auto,
    key: &KeyHandle,
    count: usize,
) -> Result<(), Box<dyn Error>> {
    let public = PublicKey::<Sha384, S, M>::from_der(&key.public_key_der())?;
    let secret = SecretKey::<Sha384, S, M>::from_pem(KEY)?;
    // The clients.
    let nonces: Vec<_> = (0..count).map(|number| number.to_be_bytes()).collect();
    let blinded: Vec<_> = nonces
        .iter()
        .map(|nonce| public.blind(&mut DefaultRng, nonce))
        .collect::<Result<_, _>>()?;
    // The issuer.
    let messages: Vec<_> = blinded.iter().map(|result| &result.blind_message).collect();
    let started = Instant::now();
    let signatures = BlindSigner::new(backend).sign(&mut SysRng, key, &messages)?;
    let batch = started.elapsed();
    let started = Instant::now();
    for message in &messages {
        secret.blind_sign(message)?;
    }
    let singly = started.elapsed();
    // The clients again.
    for ((nonce, result), signed) in nonces.iter().zip(&blinded).zip(&signatures) {
        let token = public.finalize(&BlindSignature(signed?.to_vec()), result, nonce)?;
        public.verify(&token, result.msg_randomizer, nonce)?;
    }
    println!("{variant}: {count} tokens in {batch:.1?} as a batch, in {singly:.1?} one by one");
    Ok(())
}
