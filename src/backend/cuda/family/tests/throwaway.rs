//! An invented family, to show that one needs only this file, a folder of kernels, and a line in
//! the table of families. Nothing else in the crate refers to it.
//!
//! It differs from the shipped families in its chips and its times. Launches and records are common
//! to all families.

use super::super::super::plan::{Plan, Tuning};
use super::super::super::runtime::module::{CompressedPtx, Image, KernelKey};
use super::super::{Family, dpf};
use super::*;

use batch_modexp_core::window::Window;

/// Instances that a block computes at a time.
const TILE: usize = 64;

#[derive(Debug)]
struct Throwaway;

impl Family for Throwaway {
    fn runs_on(&self, _: &Entry, device: &DeviceInfo) -> bool {
        device.compute_capability() >= (9, 0)
    }

    /// Whole tiles, each at a microsecond for each bit.
    fn milliseconds(&self, _: &Entry, _: &DeviceInfo, count: usize, exponent_bits: u32) -> f64 {
        count.div_ceil(TILE) as f64 * f64::from(exponent_bits) * 1e-3
    }

    fn best_window(&self, _: u32) -> Window {
        Window::new(3).unwrap()
    }
}

/// The output that the build script would make from `kernels/throwaway/shapes.csv`.
static PTX: CompressedPtx = CompressedPtx {
    text_bytes: 0,
    fingerprint: 0,
    deflated: &[],
};

const fn entry(bits: u32) -> Entry {
    Entry {
        family: &Throwaway,
        operation: Operation::ModExp,
        bits,
        limbs: 1,
        min_r2_bits: 64,
        scratch_doubles: 0,
        times: None,
        image: Image {
            key: KernelKey {
                family: "throwaway",
                operation: "mod_exp",
                bits,
                variant: "t1",
            },
            // The name of a kernel in the shipped family.
            function: "modexp_512_t1",
            module: "dpf_modexp_512.ptx",
            ptx: &PTX,
            threads: 256,
            instances_per_block: TILE,
            shared_bytes: 1 << 20,
        },
    }
}

static ENTRIES: [Entry; 2] = [entry(256), entry(512)];

/// A registry with one additional line.
static FAMILIES: [&[Entry]; 2] = [&dpf::ENTRIES, &ENTRIES];
static REGISTRY: Registry = Registry::new(&FAMILIES);

fn planned(bits: u32, count: usize, device: &DeviceInfo) -> Option<Plan> {
    Plan::new(REGISTRY, bits, bits, count, device, Tuning::default())
}

fn family(bits: u32, count: usize, device: &DeviceInfo) -> &'static str {
    let plan = planned(bits, count, device).unwrap();
    plan.entry.image.key.family
}

#[test]
fn a_family_brings_its_widths() {
    assert_eq!(REGISTRY.widths()[..3], [256, 512, 768]);
    // DPF is the only shipped family in it.
    assert_eq!(REGISTRY.max_bits(), 8192);
    let classes: Vec<_> = REGISTRY.serving(200).map(|entry| entry.bits).collect();
    assert_eq!(classes, [512, 512, 256]);
}

/// The choice follows the chip, the width, and the number of instances.
#[test]
fn families_are_chosen_by_cost() {
    let new = DeviceInfo::imaginary(132, 227 << 10);
    let old = DeviceInfo::imaginary(132, 227 << 10).with_compute_capability((8, 0));
    assert_eq!(family(512, 1, &new), "throwaway");
    assert_eq!(family(200, TILE, &new), "throwaway");
    // Tiles run one after another on the whole device, so large batches are slow.
    assert_eq!(family(512, 1_000_000, &new), "dpf");
    assert_eq!(family(512, 1, &old), "dpf");
    assert_eq!(family(1024, 1, &new), "dpf");
}

/// Kernels with equal function and file names are distinct in different families.
#[test]
fn its_kernels_have_keys_of_their_own() {
    let theirs = SHIPPED.serving(512);
    let mut same = theirs.filter(|entry| entry.image.function == ENTRIES[1].image.function);
    let same = same.next().unwrap();
    assert_eq!(same.image.module, ENTRIES[1].image.module);
    assert_ne!(same.image.key, ENTRIES[1].image.key);
}
