//! Checks a file of signatures against a file of messages.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::thread;

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use indicatif::HumanCount;

use super::args::VerifyArgs;
use super::failure::Failure;
use super::key;
use super::lines::{Content, Lines, without_return};
use super::options::{Encoding, cores};
use super::schemes::{self, Check};
use super::stdio;

/// Pairs that are checked at a time: at most so many, and no more once they have so many bytes.
const MAX_PAIRS: usize = 8192;
const MAX_BYTES: usize = 64 << 20;

/// A message and its signature; one of them is missing if the files are not equally long.
pub type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Prints the lines that fail on standard output, and fails if there are any.
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let key = key::load_public(&args.key, &args.passphrase, args.scheme)?;
    let check = schemes::verifier(args.scheme, &key, args.prehashed);
    let content = Content::new(args.prehashed, args.scheme.hash);
    let mut messages = Lines::open(&args.input, content)?;
    let mut signatures = Lines::open(&args.signatures, Content::Bytes)?;
    let threads = args.threads.map_or_else(cores, NonZeroUsize::get);

    let (mut count, mut failed) = (0u64, 0u64);
    loop {
        let pairs = next_pairs(&mut messages, &mut signatures)?;
        if pairs.is_empty() {
            break;
        }
        let mut text = String::new();
        for fault in faults(check.as_ref(), args.encoding, &pairs, threads) {
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
    if !args.quiet {
        stdio::note(&format!("all {} signatures are valid", HumanCount(count)));
    }
    Ok(())
}

/// The next pairs; none at the end.
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

/// What is wrong with each pair. There is at least one, and at least one thread.
pub fn faults(
    check: &dyn Check,
    encoding: Encoding,
    pairs: &[Pair],
    threads: usize,
) -> Vec<Option<&'static str>> {
    thread::scope(|scope| {
        let shares: Vec<_> = pairs
            .chunks(pairs.len().div_ceil(threads))
            .map(|share| {
                let fault = move |pair| fault(check, encoding, pair);
                scope.spawn(move || share.iter().map(fault).collect::<Vec<_>>())
            })
            .collect();
        shares
            .into_iter()
            .flat_map(|share| {
                share
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// What is wrong with a pair.
fn fault(check: &dyn Check, encoding: Encoding, pair: &Pair) -> Option<&'static str> {
    let (message, line) = match pair {
        (Some(message), Some(line)) => (message, line),
        (_, None) => return Some("there is no signature"),
        (None, _) => return Some("there is no message"),
    };
    let line = without_return(line);
    let (signature, wrong_encoding) = match encoding {
        Encoding::Hex => (
            HEXLOWER_PERMISSIVE.decode(line),
            "the signature is not in hexadecimal",
        ),
        Encoding::Base64 => (BASE64.decode(line), "the signature is not in base64"),
    };
    match signature {
        Err(_) => Some(wrong_encoding),
        Ok(signature) if check.accepts(message, &signature) => None,
        Ok(_) => Some("the signature is not valid"),
    }
}
