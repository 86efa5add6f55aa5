//! Signs messages in batches with an RSA key, one message a line.
//!
//! Without options of signing, or as `sign_batch bench`, it signs generated messages with a fresh
//! key. It compares the rate with one-by-one signing by the `rsa` crate. `sign_batch verify` checks
//! a file of signatures, `sign_batch keygen` generates keys.

// Modules with `pub(crate)` are also used by the fuzz targets in tests/fuzz.
pub(crate) mod args;
mod bench;
mod failure;
mod feed;
pub(crate) mod key;
mod keygen;
pub(crate) mod lines;
pub(crate) mod options;
mod output;
mod place;
mod report;
mod same_file;
pub(crate) mod schemes;
mod sign;
mod stdio;
mod temporary;
pub(crate) mod verify;

use std::process::ExitCode;

use args::{Command, SignArgs};
use batch_modexp::rsa::KeyHandle;
use failure::Failure;
use feed::{Feed, Messages};
use lines::{Content, Lines};
use options::Compute;
use output::Output;
use report::Report;
use rsa::PublicKey;

fn main() -> ExitCode {
    match Command::from_command_line().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            stdio::note(&format!("error: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sign(args) => sign(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Print(text) => stdio::print(&text),
    }
}

fn sign(args: &SignArgs) -> Result<(), Failure> {
    let compute = &args.compute;
    // Everything that can be refused is checked before the long work starts.
    let content = Content::new(args.prehashed, compute.scheme.hash);
    let lines = Lines::open(args.input(), content)?;
    let output = Output::new(args.output_target(), args.encoding)?;
    let key = key::load_private(args.key(), &args.passphrase, compute.scheme)?;
    let public = verifying_key(&key, compute)?;
    let signer = schemes::Signer::new(compute, compute.backend()?, public.as_ref(), args.prehashed);

    let mut messages = Messages::Lines(Feed::start(lines, args.flush_after())?);
    let (summary, output) = sign::all(compute, &signer, &key, &mut messages, output)?;
    output.commit()?;
    Report::new(compute, &signer, &key, &summary, None).print()
}

/// The key with which the `rsa` crate checks signatures. That crate refuses some keys, such as
/// those with long exponents; then there is none, and the user is told.
fn verifying_key(key: &KeyHandle, compute: &Compute) -> Result<Option<PublicKey>, Failure> {
    match key::public_half(key) {
        Ok(public) => Ok(Some(public)),
        Err(reason) if compute.verify_all => {
            Err(Failure::Input(format!("{reason}; leave out --verify-all")))
        }
        Err(reason) => {
            if !compute.no_verify && !compute.quiet {
                stdio::note(&format!("note: {reason}; the built-in check stays"));
            }
            Ok(None)
        }
    }
}
