//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::parameters::{Contents, Numbered, Place};

/// Run CUDA kernels from their PTX, without a GPU, and follow secrets through them.
///
/// Exit status: 0 if nothing was found, 1 for a finding, 2 if the command line or a file cannot be used.
#[derive(Debug, Parser)]
#[command(name = "ptx-machine", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a kernel; report the first secret that reaches a branch, an address, the lane of a shuffle or
    /// an instruction of variable time, and accesses out of bounds, uninitialised reads and races
    #[command(after_help = EXAMPLES)]
    Check(CheckArgs),
    /// Print the entry points of a file with their parameters
    List(ListArgs),
    /// Print the instructions that the machine knows
    Instructions,
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// PTX of one module
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// PTX of one module
    pub file: PathBuf,

    /// The entry point [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,

    /// Blocks in the grid
    #[arg(long, value_name = "N", default_value = "1")]
    pub blocks: NonZeroU32,

    /// Threads in a block, a multiple of 32 [default: what .reqntid or .maxntid says, else 32]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU32>,

    /// Bytes of dynamic shared memory
    #[arg(long, value_name = "N", default_value = "0")]
    pub shared_bytes: usize,

    /// A number for parameter N, counted from 0: decimal, 0x hexadecimal, or negative
    #[arg(long, value_name = "N=NUMBER")]
    pub arg: Vec<Numbered<i128>>,

    /// A buffer for the pointer that is parameter N. CONTENTS is
    /// `out:BYTES` (not initialised: a read before a write is a fault),
    /// `zero:BYTES`, `random:BYTES` (from --seed) or `file:PATH`
    #[arg(long, value_name = "N=CONTENTS")]
    pub buffer: Vec<Numbered<Contents>>,

    /// Buffers that are secret, by the number of their parameter; all others are public
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub secret: Vec<usize>,

    /// Buffers that must hold nothing that depends on a secret when the kernel ends; `shared` is shared
    /// memory, `variables` are those of the module in global memory
    #[arg(long, value_name = "N|shared|variables,...", value_delimiter = ',')]
    pub wiped: Vec<Place>,

    /// Seed of the random buffers
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,

    /// Instructions after which to give up, over all warps
    #[arg(long, value_name = "N", default_value = "1000000000")]
    pub max_steps: u64,
}

const EXAMPLES: &str = "\
Examples:
  ptx-machine list kernel.ptx
  ptx-machine check kernel.ptx --entry power --threads 128 \\
      --buffer 0=out:4096 --buffer 1=random:4096 --buffer 2=file:keys.bin --arg 3=128 --secret 1,2
  ptx-machine check kernel.ptx --entry power --shared-bytes 8192 \\
      --buffer 0=out:128 --buffer 1=random:128 --arg 2=0x20 --secret 1 --wiped shared";
