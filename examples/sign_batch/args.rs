//! The command line.

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

use super::failure::{Failure, name};
use super::options::{Compute, Encoding, SchemeOptions, check_threads};
use super::output::Target;
use super::place::is_stdout;
use super::same_file::is_same_file;

/// A parsed command line.
pub enum Command {
    Sign(SignArgs),
    Verify(VerifyArgs),
    Bench(BenchArgs),
    Keygen(KeygenArgs),
    /// Help or the version, to be printed.
    Print(String),
}

/// Sign messages by the batch with an RSA key: a line is a message, and so is its signature
#[derive(Debug, Parser)]
#[command(
    name = "sign_batch",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    override_usage = "sign_batch --key <FILE> --input <FILE> [OPTIONS]\n       \
                      sign_batch [verify | keygen | bench] [OPTIONS]",
    after_help = AFTER_HELP
)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<SubCommand>,

    #[command(flatten)]
    sign: SignArgs,
}

const AFTER_HELP: &str = "\
A message is a line without its newline, at most 16 MiB; empty lines and carriage returns count.
An output file appears whole or not at all, also after a signal; a mounted one is overwritten.
Exit status: 0 done, 1 signing, checking or writing failed, 2 bad command line, file or key.";

#[derive(Debug, Subcommand)]
enum SubCommand {
    Verify(VerifyArgs),
    Bench(BenchArgs),
    Keygen(KeygenArgs),
}

#[derive(Debug, Args)]
pub struct SignArgs {
    /// Private key: PEM or DER, PKCS#8 or PKCS#1; `-` for standard input
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    #[command(flatten)]
    pub passphrase: Passphrase,

    /// Messages, one a line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Signatures, one a line; `-` for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// The lines are digests in hexadecimal, not messages; with LF or CRLF
    #[arg(long)]
    pub prehashed: bool,

    /// Encoding of the signatures: hex or base64
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Encoding::Hex)]
    pub encoding: Encoding,

    /// Milliseconds that a message waits for others at most
    #[arg(long, value_name = "MS", default_value_t = 200)]
    flush_after: u32,

    #[command(flatten)]
    pub compute: Compute,
}

/// Check a file of signatures; the lines that fail are listed
#[derive(Debug, Args)]
#[command(after_help = "\
Messages are compared with their carriage returns; digests and signatures may end with one.
Exit status: 0 all signatures are valid, 1 some are not, 2 none, or bad command line, file or key.")]
pub struct VerifyArgs {
    /// Public or private key, or certificate: PEM or DER; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,

    #[command(flatten)]
    pub passphrase: Passphrase,

    /// Messages, one a line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,

    /// Their signatures, one a line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub signatures: PathBuf,

    /// The lines are digests in hexadecimal, not messages; with LF or CRLF
    #[arg(long)]
    pub prehashed: bool,

    /// Encoding of the signatures: hex or base64
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Encoding::Hex)]
    pub encoding: Encoding,

    #[command(flatten)]
    pub scheme: SchemeOptions,

    /// With --scheme pss, accept salts of any length
    #[arg(long)]
    pub any_salt: bool,

    /// Threads; at most 64, or 4 a core if that is more [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Print no summary
    #[arg(long)]
    pub quiet: bool,
}

/// Sign generated messages and compare with the `rsa` crate; also without a name
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 done, 1 signing, checking or writing failed, 2 bad command line, file or key.")]
pub struct BenchArgs {
    /// Private key; `-` for standard input [default: a fresh one of --bits]
    #[arg(long, value_name = "FILE", conflicts_with = "bits")]
    pub key: Option<PathBuf>,

    #[command(flatten)]
    pub passphrase: Passphrase,

    /// Number of messages
    #[arg(long, value_name = "N", default_value = "1000")]
    pub count: NonZeroU64,

