//! The entry points of the kernels that the crate ships: the table of `kernels/README.md`.

use core::fmt;

use crate::window::Window;

/// The widest class, in bits.
pub(super) const MAX_BITS: u32 = 4096;

/// One way of doing the arithmetic, with its own memory needs. All families share the parameters of
/// `modexp_BITS_tT`.
pub(super) trait Family: fmt::Debug + Sync {
    /// Words of scratch memory for a launch of `blocks` blocks.
    fn scratch_words(&self, entry: &Entry, blocks: usize, window: Window) -> usize;
}

/// An entry point.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) family: &'static dyn Family,
    /// The name of the function.
    pub(super) name: &'static str,
    /// The file of its module.
    pub(super) module: &'static str,
    /// The text of its module, ending in a zero byte.
    pub(super) ptx: &'static str,
    /// The width of its numbers in bits.
    pub(super) bits: u32,
    /// The narrowest Montgomery parameters that it takes, in bits: it wants `2^(2 * r2_bits)` modulo the
    /// modulus, with `r2_bits` from here to `bits`.
    pub(super) min_r2_bits: u32,
    /// Threads in a block.
    pub(super) threads: u32,
    /// Instances that a block computes at a time.
    pub(super) instances_per_block: usize,
    /// Doubles of scratch memory for each thread and each entry of the window table.
    pub(super) scratch_doubles: usize,
    /// Dynamic shared memory of a block in bytes.
    pub(super) shared_bytes: u32,
    /// The time in milliseconds that an H200 takes for a block that has a multiprocessor to itself, and for
    /// each of many that share it, with exponents as long as the numbers: medians of
    /// `benches/cuda-h200.csv`. Only the ratios within a class count.
    pub(super) alone_ms: f64,
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

/// One row of the tables: operation, bits of the file and name of the function; bits of its numbers, lanes for
/// each instance, threads, scratch doubles, shared bytes, narrowest parameters, and times.
macro_rules! dpf {
    (
        $operation:literal, $file_bits:literal, $function:literal, $bits:literal, $lanes:literal,
        $threads:literal, $scratch_doubles:literal, $shared_bytes:literal, $min_r2_bits:literal,
        $alone_ms:literal, $shared_ms:literal
    ) => {
        Entry {
            family: &Dpf,
            name: concat!($operation, "_", $file_bits, "_", $function),
            module: concat!("dpf_", $operation, "_", $file_bits, ".ptx"),
            ptx: concat!(
                include_str!(concat!(
                    "../../../kernels/ptx/dpf_",
                    $operation,
                    "_",
                    $file_bits,
                    ".ptx"
                )),
                "\0"
            ),
            bits: $bits,
            min_r2_bits: $min_r2_bits,
            threads: $threads,
            instances_per_block: $threads / $lanes,
            scratch_doubles: $scratch_doubles,
            shared_bytes: $shared_bytes,
            alone_ms: $alone_ms,
            shared_ms: $shared_ms,
        }
    };
}

