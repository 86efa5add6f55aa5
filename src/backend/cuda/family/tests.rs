//! Tests of the parent module: the tables against the files, and against the expectations of the
//! host.

mod choice;

#[cfg(feature = "rsa")]
use super::super::crt::{CrtClass, CrtShape};
use super::*;
use crate::backend::Cuda;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The embedded texts are those of the files, except for comments.
#[test]
fn every_entry_is_in_its_module() {
    for entry in all() {
        let text = entry.ptx.text().into_string().unwrap();
        let folder = env!("CARGO_MANIFEST_DIR");
        let file = std::format!("{folder}/kernels/ptx/{}", entry.module);
        let shipped = std::fs::read_to_string(file).unwrap();
        let statements = shipped
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        assert!(text.lines().eq(statements));
        let header = std::format!(".entry {}(", entry.function);
        let (_, function) = text.split_once(&header).unwrap();
        let threads = std::format!(".maxntid {}, 1, 1\n", entry.threads);
        assert!(function.split('{').next().unwrap().contains(&threads));
    }
}

/// A family outside the table would never be launched.
#[test]
fn every_family_is_in_the_table() {
    let kernels = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels")).unwrap();
    for folder in kernels.map(|entry| entry.unwrap().path()) {
        if folder.join("shapes.csv").exists() {
            let family = folder.file_name().unwrap().to_str().unwrap();
            let found = all().any(|entry| entry.key.family == family);
            assert!(found, "{family}");
        }
    }
}

/// The limit is for all families together.
#[test]
fn all_kernels_together_are_small() {
    let sizes = all().map(|entry| (entry.module, entry.ptx.deflated.len()));
    let sizes: BTreeMap<_, _> = sizes.collect();
    let bytes: usize = sizes.values().sum();
    assert!(bytes < 3_300_000, "{bytes}");
}

/// Loaded kernels are found by module and name, and measured times by the keys of those that are
/// measured.
#[test]
fn no_two_kernels_have_one_key() {
    let names = all().map(|entry| (entry.module, entry.function));
    assert_eq!(names.collect::<BTreeSet<_>>().len(), all().count());
    let keys: BTreeSet<_> = exponentiating().map(|entry| entry.key).collect();
    assert_eq!(keys.len(), exponentiating().count());
    assert!(all().all(|entry| entry.key.bits == entry.bits));
}

#[test]
fn entries_cost_what_was_measured_of_their_shape() {
    for entry in all() {
        let exponentiates = entry.scratch_doubles > 0;
        assert_eq!(
            entry.times.alone_ns > 0,
            exponentiates,
            "{}",
            entry.key.bits
        );
    }
    #[cfg(feature = "rsa")]
    for class in classes() {
        for half in &class.halves {
            let alike = |entry: &&Entry| {
                half.threads == entry.threads && half.key.family == entry.key.family
            };
            let mut same = serving(half.bits).filter(alike);
            let (ours, theirs) = (half.times, same.next().unwrap().times);
            assert_eq!(ours.alone_ns, theirs.alone_ns);
            assert_eq!(ours.shared_ns, theirs.shared_ns);
        }
    }
}

/// The class of `bits` bits, if it takes keys of these widths.
#[cfg(feature = "rsa")]
fn class(bits: u32, n_bits: u32, prime_bits: u32) -> Option<CrtClass> {
    CrtClass::all(CrtShape::full(n_bits, prime_bits)).find(|class| class.join.bits == bits)
}

#[cfg(feature = "rsa")]
fn classes() -> Vec<CrtClass> {
    let joins = all().filter(|entry| entry.operation == Operation::CrtJoin);
    let classes = joins.map(|join| class(join.bits, join.bits, join.bits / 2).unwrap());
    classes.collect()
}

#[cfg(feature = "rsa")]
#[test]
fn every_class_with_factors_has_all_its_kernels() {
    assert!(classes().iter().all(|class| !class.halves.is_empty()));
    let served: usize = classes().iter().map(|class| class.halves.len() + 3).sum();
    let without_factors = [
        Operation::ModExp,
        Operation::FixedEntries,
        Operation::FixedExp,
    ];
    let others = all().filter(|entry| without_factors.contains(&entry.operation));
    assert_eq!(served + others.count(), all().count());
}

#[cfg(feature = "rsa")]
#[test]
fn classes_take_the_widths_that_their_kernels_take() {
    for class in classes() {
        let bits = class.join.bits;
        let halves = |n_bits, prime_bits| {
            let class = self::class(bits, n_bits, prime_bits)?;
            Some(class.halves.len())
        };
        // All kernels accept full widths. Only those with doubles accept narrower ones.
        assert_eq!(halves(bits, bits / 2), Some(class.halves.len()));
        assert_eq!(halves(bits, bits / 2 - 64), Some(2));
        assert_eq!(halves(bits + 64, bits / 2), None);
        assert_eq!(halves(bits, bits / 2 + 64), None);
        let on_primes = class.halves.iter().map(|entry| entry.min_r2_bits);
        let narrowest = on_primes.min().unwrap().max(class.recombine.min_r2_bits);
        assert!(halves(bits, narrowest).is_some());
        assert_eq!(halves(bits, narrowest - 1), None);
        let narrowest = class.join.min_r2_bits.max(class.blind.min_r2_bits);
        assert!(halves(narrowest, bits / 2).is_some());
        assert_eq!(halves(narrowest - 1, bits / 2), None);
    }
}

#[test]
fn entries_are_shown_by_family_and_name() {
    let mut entries = serving(1024).filter(|entry| entry.family() == "dpf");
    let shown = entries.any(|entry| std::format!("{entry:?}") == "dpf/modexp_1024_t4");
    assert!(shown);
}

#[test]
fn widths_round_up_to_a_class() {
    let class = |bits| serving(bits).map(|entry| entry.bits).next();
    assert_eq!(class(64), Some(512));
    assert_eq!(class(512), Some(512));
    assert_eq!(class(513), Some(768));
    assert_eq!(class(4096), Some(4096));
    assert_eq!(class(4097), Some(6144));
    assert_eq!(class(6144), Some(6144));
    assert_eq!(class(6145), Some(8192));
    assert_eq!(class(8193), None);
    assert_eq!(Cuda::MAX_BITS, 8192);
    assert_eq!(widths().last(), Some(&Cuda::MAX_BITS));
}

/// Montgomery parameters of every width above the narrowest class's minimum can be used directly.
/// Kernels that only accept their own width are exempt.
#[test]
fn classes_take_the_parameters_of_every_width_between_them() {
    for pair in widths().windows(2) {
        let between = |entry: &&Entry| entry.min_r2_bits < entry.bits;
        assert!(serving(pair[1]).any(|entry| between(&entry)));
        for entry in serving(pair[1]).filter(between) {
            assert!(entry.min_r2_bits <= pair[0] + 32, "{}", entry.function);
        }
    }
}

/// Some kernel serves every width on the supported chip with the least shared memory.
#[test]
fn chips_with_little_shared_memory_take_what_fits() {
    let device = DeviceInfo::imaginary(100, 64 << 10);
    for bits in widths() {
        let plan = Plan::new(bits, bits, 1_000_000, &device, Tuning::default());
        assert!(plan.is_some(), "{bits}");
    }
}
