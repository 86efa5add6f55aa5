//! The entry points of the kernels that the crate ships. The build script makes their table from
//! `kernels/*/shapes.csv`, where each shape stands once.

mod ptx;

use core::fmt;

#[cfg(feature = "rsa")]
use {alloc::vec::Vec, std::sync::LazyLock};

use self::ptx::CompressedPtx;
use crate::window::Window;

/// The widest class, in bits.
pub(super) const MAX_BITS: u32 = {
    let (mut widest, mut i) = (0, 0);
    while i < ENTRIES.len() {
        if matches!(ENTRIES[i].operation, Operation::ModExp) && ENTRIES[i].bits > widest {
            widest = ENTRIES[i].bits;
        }
        i += 1;
    }
    widest
};

/// One way of doing the arithmetic, with its own memory needs. All families share the parameters of
/// `modexp_BITS_tT`.
pub(super) trait Family: fmt::Debug + Sync {
    /// Words of scratch memory for a launch of `blocks` blocks.
    fn scratch_words(&self, entry: &Entry, blocks: usize, window: Window) -> usize;
}

/// What an entry point computes; `kernels/README.md` has the parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    /// One exponentiation for each instance.
    ModExp,
    /// Two exponentiations of one number, modulo two factors; each of them is an instance.
    #[cfg(feature = "rsa")]
    CrtHalves,
    /// Garner's recombination of the two.
    #[cfg(feature = "rsa")]
    CrtRecombine,
    /// The number from its recombination, and the comparison of its public power.
    #[cfg(feature = "rsa")]
    CrtCheck,
}

/// An entry point.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) family: &'static dyn Family,
    pub(super) operation: Operation,
    /// The name of the function.
    pub(super) name: &'static str,
    /// The file of its module.
    pub(super) module: &'static str,
    /// The text of its module.
    pub(super) ptx: &'static CompressedPtx,
    /// The width of its numbers in bits.
    pub(super) bits: u32,
    /// The narrowest Montgomery parameters that it takes, in bits: it wants `2^(2 * r2_bits)` modulo the
    /// modulus, with `r2_bits` from here to `bits`.
    pub(super) min_r2_bits: u32,
    /// Threads in a block.
    pub(super) threads: u32,
    /// Instances that a block computes at a time.
    pub(super) instances_per_block: usize,
    /// Doubles of scratch memory for each thread and each entry of the window table; 0 without a table.
    pub(super) scratch_doubles: usize,
    /// Dynamic shared memory of a block in bytes.
    pub(super) shared_bytes: u32,
    /// What a block costs, if exponentiation through a window table is what it does.
    pub(super) times: Option<BlockTimes>,
}

/// Times in milliseconds that an H200 takes for a block with exponents as long as the numbers: medians of
/// `benches/cuda-h200.csv`. Only the ratios within a class count.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockTimes {
    /// For a block that has a multiprocessor to itself.
    pub(super) alone_ms: f64,
    /// For each of many blocks that share a multiprocessor.
    pub(super) shared_ms: f64,
}

impl Entry {
    /// 64-bit words in a number.
    pub(super) fn words(&self) -> usize {
        self.bits as usize / 64
    }
}

/// Double-precision wide samples, `kernels/dpf`.
#[derive(Debug)]
struct Dpf;

impl Family for Dpf {
    /// A table of `2^window` powers in limbs of one double, for the threads of all blocks. Other powers
    /// share its place, so that there are never fewer than eight.
    fn scratch_words(&self, entry: &Entry, blocks: usize, window: Window) -> usize {
        let entries = window.table_len().max(8);
        blocks * entry.threads as usize * entry.scratch_doubles * entries
    }
}

/// That of the entry points in the table that follows.
const FAMILY: &dyn Family = &Dpf;
// `ENTRIES`, and the texts of their modules.
include!(concat!(env!("OUT_DIR"), "/dpf.rs"));

/// The entry points of the RSA private operation for one size of keys.
#[cfg(feature = "rsa")]
#[derive(Debug)]
pub(super) struct RsaClass {
    /// The longest modulus in bits; primes have half of it.
    pub(super) bits: u32,
    /// Both half exponentiations, each of which is an instance.
    pub(super) exp: Vec<&'static Entry>,
    pub(super) garner: &'static Entry,
    pub(super) check: &'static Entry,
}

#[cfg(feature = "rsa")]
impl RsaClass {
    /// 64-bit words in a prime.
    pub(super) fn prime_words(&self) -> usize {
        self.bits as usize / 128
    }

    /// 64-bit words in the record of a key: p, q, dP, dQ, qInv and two constants, n and its constant.
    pub(super) fn record_words(&self) -> usize {
        11 * self.prime_words()
    }

    /// The narrowest primes, rounded up to limbs, that all its kernels take.
    pub(super) fn min_prime_bits(&self) -> u32 {
        let all = self.exp.iter().chain([&self.garner]);
        all.map(|entry| entry.min_r2_bits).max().unwrap_or(0)
    }
}