    /// Length of the fresh key in bits, 1024 to 8192
    #[arg(long, value_name = "N", default_value = "2048", value_parser = clap::value_parser!(u32).range(1024..=8192))]
    pub bits: u32,

    #[command(flatten)]
    pub compute: Compute,
}

/// Generate keys, each in a file of its own that only its owner can read
#[derive(Debug, Args)]
#[command(after_help = "\
The files are key-000001.pem and so on, in PKCS#8, unencrypted; no file is replaced.
Exit status: 0 done, 1 generating or writing failed, 2 bad command line or folder.")]
pub struct KeygenArgs {
    /// Folder for the keys; it is made if it is not there
    #[arg(long, value_name = "FOLDER")]
    pub out_dir: PathBuf,

    /// Number of keys
    #[arg(long, value_name = "N", default_value = "1")]
    pub count: NonZeroUsize,

    /// Length of the keys in bits, a multiple of 128 from 1024 to 8192
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub bits: u32,

    /// Public exponent, an odd number from 65537 to 4294967295
    #[arg(long, value_name = "E", default_value_t = 65_537)]
    pub exponent: u32,

    /// Make the primes safe: (p - 1) / 2 and (q - 1) / 2 are primes too; takes much longer
    #[arg(long)]
    pub safe_primes: bool,

    /// Test candidates for primes on GPUs, which get copies of them
    #[arg(long)]
    pub gpus: bool,

    /// Threads; at most 64, or 4 a core if that is more [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Print a summary as JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Print no progress and no summary
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct Passphrase {
    /// The first line of this file decrypts the key; `-` for standard input
    #[arg(long, value_name = "FILE", requires = "key")]
    pub passphrase_file: Option<PathBuf>,
}

impl Command {
    /// Parses the command line.
    pub fn from_command_line() -> Result<Self, Failure> {
        let mut arguments: Vec<_> = std::env::args_os().collect();
        if is_bench(&arguments) {
            arguments.insert(1, "bench".into());
        }
        Self::parse_from(&arguments)
    }

    fn parse_from(arguments: &[OsString]) -> Result<Self, Failure> {
        let command_line = match CommandLine::try_parse_from(arguments) {
            Ok(command_line) => command_line,
            Err(error) if error.use_stderr() => return Err(Failure::Input(one_line(&error))),
            Err(text) => return Ok(Self::Print(text.render().to_string())),
        };
        match command_line.command {
            None => command_line.sign.check().map(Self::Sign),
            Some(SubCommand::Verify(args)) => args.check().map(Self::Verify),
            Some(SubCommand::Keygen(args)) => {
                check_threads(args.threads)?;
                Ok(Self::Keygen(args))
            }
            Some(SubCommand::Bench(args)) => {
                args.compute.check()?;
                one_standard_input(&[("--key", args.key.as_ref()), args.passphrase.source()])?;
                Ok(Self::Bench(args))
            }
        }
    }
}

impl SignArgs {
    /// Checks what clap cannot express.
    fn check(self) -> Result<Self, Failure> {
        self.compute.check()?;
        let missing = match (&self.key, &self.input) {
            (Some(_), Some(_)) => None,
            (None, None) => Some("--key and --input are missing"),
            (None, _) => Some("--key is missing"),
            _ => Some("--input is missing (`-` for standard input)"),
        };
        if let Some(missing) = missing {
            return Err(Failure::Input(format!(
                "{missing}; `sign_batch bench` signs generated messages (see --help)"
            )));
        }
        let sources = [
            ("--input", self.input.as_ref()),
            ("--key", self.key.as_ref()),
            self.passphrase.source(),
        ];
        one_standard_input(&sources)?;
        if self.compute.json && self.output_target() == Target::Stdout {
            return Err(Failure::Input(
                "--json and the signatures would both go to standard output; name an --output file"
                    .into(),
            ));
        }
        not_read(self.output_target(), &sources)?;
        let calibration = ("--calibration", self.compute.calibration.as_ref());
        not_read(self.output_target(), &[calibration])?;
        Ok(self)
    }

