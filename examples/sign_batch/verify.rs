//! Checks a file of signatures against a file of messages.

use std::fmt::Write;

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::rsa::{AnyScheme, BatchVerifier, Error, PublicKey};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use indicatif::HumanCount;

use super::args::VerifyArgs;
use super::failure::Failure;
use super::key;
use super::lines::{Content, Lines, without_return};
use super::options::{Encoding, SchemeName};
use super::schemes::any_scheme;
use super::stdio;

/// Limits of the pairs checked at a time: their number, and the bytes after which no more are read.
const MAX_PAIRS: usize = 8192;
const MAX_BYTES: usize = 64 << 20;

/// A message and its signature; one is missing if the files differ in length.
pub type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Prints the lines that fail on standard output, and fails if there are any.
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    if args.any_salt && args.scheme.scheme != SchemeName::Pss {
        return Err(Failure::Input("--any-salt is for --scheme pss".into()));
    }
    let key = key::load_public(&args.key, &args.passphrase, args.scheme)?;
    let backend = Auto::with(Kind::Cpu, args.threads)?;
    let checker = Checker {
        verifier: BatchVerifier::new(backend, any_scheme(args.scheme)).any_salt_len(args.any_salt),
        key,
        prehashed: args.prehashed,
        encoding: args.encoding,
    };
    let content = Content::new(args.prehashed, args.scheme.hash);
    let mut messages = Lines::open(&args.input, content)?;
    let mut signatures = Lines::open(&args.signatures, Content::Bytes)?;

    let (mut count, mut failed) = (0u64, 0u64);
    loop {
        let pairs = next_pairs(&mut messages, &mut signatures)?;
        if pairs.is_empty() {
            break;
        }
        let mut text = String::new();
        for fault in checker.faults(&pairs)? {
            count += 1;
            if let Some(fault) = fault {
                failed += 1;
                // Writing to a string does not fail.
                let _ = writeln!(text, "line {count}: {fault}");
            }
        }
        stdio::print(&text)?;
    }
    if failed > 0 {
        return Err(Failure::Work(format!(
            "{} of {} signatures are not valid",
            HumanCount(failed),
            HumanCount(count)
        )));
    }
    // A program whose input failed to arrive must not take that for valid.
    if count == 0 {
        return Err(Failure::Input("there are no signatures to verify".into()));
    }
    if !args.quiet {
        stdio::note(&format!("all {} signatures are valid", HumanCount(count)));
    }
    Ok(())
}

/// Reads the next pairs; none at the end.
pub fn next_pairs(messages: &mut Lines, signatures: &mut Lines) -> Result<Vec<Pair>, Failure> {
    let (mut pairs, mut bytes) = (Vec::new(), 0);
    while pairs.len() < MAX_PAIRS && bytes < MAX_BYTES {
        let pair = (messages.next()?, signatures.next()?);
        if pair == (None, None) {
            break;
        }
        bytes += [&pair.0, &pair.1]
            .into_iter()
            .flatten()
            .map(Vec::len)
            .sum::<usize>();
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Checks signatures with one key.
pub struct Checker {
    pub verifier: BatchVerifier<Auto, AnyScheme>,
    pub key: PublicKey,
    /// Whether the lines are digests.
    pub prehashed: bool,
    pub encoding: Encoding,
}

impl Checker {
    /// Checks pairs; returns the fault of each, or `None`.
    pub fn faults(&self, pairs: &[Pair]) -> Result<Vec<Option<String>>, Failure> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|pair| decode(self.encoding, pair))
            .collect();
        let signed: Vec<_> = pairs.iter().flatten().map(|(m, s)| (m, s)).collect();
        let verdicts = match self.prehashed {
            true => self.verifier.verify_prehash(&self.key, &signed)?,
            false => self.verifier.verify(&self.key, &signed)?,
        };
        let mut verdicts = verdicts.iter();
        let fault = |pair: &Result<_, &str>| match pair {
            Err(fault) => Ok(Some((*fault).to_owned())),
            Ok(_) => verdicts.next().map_or(Ok(None), fault),
        };
        pairs.iter().map(fault).collect()
    }
}

/// The fault that a verdict reports. A fault of the key concerns all signatures, and ends the
/// program.
fn fault(verdict: Result<(), Error>) -> Result<Option<String>, Failure> {
    Ok(Some(match verdict {
        Ok(()) => return Ok(None),
        Err(Error::Verification { .. }) => "the signature is not valid".into(),
        Err(Error::BlockOutOfRange { len, expected, .. }) if len != expected => {
            format!("the signature has {len} bytes, and the key's have {expected}")
        }
        Err(Error::BlockOutOfRange { .. }) => {
            "the signature is not below the modulus of the key".into()
        }
        Err(error) => return Err(error.into()),
    }))
}

/// Decodes a pair, or returns the fault of its lines.
fn decode(encoding: Encoding, pair: &Pair) -> Result<(&[u8], Vec<u8>), &'static str> {
    let (message, line) = match pair {
        (Some(message), Some(line)) => (message, line),
        (_, None) => return Err("there is no signature"),
        (None, _) => return Err("there is no message"),
    };
    let line = without_return(line);
    let signature = match encoding {
        Encoding::Hex => HEXLOWER_PERMISSIVE
            .decode(line)
            .map_err(|_| "the signature is not in hexadecimal"),
        Encoding::Base64 => BASE64
            .decode(line)
            .map_err(|_| "the signature is not in base64"),
    };
    Ok((message, signature?))
}
