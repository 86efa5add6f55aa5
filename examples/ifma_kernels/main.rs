//! Checks and measures the SIMD kernels of one core, beside other builds of this program.
//!
//! ```text
//! cargo run --release --example ifma_kernels                 # checks, then rates of this build
//! cargo run --release --example ifma_kernels -- OTHER_BUILD  # the same, in turns with another build
//! ```
//!
//! A change of a kernel is measured by building this program before and after it.

#[path = "../../benches/common/instances.rs"]
mod instances;
mod measure;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use batch_modexp::backend::{Fma, Ifma};
use batch_modexp::{BatchModExp, Error};
use clap::{Parser, ValueEnum};
use crypto_bigint::BoxedUint;

/// Checks and measures the SIMD kernels on one core.
#[derive(Parser)]
struct Options {
    /// Other builds of this program, to measure in turns with this one
    others: Vec<PathBuf>,

    /// The backend
    #[arg(long, value_enum, default_value_t = Backend::Ifma)]
    backend: Backend,

    /// Widths to measure, in bits, multiples of 64
    #[arg(long, value_delimiter = ',', default_values_t = [1024, 1536, 2048, 3072, 4096])]
    bits: Vec<u32>,

    /// Instances in a batch
    #[arg(long, default_value_t = 64)]
    batch: usize,

    /// Rounds; a figure is the median over them
    #[arg(long, default_value_t = 9)]
    rounds: usize,

    /// Milliseconds to compute for in a round, in whole batches
    #[arg(long, default_value_t = 100)]
    slice: u64,

    /// Leaves the checks out
    #[arg(long)]
    no_checks: bool,

    /// Prints one rate for each of `--bits` and nothing else: what a build is asked for in its turn
    #[arg(long, hide = true)]
    turn: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    Ifma,
    Fma,
}

/// What is checked and measured.
type Unit = dyn BatchModExp<BoxedUint, Error = Error>;

impl Backend {
    fn unit(self) -> Option<Box<Unit>> {
        match self {
            Self::Ifma => Ifma::new().map(|unit| Box::new(unit) as Box<Unit>),
            Self::Fma => Fma::new().map(|unit| Box::new(unit) as Box<Unit>),
        }
    }

    /// As it is written on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Ifma => "ifma",
            Self::Fma => "fma",
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let Some(unit) = options.backend.unit() else {
        eprintln!(
            "error: this processor has not the instructions of `{}`; see --backend",
            options.backend.name()
        );
        return ExitCode::from(2);
    };
    if options.turn {
        measure::turn(&*unit, &options);
        return ExitCode::SUCCESS;
    }
    if !options.no_checks {
        match verify::all_widths(&*unit) {
            Ok(count) => println!("{count} results equal those of num-bigint"),
            Err(message) => {
                eprintln!("error: {message}");
                return ExitCode::FAILURE;
            }
        }
    }
    match measure::table(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
