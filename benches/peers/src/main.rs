//! Measures batch-modexp beside the RSA of other libraries: one core, one run, interleaved rounds,
//! medians.
//!
//! `cargo run --release -p batch-modexp-peers` prints three kinds of tables: RSA signatures and verifications per second
//! beside the `rsa` crate, ring, aws-lc-rs and OpenSSL, and exponentiations per second beside
//! crypto-bigint and OpenSSL. Every contender's results are checked before it is timed. Environment
//! variables of the libraries apply, such as `OPENSSL_ia32cap`. `--table` asks for one kind of table. Four
//! more are printed only then: key generation beside `rsa` and OpenSSL, our signatures in batches of
//! several sizes, the cycles of our exponentiations, and the powers of protocols beside crypto-bigint.
//! With the feature `gmp` these stand beside the system's GMP too.

#[path = "../../benches/common/backends.rs"]
mod backends;
mod batches;
mod cycles;
mod exponentiation;
#[cfg(feature = "gmp")]
mod gmp;
#[path = "../../benches/common/instances.rs"]
mod instances;
mod key_generation;
#[path = "../../benches/common/keys.rs"]
mod keys;
mod machine;
mod openssl_bn;
mod powers;
mod rounds;
mod signing;
mod verification;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::rounds::Plan;

/// The lengths of RSA keys that are measured, in bits.
const KEY_BITS: [u32; 3] = [2048, 3072, 4096];

/// As many keys as a set of them that a verifier keeps.
const MANY_KEYS: usize = 64;

/// The widths of moduli that are measured, in bits.
const WIDTHS: [u32; 5] = [1024, 1536, 2048, 3072, 4096];

/// Measures batch-modexp beside other libraries, on one core.
#[derive(Parser)]
#[command(name = "batch-modexp-peers")]
struct Arguments {
    /// Which tables to print; signatures, verifications and exponentiations by default
    #[arg(long, value_enum)]
    table: Option<Table>,

    /// Lengths of RSA keys and widths of exponentiations, in bits, separated by commas; all by
    /// default
    #[arg(long, value_delimiter = ',', value_parser = known_bits)]
    bits: Vec<u32>,

    /// Messages or instances in a batch of ours
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,

    /// Rounds; a figure is the median over them
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Milliseconds that each contender computes in a round, in whole calls and at least one
    #[arg(long, default_value_t = 200)]
    slice: u64,

    /// The core to run on, counted from 0; the last one by default
    #[arg(long)]
    core: Option<usize>,

    /// Three short rounds, to see that everything works; the figures mean nothing
    #[arg(long, conflicts_with_all = ["rounds", "slice"])]
    quick: bool,
}

#[derive(Clone, Copy, Eq, PartialEq, ValueEnum)]
enum Table {
    Signatures,
    /// Verifications, with one key and with many
    Verifications,
    Exponentiations,
    /// Key generation
    Keys,
    /// Signatures, of ours, in batches of several sizes
    Batches,
    /// Cycles for a bit of the exponents, of ours
    Cycles,
    /// Powers of fixed bases and products of powers, in the shapes of protocols
    Powers,
}

impl Arguments {
    fn wants(&self, table: Table, bits: u32) -> bool {
        let by_default = matches!(
            table,
            Table::Signatures | Table::Verifications | Table::Exponentiations
        );
        self.table.map_or(by_default, |wanted| wanted == table)
            && (self.bits.is_empty() || self.bits.contains(&bits))
    }

    fn plan(&self) -> Plan {
        if self.quick {
            Plan {
                rounds: 3,
                slice: Duration::from_millis(1),
            }
        } else {
            Plan {
                rounds: self.rounds,
                slice: Duration::from_millis(self.slice),
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Before anything asks how many cores there are.
    let core = match machine::pin(arguments.core) {
        Ok(core) => core,
        Err(reason) => {
            eprintln!("error: {reason}");
            return ExitCode::from(2);
        }
    };
    let wanted = |table, all: &[u32]| -> Vec<u32> {
        let wants = |bits: &u32| arguments.wants(table, *bits);
        all.iter().copied().filter(wants).collect()
    };
    let key_bits = wanted(Table::Signatures, &KEY_BITS);
    let verified = wanted(Table::Verifications, &KEY_BITS);
    let generated = wanted(Table::Keys, &KEY_BITS);
    let in_batches = wanted(Table::Batches, &KEY_BITS);
    let widths = wanted(Table::Exponentiations, &WIDTHS);
    let in_cycles = wanted(Table::Cycles, &WIDTHS);
    let in_protocols = wanted(Table::Powers, &powers::WIDTHS);
    let tables = [
        &key_bits,
        &verified,
        &generated,
        &in_batches,
        &widths,
        &in_cycles,
        &in_protocols,
    ];
    if tables.iter().all(|wanted| wanted.is_empty()) {
        eprintln!(
            "error: no table for these --bits; there are those of keys of {KEY_BITS:?} bits, \
             exponentiations of {WIDTHS:?}, and powers of {:?}",
            powers::WIDTHS
        );
        return ExitCode::from(2);
    }
    machine::describe(core);

    let backends = backends::backends();
    let (plan, batch) = (arguments.plan(), usize::from(arguments.batch));
    for bits in key_bits {
        println!("\n## RSA-{bits}, PKCS#1 v1.5 with SHA-256, batches of {batch}\n");
        signing::compare(bits, batch, &backends, plan);
    }
    for (bits, keys) in verified
        .iter()
        .flat_map(|bits| [(*bits, 1), (*bits, MANY_KEYS)])
    {
        println!("\n## RSA-{bits}, verification, batches of {batch}, keys: {keys}\n");
        verification::compare(bits, keys, batch, &backends, plan);
    }
    for bits in generated {
        println!("\n## RSA-{bits}, keys, in batches of {batch}\n");
        key_generation::compare(bits, batch, &backends, plan);
    }
    for bits in in_batches {
        println!("\n## RSA-{bits}, PKCS#1 v1.5 with SHA-256, by the size of batches");
        batches::compare(bits, &backends, plan);
    }
    for width in widths {
        println!("\n## {width}-bit exponentiation, batches of {batch}\n");
        exponentiation::compare(width, batch, &backends, plan);
    }
    for width in in_cycles {
        println!("\n## {width}-bit exponentiation, cycles for a batch of {batch}\n");
        cycles::print(width, batch, &backends, plan.rounds);
    }
    if !in_protocols.is_empty() {
        println!("\n## Powers, batches of {batch}\n");
        powers::head();
    }
    for width in in_protocols {
        powers::compare(width, batch, plan);
    }
    ExitCode::SUCCESS
}

/// Parses one element of `--bits`.
fn known_bits(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(bits) if WIDTHS.contains(&bits) || powers::WIDTHS.contains(&bits) => Ok(bits),
        _ => Err(format!("known are {WIDTHS:?} and {:?}", powers::WIDTHS)),
    }
}