/// All entry points by class, the narrowest first.
#[rustfmt::skip]
pub(super) static ENTRIES: [Entry; 14] = [
    dpf!("modexp", 512, "t2", 512, 2, 128, 6, 25_600, 261, 1.0, 0.594),
    dpf!("modexp", 512, "t1", 512, 1, 512, 10, 122_880, 261, 2.72, 2.91),
    dpf!("modexp", 768, "t4", 768, 4, 128, 4, 12_288, 417, 1.69, 0.991),
    dpf!("modexp", 768, "t1", 768, 1, 384, 16, 138_240, 391, 6.04, 6.09),
    dpf!("modexp", 1024, "t4", 1024, 4, 128, 6, 15_360, 521, 3.27, 1.993),
    dpf!("modexp", 1024, "t1", 1024, 1, 256, 20, 122_880, 521, 9.06, 9.33),
    dpf!("modexp", 1536, "t8", 1536, 8, 128, 4, 12_288, 833, 6.45, 3.781),
    dpf!("modexp", 1536, "t1", 1536, 1, 256, 30, 184_320, 781, 29.7, 34.1),
    dpf!("modexp", 2048, "t8", 2048, 8, 128, 6, 15_360, 1041, 12.72, 7.677),
    dpf!("modexp", 2048, "t2", 2048, 2, 256, 20, 204_800, 1041, 38.9, 39.5),
    dpf!("modexp", 3072, "t8", 3072, 8, 128, 8, 24_576, 1665, 31.1, 25.85),
    dpf!("modexp", 3072, "t4", 3072, 4, 384, 16, 138_240, 1561, 108.4, 108.4),
    dpf!("modexp", 4096, "t16", 4096, 16, 128, 6, 15_360, 2081, 48.9, 29.77),
    dpf!("modexp", 4096, "t4", 4096, 4, 256, 20, 122_880, 2081, 164.0, 166.4),
];

/// The entry points of the RSA private operation for one size of keys.
#[cfg(feature = "sign")]
#[derive(Debug)]
pub(super) struct RsaClass {
    /// The longest modulus in bits; primes have half of it.
    pub(super) bits: u32,
    /// Both half exponentiations, each of which is an instance.
    pub(super) exp: [Entry; 2],
    pub(super) garner: Entry,
    pub(super) check: Entry,
}

#[cfg(feature = "sign")]
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
#[cfg(feature = "sign")]
#[rustfmt::skip]
pub(super) static RSA: [RsaClass; 5] = [
    RsaClass {
        bits: 1024,
        exp: [
            dpf!("rsa", 1024, "exp_t2", 512, 2, 128, 6, 25_600, 261, 1.0, 0.594),
            dpf!("rsa", 1024, "exp_t1", 512, 1, 512, 10, 122_880, 261, 2.72, 2.91),
        ],
        garner: dpf!("rsa", 1024, "garner", 512, 2, 128, 0, 25_600, 261, 0.0, 0.0),
        check: dpf!("rsa", 1024, "check", 1024, 1, 256, 0, 122_880, 521, 0.0, 0.0),
    },
    RsaClass {
        bits: 1536,
        exp: [
            dpf!("rsa", 1536, "exp_t4", 768, 4, 128, 4, 12_288, 417, 1.69, 0.991),
            dpf!("rsa", 1536, "exp_t1", 768, 1, 384, 16, 138_240, 391, 6.04, 6.09),
        ],
        garner: dpf!("rsa", 1536, "garner", 768, 4, 128, 0, 12_288, 417, 0.0, 0.0),
        check: dpf!("rsa", 1536, "check", 1536, 2, 256, 0, 153_600, 781, 0.0, 0.0),
    },
    RsaClass {
        bits: 2048,
        exp: [
            dpf!("rsa", 2048, "exp_t4", 1024, 4, 128, 6, 15_360, 521, 3.27, 1.993),
            dpf!("rsa", 2048, "exp_t1", 1024, 1, 256, 20, 122_880, 521, 9.06, 9.33),
        ],
        garner: dpf!("rsa", 2048, "garner", 1024, 4, 128, 0, 15_360, 521, 0.0, 0.0),
        check: dpf!("rsa", 2048, "check", 2048, 2, 256, 0, 204_800, 1041, 0.0, 0.0),
    },
    RsaClass {
        bits: 3072,
        exp: [
            dpf!("rsa", 3072, "exp_t8", 1536, 8, 128, 4, 12_288, 833, 6.45, 3.781),
            dpf!("rsa", 3072, "exp_t1", 1536, 1, 256, 30, 184_320, 781, 29.7, 34.1),
        ],
        garner: dpf!("rsa", 3072, "garner", 1536, 8, 128, 0, 12_288, 833, 0.0, 0.0),
        check: dpf!("rsa", 3072, "check", 3072, 4, 384, 0, 138_240, 1561, 0.0, 0.0),
    },
    RsaClass {
        bits: 4096,
        exp: [
            dpf!("rsa", 4096, "exp_t8", 2048, 8, 128, 6, 15_360, 1041, 12.72, 7.677),
            dpf!("rsa", 4096, "exp_t2", 2048, 2, 256, 20, 204_800, 1041, 38.9, 39.5),
        ],
        garner: dpf!("rsa", 4096, "garner", 2048, 8, 128, 0, 15_360, 1041, 0.0, 0.0),
        check: dpf!("rsa", 4096, "check", 4096, 4, 256, 0, 122_880, 2081, 0.0, 0.0),
    },
];

