//! Signs messages by the batch with an RSA key, one message a line.
//!
//! With no `--input` it signs generated messages with a fresh key and compares the rate with signing one
//! by one with the `rsa` crate.

mod args;
mod compare;
mod failure;
mod key;
mod lines;
mod output;
mod report;
mod schemes;
mod sign;

use std::process::ExitCode;

use args::Args;
use batch_modexp::rsa::KeyHandle;
use failure::Failure;
use lines::Messages;
use output::Output;
use report::Report;

fn main() -> ExitCode {
    match Args::from_command_line().and_then(|args| args.map_or(Ok(()), |args| run(&args))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let backend = args.backend()?;
    // Everything that can be refused is looked at before the long work starts.
    let mut messages = match &args.input {
        Some(path) => Messages::from_lines(path)?,
        None => Messages::generated(args.count),
    };
    let mut output = Output::new(args.output_target(), args.encoding)?;
    let rsa_key = match &args.key {
        Some(path) => key::load(path)?,
        None => key::generate(args.bits, args.quiet)?,
    };
    let handle =
        KeyHandle::new(&rsa_key).map_err(|error| Failure::bad_key(args.key.as_deref(), &error))?;
    let signer = schemes::signer(args.scheme, args.hash, backend, &rsa_key, !args.no_blinding);

    let summary = sign::all(args, signer.as_ref(), &handle, &mut messages, &mut output)?;
    let baseline = match args.input {
        Some(_) => None,
        None => Some(compare::one_by_one(signer.as_ref())?),
    };
    output.commit()?;
    Report::new(args, signer.as_ref(), &handle, &summary, baseline.as_ref()).print();
    Ok(())
}
