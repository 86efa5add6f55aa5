//! Options shared by the sub-commands.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use batch_modexp::backend::cuda::Calibration;
use batch_modexp::backend::{Auto, Cuda, Kind};
use batch_modexp::rsa::Hash;
use clap::{Args, ValueEnum};
use rsa::pkcs8::ObjectIdentifier;

use super::failure::Failure;
use super::schemes::Signer;

/// The signature scheme.
#[derive(Clone, Copy, Debug, Args)]
pub struct SchemeOptions {
    /// pkcs1v15, or pss with a salt as long as the digest
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = SchemeName::Pkcs1v15)]
    pub scheme: SchemeName,

    /// Hash function
    #[arg(long, value_enum, default_value_t = HashName::Sha256)]
    pub hash: HashName,
}

/// How signatures are computed.
#[derive(Debug, Args)]
pub struct Compute {
    #[command(flatten)]
    pub scheme: SchemeOptions,

    /// Backend; auto may copy the key to a GPU
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,

    /// GPU number, counted from 0; asks for --backend cuda
    #[arg(long, value_name = "N", default_value = "all", value_parser = device)]
    pub device: Device,

    /// Times measured by `throughput --tune`; auto takes any GPU then
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// Signatures computed at a time [default: 256, or 131072 on a GPU]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<NonZeroUsize>,

    /// Threads; at most 64, or 4 a core if more [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Do not blind the base
    #[arg(long)]
    pub no_blinding: bool,

    /// Skip the check with the `rsa` crate; the built-in check stays
    #[arg(long)]
    pub no_verify: bool,

    /// Check all with the `rsa` crate, on a GPU too instead of one in 256
    #[arg(long, conflicts_with = "no_verify")]
    pub verify_all: bool,

    /// Print a summary as JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Print no progress and no summary
    #[arg(long)]
    pub quiet: bool,
}

/// The signatures that the `rsa` crate checks before they are written. All have passed the built-in
/// check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verified {
    None,
    /// One in [`SAMPLED`] of each batch, and the last one.
    Sample,
    All,
}

/// The number of signatures for each one of a sample.
pub const SAMPLED: usize = 256;

impl Verified {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sample => "sample",
            Self::All => "all",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum SchemeName {
    Pkcs1v15,
    Pss,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum HashName {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Encoding {
    Hex,
    Base64,
}

// Without doc comments for the values: clap would print each on a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum BackendName {
    Auto,
    Cpu,
    Serial,
    Parallel,
    Fma,
    Ifma,
    Cuda,
}

/// The GPUs to use.
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
            BackendName::Auto => Self::GpuOrCpu,
            BackendName::Cpu => Self::Cpu,
            BackendName::Serial => Self::Serial,
            BackendName::Parallel => Self::Parallel,
            BackendName::Fma => Self::Fma,
            BackendName::Ifma => Self::Ifma,
            BackendName::Cuda => Self::Cuda,
        }
    }
}

impl HashName {
    /// The library's hash function.
    pub fn hash(self) -> Hash {
        match self {
            Self::Sha224 => Hash::Sha224,
            Self::Sha256 => Hash::Sha256,
            Self::Sha384 => Hash::Sha384,
            Self::Sha512 => Hash::Sha512,
            Self::Sha512_224 => Hash::Sha512_224,
            Self::Sha512_256 => Hash::Sha512_256,
            Self::Sha3_224 => Hash::Sha3_224,
            Self::Sha3_256 => Hash::Sha3_256,
            Self::Sha3_384 => Hash::Sha3_384,
            Self::Sha3_512 => Hash::Sha3_512,
        }
    }