/// The entry points of the narrowest class that holds numbers of `bits` bits; none above [`MAX_BITS`].
pub(super) fn serving(bits: u32) -> impl Iterator<Item = &'static Entry> {
    let class = ENTRIES
        .iter()
        .map(|entry| entry.bits)
        .find(|&class| class >= bits);
    ENTRIES
        .iter()
        .filter(move |entry| Some(entry.bits) == class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A file in the kernels' folder that the table does not know would never be launched, and a name in
    /// the table that no file has would fail at run time.
    #[test]
    fn every_entry_is_in_its_module() {
        #[cfg(feature = "sign")]
        let rsa = RSA
            .iter()
            .flat_map(|class| class.exp.iter().chain([&class.garner, &class.check]));
        #[cfg(not(feature = "sign"))]
        let rsa = core::iter::empty();
        for entry in ENTRIES.iter().chain(rsa) {
            let header = alloc::format!(".entry {}(", entry.name);
            assert!(entry.ptx.contains(&header), "{}", entry.name);
            assert!(entry.ptx.ends_with('\0'));
            let threads = alloc::format!(".maxntid {}, 1, 1", entry.threads);
            assert!(entry.ptx.contains(&threads), "{}", entry.name);
        }
    }

    /// The rows here are those there.
    fn is_as_documented<'a>(prefix: &str, entries: impl Iterator<Item = &'a Entry> + Clone) {
        let readme = include_str!("../../../kernels/README.md");
        let rows = readme
            .lines()
            .filter(|line| line.starts_with(prefix) && line.contains(" ..= "));
        assert_eq!(rows.clone().count(), entries.clone().count());
        for row in rows {
            let cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
            let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
            let entry = entries.clone().find(|entry| entry.name == cells[0]);
            let entry = entry.unwrap_or_else(|| panic!("{row}"));
            assert_eq!(entry.module, cells[1]);
            let [.., scratch, shared, r2_bits] = cells[..] else {
                panic!("{row}");
            };
            let number = |cell: &str| cell.trim_end_matches(" halves").parse().unwrap();
            let theirs = [cells[2], cells[3], shared].map(number);
            let ours = [
                entry.threads as usize,
                entry.instances_per_block,
                entry.shared_bytes as usize,
            ];
            assert_eq!(ours, theirs, "{row}");
            let none_or = |doubles: usize| match doubles {
                0 => alloc::string::String::from("-"),
                doubles => alloc::format!("{doubles}"),
            };
            assert_eq!(none_or(entry.scratch_doubles), scratch, "{row}");
            let ours = alloc::format!("{} ..= {}", entry.min_r2_bits, entry.bits);
            assert_eq!(ours, r2_bits, "{row}");
        }
    }

    #[test]
    fn every_entry_is_as_documented() {
        is_as_documented("| `modexp_", ENTRIES.iter());
        #[cfg(feature = "sign")]
        is_as_documented(
            "| `rsa_",
            RSA.iter()
                .flat_map(|class| class.exp.iter().chain([&class.garner, &class.check])),
        );
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
        for pair in ENTRIES
            .windows(2)
            .filter(|pair| pair[0].bits < pair[1].bits)
        {
            assert!(pair[1].min_r2_bits <= pair[0].bits + 32);
        }
    }
}