    /// The path of the private key. [`check`](Self::check) makes sure that it is given.
    pub fn key(&self) -> &Path {
        self.key.as_deref().unwrap_or(Path::new("-"))
    }

    /// The path of the messages. [`check`](Self::check) makes sure that it is given.
    pub fn input(&self) -> &Path {
        self.input.as_deref().unwrap_or(Path::new("-"))
    }

    /// The target of the signatures.
    pub fn output_target(&self) -> Target<'_> {
        match is_dash(&self.output) || is_stdout(&self.output) {
            true => Target::Stdout,
            false => Target::File(&self.output),
        }
    }

    /// The longest time that a message waits for others.
    pub fn flush_after(&self) -> Duration {
        Duration::from_millis(self.flush_after.into())
    }
}

impl VerifyArgs {
    fn check(self) -> Result<Self, Failure> {
        check_threads(self.threads)?;
        let sources = [
            ("--input", Some(&self.input)),
            ("--signatures", Some(&self.signatures)),
            ("--key", Some(&self.key)),
            self.passphrase.source(),
        ];
        one_standard_input(&sources)?;
        // Failures are printed on standard output, and would be read again.
        not_read(Target::Stdout, &sources)?;
        Ok(self)
    }
}

impl Passphrase {
    fn source(&self) -> (&str, Option<&PathBuf>) {
        ("--passphrase-file", self.passphrase_file.as_ref())
    }
}

/// Whether these are arguments of `bench` without its name: options, but none of signing alone. A
/// key is for signing, unless an option of `bench` comes with it.
fn is_bench(arguments: &[OsString]) -> bool {
    const OF_BENCH: [&str; 2] = ["--count", "--bits"];
    const OTHERS: [&str; 9] = [
        "--input",
        "--output",
        "--prehashed",
        "--encoding",
        "--flush-after",
        "-h",
        "--help",
        "-V",
        "--version",
    ];
    let names: Vec<_> = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.to_string_lossy())
        .map(|text| text.split('=').next().unwrap_or_default().to_string())
        .collect();
    let has = |some: &[&str]| names.iter().any(|name| some.contains(&name.as_str()));
    names.first().is_none_or(|first| first.starts_with('-'))
        && !has(&OTHERS)
        && (!has(&["--key"]) || has(&OF_BENCH))
}

/// Refuses to write to a file that is also read.
fn not_read(target: Target<'_>, sources: &[(&str, Option<&PathBuf>)]) -> Result<(), Failure> {
    for (option, source) in sources {
        if let Some(source) = source
            && is_same_file(target, source)
        {
            return Err(Failure::Input(format!(
                "the output would go to {}, which {option} reads; send it elsewhere",
                name(source)
            )));
        }
    }
    Ok(())
}

/// Refuses to read standard input twice.
fn one_standard_input(sources: &[(&str, Option<&PathBuf>)]) -> Result<(), Failure> {
    let is_dash = |path: &Option<&PathBuf>| path.is_some_and(|path| is_dash(path));
    let mut dashes = sources.iter().filter(|(_, path)| is_dash(path));
    match (dashes.next(), dashes.next()) {
        (Some((first, _)), Some((second, _))) => Err(Failure::Input(format!(
            "{first} and {second} cannot both be standard input; name a file"
        ))),
        _ => Ok(()),
    }
}

/// An error of clap with its tip, without the usage, in one line.
fn one_line(error: &clap::Error) -> String {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && matches!(option.as_str(), "--count" | "--bits")
    {
        return format!("{option} goes with `sign_batch bench` (see --help)");
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.replace(
        "number would be zero for non-zero type",
        "it must be at least 1",
    );
    let parts = text
        .split("\n\n")
        .take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"))
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    format!("{} (see --help)", parts.collect::<Vec<_>>().join("; "))
}

/// Whether `path` means standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}
