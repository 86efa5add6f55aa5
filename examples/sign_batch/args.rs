//! The command line.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use batch_modexp::backend::{Auto, Kind};
use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};

use super::failure::Failure;
use super::output::Target;

/// Sign messages by the batch with an RSA key.
///
/// With --input, every line of the file is a message: its bytes without the newline. Empty lines are
/// messages, and so is a last line without a newline; a carriage return belongs to its message. The
/// output has one signature a line in the same order.
///
/// Without --input, sign --count generated messages and compare with signing one by one with the `rsa`
/// crate.
#[derive(Debug, Parser)]
#[command(name = "sign_batch", version, verbatim_doc_comment)]
pub struct Args {
    /// Private key in PEM, PKCS#1 or PKCS#8, not encrypted [default: a fresh key of --bits]
    #[arg(long, value_name = "FILE", conflicts_with = "bits")]
    pub key: Option<PathBuf>,

    /// Messages, one a line; `-` for standard input [default: generated messages]
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "count")]
    pub input: Option<PathBuf>,

    /// Where the signatures go; `-` for standard output [default: standard output with --input,
    /// nowhere without]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Signature scheme
    #[arg(long, value_enum, default_value_t = SchemeName::Pkcs1v15)]
    pub scheme: SchemeName,

    /// Hash function
    #[arg(long, value_enum, default_value_t = HashName::Sha256)]
    pub hash: HashName,

    /// Encoding of the signatures
    #[arg(long, value_enum, default_value_t = Encoding::Hex)]
    pub encoding: Encoding,

    /// What computes
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,

    /// The GPU to compute on, counted from 0, or `all`; a number asks for --backend cuda
    #[arg(long, value_name = "N", default_value = "all", value_parser = device)]
    pub device: Device,

    /// Signatures computed at a time [default: 256, or 8192 on a GPU]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<NonZeroUsize>,

    /// Threads of the backend and of the comparison [default: one for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Number of generated messages
    #[arg(long, value_name = "N", default_value = "1000")]
    pub count: NonZeroU64,

    /// Length of the fresh key in bits
    #[arg(long, value_name = "N", default_value = "2048", value_parser = clap::value_parser!(u32).range(1024..=8192))]
    pub bits: u32,

    /// Do not blind the base
    #[arg(long)]
    pub no_blinding: bool,

    /// Skip the second check of every signature, with the `rsa` crate; the built-in check stays
    #[arg(long)]
    pub no_verify: bool,

    /// Print the result as a JSON object on standard output
    #[arg(long)]
    pub json: bool,

    /// Print no progress and no summary
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum SchemeName {
    /// RSASSA-PKCS1-v1_5
    Pkcs1v15,
    /// RSASSA-PSS with a salt as long as the digest
    Pss,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum HashName {
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Encoding {
    Hex,
    Base64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum BackendName {
    /// The fastest that this machine offers
    Auto,
    /// One thread, portable
    Serial,
    /// Many threads, portable
    Parallel,
    /// Many threads, fused multiply-add of doubles
    Fma,
    /// Many threads, AVX-512 IFMA
    Ifma,
    /// NVIDIA GPUs
    Cuda,
}

/// Which GPUs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Device {
    All,
    Number(usize),
}

fn device(text: &str) -> Result<Device, String> {
    match text {
        "all" => Ok(Device::All),
        number => number
            .parse()
            .map(Device::Number)
            .map_err(|_| "a number or `all` is expected".into()),
    }
}

impl From<BackendName> for Kind {
    fn from(name: BackendName) -> Self {
        match name {
            BackendName::Auto => Self::Auto,
            BackendName::Serial => Self::Serial,
            BackendName::Parallel => Self::Parallel,
            BackendName::Fma => Self::Fma,
            BackendName::Ifma => Self::Ifma,
            BackendName::Cuda => Self::Cuda,
        }
    }
}

impl Args {
    /// Parses the command line. `None` if all that was asked for was help or the version, which is
    /// printed already.
    pub fn from_command_line() -> Result<Option<Self>, Failure> {
        match Self::try_parse() {
            Ok(args) => args.check().map(Some),
            Err(error) => match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    // Nobody is left to tell if this fails.
                    let _ = error.print();
                    Ok(None)
                }
                _ => Err(Failure::Input(one_line(&error.to_string()))),
            },
        }
    }

    /// What clap cannot say.
    fn check(self) -> Result<Self, Failure> {
        if self.backend == BackendName::Serial && self.threads.is_some_and(|n| n.get() > 1) {
            return Err(Failure::Input("--backend serial computes on one thread; take --backend parallel, or leave out --threads".into()));
        }
        let on_gpu = matches!(self.backend, BackendName::Auto | BackendName::Cuda);
        if self.device != Device::All && !on_gpu {
            return Err(Failure::Input(
                "--device goes with --backend cuda or auto".into(),
            ));
        }
        if self.json && self.output_target() == Target::Stdout {
            return Err(Failure::Input(
                "--json and the signatures would both go to standard output; name an --output file"
                    .into(),
            ));
        }
        Ok(self)
    }

    /// The backend that was asked for.
    pub fn backend(&self) -> Result<Auto, Failure> {
        Ok(match self.device {
            Device::All => Auto::with(self.backend.into(), self.threads)?,
            Device::Number(ordinal) => Auto::on_devices(&[ordinal], self.threads)?,
        })
    }

    /// How many signatures `backend` computes at a time.
    pub fn batch_size(&self, backend: &Auto) -> usize {
        let default = if backend.name() == "cuda" { 8192 } else { 256 };
        self.batch_size.map_or(default, NonZeroUsize::get)
    }

    /// Where the signatures go.
    pub fn output_target(&self) -> Target<'_> {
        match (&self.output, &self.input) {
            (Some(path), _) if path.as_os_str() == "-" => Target::Stdout,
            (Some(path), _) => Target::File(path),
            (None, Some(_)) => Target::Stdout,
            (None, None) => Target::Nowhere,
        }
    }
}

/// The first paragraph of an error of clap in one line.
fn one_line(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or(text);
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line} (see --help)")
}

/// Whether `path` stands for standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}
