//! A key for rustls that signs concurrent handshakes in one batch.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::{iter, thread};

use batch_modexp::backend::Auto;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, KeyHandle};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

type Request = (AnyScheme, Vec<u8>, Sender<Vec<u8>>);

#[derive(Clone, Debug)]
pub struct BatchKey(Sender<Request>);

impl BatchKey {
    /// Starts a thread that signs with `key` until the last clone is gone.
    pub fn new(key: KeyHandle) -> Result<Self, batch_modexp::Error> {
        let signer = BatchSigner::new(Auto::new()?, AnyScheme::Pkcs1v15 { hash: Hash::Sha256 });
        let (sender, requests) = channel();
        thread::spawn(move || serve(&signer, &key, requests));
        Ok(Self(sender))
    }
}

/// A request that fails gets no answer.
fn serve(signer: &BatchSigner<Auto, AnyScheme>, key: &KeyHandle, requests: Receiver<Request>) {
    while let Ok(first) = requests.recv() {
        let batch: Vec<_> = iter::once(first).chain(requests.try_iter()).collect();
        let messages: Vec<_> = batch.iter().map(|lane| (key, lane.0, &lane.1)).collect();
        let results = signer.sign_mixed(&mut getrandom::SysRng, &messages);
        for ((_, _, answer), result) in batch.iter().zip(results.into_iter().flatten()) {
            let _ = result.map(|signature| answer.send(signature.into()));
        }
    }
}

fn scheme(name: SignatureScheme) -> Option<AnyScheme> {
    let pss = |hash: Hash| AnyScheme::Pss { hash, salt_len: hash.digest_len() };
    match name {
        SignatureScheme::RSA_PSS_SHA256 => Some(pss(Hash::Sha256)),
        SignatureScheme::RSA_PSS_SHA384 => Some(pss(Hash::Sha384)),
        SignatureScheme::RSA_PSS_SHA512 => Some(pss(Hash::Sha512)),
        SignatureScheme::RSA_PKCS1_SHA256 => Some(AnyScheme::Pkcs1v15 { hash: Hash::Sha256 }),
        _ => None,
    }
}

impl SigningKey for BatchKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let name = *offered.iter().find(|name| scheme(**name).is_some())?;
        Some(Box::new(BatchKeySigner(self.clone(), name)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::RSA
    }
}

#[derive(Debug)]
struct BatchKeySigner(BatchKey, SignatureScheme);

impl Signer for BatchKeySigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = || Error::General("the handshake could not be signed".into());
        let (sender, answer) = channel();
        let request = (scheme(self.1).ok_or_else(failed)?, message.into(), sender);
        self.0.0.send(request).map_err(|_| failed())?;
        answer.recv().map_err(|_| failed())
    }

    fn scheme(&self) -> SignatureScheme {
        self.1
    }
}
