//! Checks the kernels of a PTX file from the command line. See `--help`.

mod cli {
    pub mod args;
    pub mod check;
    pub mod failure;
    pub mod file;
    pub mod instructions;
    pub mod list;
    pub mod parameters;
}

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use cli::args::{Args, Command};
use cli::failure::Failure;
use cli::{check, instructions, list};

/// Exit status for a finding.
const FINDING: u8 = 1;
/// Exit status for a command line or file that cannot be used.
const INPUT: u8 = 2;

fn main() -> ExitCode {
    match run(&Args::parse().command).and_then(print) {
        Ok(status) => status,
        Err(failure) => {
            // A failure to write cannot be reported.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(INPUT)
        }
    }
}

/// The output and the exit status of a command.
fn run(command: &Command) -> Result<(String, ExitCode), Failure> {
    match command {
        Command::Check(args) => {
            let report = check::run(args)?;
            let status = match report.is_clean {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(FINDING),
            };
            Ok((report.text, status))
        }
        Command::List(args) => Ok((list::run(&args.file)?, ExitCode::SUCCESS)),
        Command::Instructions => Ok((instructions::run(), ExitCode::SUCCESS)),
    }
}

fn print((text, status): (String, ExitCode)) -> Result<ExitCode, Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::Output)?;
    Ok(status)
}