    /// The object identifier (RFC 8017, appendix B.1; FIPS 202 by NIST's registry).
    pub fn oid(self) -> ObjectIdentifier {
        ObjectIdentifier::new_unwrap(match self {
            Self::Sha256 => "2.16.840.1.101.3.4.2.1",
            Self::Sha384 => "2.16.840.1.101.3.4.2.2",
            Self::Sha512 => "2.16.840.1.101.3.4.2.3",
            Self::Sha224 => "2.16.840.1.101.3.4.2.4",
            Self::Sha512_224 => "2.16.840.1.101.3.4.2.5",
            Self::Sha512_256 => "2.16.840.1.101.3.4.2.6",
            Self::Sha3_224 => "2.16.840.1.101.3.4.2.7",
            Self::Sha3_256 => "2.16.840.1.101.3.4.2.8",
            Self::Sha3_384 => "2.16.840.1.101.3.4.2.9",
            Self::Sha3_512 => "2.16.840.1.101.3.4.2.10",
        })
    }
}

impl Compute {
    /// Checks what clap cannot express.
    pub fn check(&self) -> Result<(), Failure> {
        check_threads(self.threads)?;
        if self.backend == BackendName::Serial && self.threads.is_some_and(|n| n.get() > 1) {
            return Err(Failure::Input("--backend serial computes on one thread; take --backend parallel, or leave out --threads".into()));
        }
        let on_gpu = matches!(self.backend, BackendName::Auto | BackendName::Cuda);
        if self.device != Device::All && !on_gpu {
            return Err(Failure::Input(
                "--device goes with --backend cuda or auto".into(),
            ));
        }
        if self.calibration.is_some() && !on_gpu {
            return Err(Failure::Input(
                "--calibration goes with --backend cuda or auto".into(),
            ));
        }
        Ok(())
    }

    /// Creates the requested backend.
    pub fn backend(&self) -> Result<Auto, Failure> {
        let measured = self.calibration.as_deref().map(calibration).transpose()?;
        let backend = match (self.device, self.backend) {
            (Device::Number(ordinal), _) => Auto::on_devices(&[ordinal], self.threads)?,
            // With measured times any GPU can be used, also one that the kernels were not tuned
            // for.
            (Device::All, BackendName::Auto) if measured.is_some() => {
                let cuda = Cuda::new()?;
                Auto::with_cuda(match self.threads {
                    Some(threads) => cuda.with_host_threads(threads)?,
                    None => cuda,
                })
            }
            (Device::All, name) => Auto::with(name.into(), self.threads)?,
        };
        Ok(match measured {
            Some(measured) => backend.with_calibration(&measured)?,
            None => backend,
        })
    }

    /// The signatures of `signer` that the `rsa` crate checks.
    pub fn verified(&self, signer: &Signer) -> Verified {
        match signer.backend().name() {
            _ if self.no_verify || signer.verifier().is_none() => Verified::None,
            // To check all would take ten times as long as signing.
            "cuda" if !self.verify_all => Verified::Sample,
            _ => Verified::All,
        }
    }

    /// The number of signatures that `backend` computes at a time.
    pub fn batch_size(&self, backend: &Auto) -> usize {
        let default = match backend.name() {
            "cuda" => 131_072,
            _ => 256,
        };
        self.batch_size.map_or(default, NonZeroUsize::get)
    }
}

/// Longer than a calibration of every kernel for dozens of devices, in octets.
const LONGEST_CALIBRATION: u64 = 1 << 20;

/// Reads a calibration.
fn calibration(path: &Path) -> Result<Calibration, Failure> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        let file = File::open(path)?;
        file.take(LONGEST_CALIBRATION).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| Failure::unreadable(path, &error))?;
    let parsed = text.parse::<Calibration>();
    parsed.map_err(|fault| Failure::bad_file(path, &fault.to_string()))
}

/// Refuses useless numbers of threads: starting thousands takes longer than the work.
pub fn check_threads(threads: Option<NonZeroUsize>) -> Result<(), Failure> {
    let cores = cores();
    let most = cores.saturating_mul(4).max(64);
    match threads {
        Some(count) if count.get() > most => Err(Failure::Input(format!(
            "--threads {count} is too many; this machine has {cores} cores, take at most {most}"
        ))),
        _ => Ok(()),
    }
}

/// The number of cores that the process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
