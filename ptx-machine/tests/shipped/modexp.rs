//! Tests of batches of exponentiations: `modexp_BITS_tT`.

use num_bigint::BigUint;

use crate::harness::{Instance, ModExpLaunch, Results, modexp, program};
use crate::manifest::{ShippedEntry, entries, shipped};

/// A batch with extreme operands: numbers of all ones, powers of two around limb boundaries, moduli
/// from 1 up to the width.
fn edges(bits: u32, len: u32) -> (Vec<BigUint>, Vec<Instance>) {
    let one = || BigUint::from(1u32);
    let ones = |n: u32| (one() << n as usize) - 1u32;
    let moduli = vec![
        one(),
        BigUint::from(3u32),
        ones(bits),
        ones(bits) - 158u32,
        (one() << (bits - 1) as usize) + 1u32,
        (one() << 52usize) + 1u32,
        ones(52),
        ones(bits - 52),
        (ones(bits) / 5u32) | one(),
        (ones(bits) << 52usize & ones(bits)) | one(),
        // 32-bit words that alternate between all ones and 0, and all ones except for one word.
        ones(bits) / ones(64) * ones(32),
        ones(bits) - (ones(32) << 32usize),
    ];
    let values = [
        BigUint::ZERO,
        one(),
        BigUint::from(2u32),
        ones(52),
        one() << 52usize,
        ones(bits),
        ones(bits) / 3u32,
        ones(bits) - ones(bits / 2),
        BigUint::from(0x9e37_79b9_7f4a_7c15u64).pow(bits / 64),
        (ones(bits) / ones(64) * ones(32)) << 32usize,
    ];
    let batch = (0..len as usize).map(|i| {
        let modulus = i % moduli.len();
        let near_modulus = &moduli[modulus] - 1u32;
        let base = match i % 4 {
            0 => near_modulus,
            _ => values[i / 3 % values.len()].clone(),
        };
        Instance {
            base,
            exponent: values[i / 2 % values.len()].clone(),
            modulus,
        }
    });
    let batch = batch.collect();
    (moduli, batch)
}

/// Runs the batch, compares every result with `num_bigint`, and checks that no secrets are left.
fn check(
    entry: &ShippedEntry,
    moduli: &[BigUint],
    batch: &[Instance],
    public: ModExpLaunch,
) -> Results {
    let results = modexp(entry, &program(entry), moduli, batch, public)
        .unwrap_or_else(|stop| panic!("{stop}"));
    let exponent_mask = (BigUint::from(1u32) << public.exponent_bits as usize) - 1u32;
    for (i, (power, instance)) in results.powers.iter().zip(batch).enumerate() {
        let exponent = &instance.exponent & &exponent_mask;
        let expected = instance.base.modpow(&exponent, &moduli[instance.modulus]);
        assert_eq!(*power, expected, "{}, instance {i}", entry.name);
    }
    assert!(!results.secrets_left_in_scratch, "{}", entry.name);
    assert!(!results.outcome.secrets_left_in_shared, "{}", entry.name);
    assert!(!results.outcome.secrets_left_in_variables, "{}", entry.name);
    results
}

/// A kernel that is shipped but missing in the tables would not be tested.
#[test]
fn every_shipped_entry_point_is_tested() {
    let tested = ["modexp_", "fixed_", "rsa_"].map(entries).concat();
    let mut tested: Vec<_> = tested.into_iter().map(|entry| entry.name).collect();
    let mut shipped = shipped();
    tested.sort();
    shipped.sort();
    assert_eq!(tested, shipped);
}

/// Runs one block of each entry point.
fn one_block(entries: impl Iterator<Item = ShippedEntry>) {
    for entry in entries {
        let is_wide = entry.bits > WIDE_BITS;
        let public = ModExpLaunch {
            blocks: 1,
            exponent_bits: if is_wide { 67 } else { entry.bits },
            r2_bits: entry.bits,
            window: if is_wide { 4 } else { 5 },
        };
        let (moduli, batch) = edges(entry.bits, entry.instances_per_block);
        check(&entry, &moduli, &batch, public);
    }
}

#[test]
fn whole_exponentiations_up_to_1024_bits() {
    let entries = entries("modexp_").into_iter();
    let narrow = entries.filter(|entry| entry.bits <= WIDE_BITS);
    one_block(narrow.map(|entry| entry.with_few_warps()));
}

#[test]
fn shortened_exponents_above_1024_bits() {
    let entries = entries("modexp_").into_iter();
    let wide = entries.filter(|entry| entry.bits > WIDE_BITS);
    one_block(wide.map(|entry| entry.with_few_warps()));
}