/// All sizes of keys, the shortest first.
#[cfg(feature = "rsa")]
pub(super) static RSA: LazyLock<Vec<RsaClass>> = LazyLock::new(|| {
    let doing = |operation, bits| {
        let does = move |entry: &&Entry| entry.operation == operation && entry.bits == bits;
        ENTRIES.iter().filter(does)
    };
    let checks = ENTRIES
        .iter()
        .filter(|entry| entry.operation == Operation::CrtCheck);
    let class = |check: &'static Entry| {
        Some(RsaClass {
            bits: check.bits,
            exp: doing(Operation::CrtHalves, check.bits / 2).collect(),
            garner: doing(Operation::CrtRecombine, check.bits / 2).next()?,
            check,
        })
    };
    let mut classes: Vec<_> = checks.filter_map(class).collect();
    classes.sort_by_key(|class| class.bits);
    classes
});

/// The entry points for exponentiations of the narrowest class that holds numbers of `bits` bits; none above
/// [`MAX_BITS`].
pub(super) fn serving(bits: u32) -> impl Iterator<Item = &'static Entry> {
    let exponentiates = |entry: &&Entry| entry.operation == Operation::ModExp;
    let entries = ENTRIES.iter().filter(exponentiates);
    let widths = entries.clone().map(|entry| entry.bits);
    let class = widths.filter(|&class| class >= bits).min();
    entries.filter(move |entry| Some(entry.bits) == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts come out of the crate as they went in.
    #[test]
    fn every_entry_is_in_its_module() {
        for entry in &ENTRIES {
            let text = entry.ptx.text().into_string().unwrap();
            let file = std::format!(
                "{}/kernels/ptx/{}",
                env!("CARGO_MANIFEST_DIR"),
                entry.module
            );
            assert!(text == std::fs::read_to_string(file).unwrap());
            let header = std::format!(".entry {}(", entry.name);
            let (_, function) = text.split_once(&header).unwrap();
            let threads = std::format!(".maxntid {}, 1, 1\n", entry.threads);
            assert!(function.split('{').next().unwrap().contains(&threads));
        }
    }

    /// A family whose table is not included would never be launched.
    #[test]
    fn every_family_is_included() {
        let kernels = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels")).unwrap();
        for folder in kernels.map(|entry| entry.unwrap().path()) {
            if folder.join("shapes.csv").exists() {
                let family = folder.file_name().unwrap().to_str().unwrap();
                let prefix = std::format!("{family}_");
                let mut modules = ENTRIES.iter().map(|entry| entry.module);
                assert!(
                    modules.any(|module| module.starts_with(&prefix)),
                    "{family}"
                );
            }
        }
    }

    /// The bound is for all families together, so one of them must leave room.
    #[test]
    fn the_crate_adds_less_than_promised() {
        let bytes: usize = MODULES.iter().map(|module| module.deflated.len()).sum();
        assert!(bytes < 1_500_000, "{bytes}");
    }

    #[test]
    fn entries_cost_what_was_measured_of_their_shape() {
        for entry in &ENTRIES {
            let exponentiates = entry.scratch_doubles > 0;
            assert_eq!(entry.times.is_some(), exponentiates, "{}", entry.name);
        }
        #[cfg(feature = "rsa")]
        for class in RSA.iter() {
            for half in &class.exp {
                let mut same = serving(half.bits).filter(|entry| entry.threads == half.threads);
                let (ours, theirs) = (half.times.unwrap(), same.next().unwrap().times.unwrap());
                assert_eq!(ours.alone_ms, theirs.alone_ms);
                assert_eq!(ours.shared_ms, theirs.shared_ms);
            }
        }
    }

    #[cfg(feature = "rsa")]
    #[test]
    fn every_size_of_keys_has_all_its_kernels() {
        assert!(RSA.iter().all(|class| !class.exp.is_empty()));
        let served: usize = RSA.iter().map(|class| class.exp.len() + 2).sum();
        let mod_exps = ENTRIES
            .iter()
            .filter(|entry| entry.operation == Operation::ModExp);
        assert_eq!(served + mod_exps.count(), ENTRIES.len());
    }

    #[test]
    fn widths_round_up_to_a_class() {
        let class = |bits| serving(bits).map(|entry| entry.bits).next();
        assert_eq!(class(64), Some(512));
        assert_eq!(class(512), Some(512));
        assert_eq!(class(513), Some(768));
        assert_eq!(class(4096), Some(4096));
        assert_eq!(class(4097), None);
    }

    /// Montgomery parameters of every width above the narrowest class's minimum can be used as they are.
    #[test]
    fn classes_take_the_parameters_of_every_width_between_them() {
        let mut widths: Vec<_> = ENTRIES.iter().map(|entry| entry.bits).collect();
        widths.sort_unstable();
        widths.dedup();
        for pair in widths.windows(2) {
            for entry in serving(pair[1]) {
                assert!(entry.min_r2_bits <= pair[0] + 32, "{}", entry.name);
            }
        }
    }
}