#[test]
#[ignore = "takes a minute: `.ci/run cases`, every week"]
fn all_warps_of_a_block() {
    let has_fewer = |entry: &ShippedEntry| entry.with_few_warps().threads < entry.threads;
    one_block(entries("modexp_").into_iter().filter(has_fewer));
}

/// Modulo `2^bits - 29` powers of this base have Montgomery forms with long rows of zeros. A carry
/// below such a row passes all lanes of an instance.
#[test]
fn carries_through_all_lanes() {
    let several = |entry: &&ShippedEntry| {
        entry.instances_per_block < entry.threads && !entry.family.starts_with("rns")
    };
    for entry in entries("modexp_").iter().filter(several) {
        let entry = &entry.with_few_warps();
        let power = |exponent: u32| BigUint::from(1u32) << exponent as usize;
        let moduli = [power(entry.bits) - 29u32];
        let batch: Vec<_> = (0..entry.instances_per_block.min(32))
            .map(|i| Instance {
                base: power(entry.bits - 8) - 1u32,
                exponent: BigUint::from(i * 97 % 128),
                modulus: 0,
            })
            .collect();
        let public = ModExpLaunch {
            blocks: 1,
            exponent_bits: 7,
            r2_bits: entry.bits,
            window: 1,
        };
        check(entry, &moduli, &batch, public);
    }
}

/// Tests windows with odd exponent lengths, and the narrowest Montgomery parameters of each entry
/// point. `picks` says for which windows. It is told which two windows every run of the tests has,
/// for wide kernels too.
///
/// For one of the three shortest windows, which differs between the entry points of a family, two
/// blocks take more than one round, the last one only partly. For the other windows, one block is
/// not full, and has few warps. The rounds of a kernel do not depend on the window.
fn windows(windows: &[u32], picks: impl Fn(&ShippedEntry, bool) -> bool) {
    for (number, entry) in (0..).zip(&entries("modexp_")) {
        for &window in windows {
            let has_rounds = number % 3 + 1 == window;
            let is_long = number % 2 + 5 == window;
            if !picks(entry, has_rounds || is_long) {
                continue;
            }
            let (entry, blocks) = match has_rounds {
                true => (entry, 2),
                false => (&entry.with_few_warps(), 1),
            };
            let len = match has_rounds {
                true => 2 * entry.instances_per_block + 1 + window,
                false => entry.instances_per_block.max(2) - 1,
            };
            let narrow = entry.min_r2_bits.next_multiple_of(64);
            let public = ModExpLaunch {
                blocks,
                exponent_bits: 3 * window - window / 2,
                r2_bits: narrow,
                window,
            };
            let (moduli, batch) = edges(narrow, len);
            check(entry, &moduli, &batch, public);
        }
    }
}

/// Kernels above this width take most of the time.
const WIDE_BITS: u32 = 1024;

#[test]
fn odd_windows() {
    windows(&[1, 3, 5], |entry, always| {
        entry.bits <= WIDE_BITS || always
    });
}

#[test]
fn even_windows() {
    windows(&[2, 4, 6], |entry, always| {
        entry.bits <= WIDE_BITS || always
    });
}

#[test]
#[ignore = "takes a minute: `.ci/run cases`, every week"]
fn all_windows_of_wide_kernels() {
    windows(&[1, 2, 3, 4, 5, 6], |entry, always| {
        entry.bits > WIDE_BITS && !always
    });
}

/// The second block has no instance.
#[test]
fn exponents_of_no_bits() {
    for entry in &entries("modexp_") {
        let public = ModExpLaunch {
            blocks: 2,
            exponent_bits: 0,
            r2_bits: entry.bits,
            window: 1,
        };
        let (moduli, batch) = edges(entry.bits, 9);
        check(entry, &moduli, &batch, public);
    }
}

/// The taint rules imply this; here it is counted.
#[test]
fn as_many_steps_whatever_the_secrets() {
    let entry = &entries("modexp_")[0];
    let public = ModExpLaunch {
        blocks: 1,
        exponent_bits: 64,
        r2_bits: entry.bits,
        window: 5,
    };
    let modulus = (BigUint::from(1u32) << 512usize) - 569u32;
    let steps = [0u64, 1, 1 << 63, u64::MAX].map(|exponent| {
        let instance = Instance {
            base: BigUint::from(exponent),
            exponent: exponent.into(),
            modulus: 0,
        };
        let results = check(entry, core::slice::from_ref(&modulus), &[instance], public);
        results.outcome.steps
    });
    assert_eq!(steps, [steps[0]; 4]);
}
