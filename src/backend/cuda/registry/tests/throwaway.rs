//! An invented family, to show that one needs only this file, a folder of kernels, and a line in
//! the registry. Nothing else in the crate refers to it.
//!
//! It differs from the shipped families in many ways: a newer chip, whole tiles of instances, its
//! own records and scratch memory, other parameters, and two launches.
#![allow(unsafe_code)]

use super::super::super::family::{Family, ModExpChunk, ModExpWork, dpf};
use super::super::super::plan::{Plan, Tuning};
use super::super::super::runtime::launch::{Argument, Launch};
use super::super::super::runtime::layout::Layout;
use super::super::super::runtime::module::{Grid, Image, KernelKey};
use super::super::super::runtime::ptx::CompressedPtx;
use super::super::super::words::NonTemporal;
use super::*;
use alloc::vec;

use batch_modexp_core::window::Window;

/// Instances that a block computes at a time.
const TILE: usize = 64;

#[derive(Debug)]
struct Throwaway;

impl Family for Throwaway {
    fn runs_on(&self, _: &Entry, device: &DeviceInfo) -> bool {
        device.compute_capability() >= (9, 0)
    }

    fn is_fast_on(&self, _: &DeviceInfo) -> bool {
        true
    }

    /// Whole tiles, each at a microsecond for each bit.
    fn milliseconds(&self, _: &Entry, _: &DeviceInfo, count: usize, exponent_bits: u32) -> f64 {
        count.div_ceil(TILE) as f64 * f64::from(exponent_bits) * 1e-3
    }

    fn best_window(&self, _: u32) -> Window {
        Window::new(3).unwrap()
    }

    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork {
        let (count, words) = (chunk.count, entry.words());
        let mut layout = Layout::default();
        let base = layout.input(count * words);
        let exponent = layout.input(count * words);
        let modulus_index = layout.input(count.div_ceil(2));
        // One and a half records for each modulus.
        let moduli = layout.input(chunk.moduli * 3 * words);
        let scratch = layout.scratch(grid.blocks(count) * TILE * 1000);
        let power = layout.output(count * words);
        let index = Argument::Indices {
            part: modulus_index,
            count,
            records: moduli,
            size: 3 * words,
        };
        let first = vec![Argument::Words(moduli), Argument::Words(scratch)];
        let second = vec![
            Argument::U32(count as u32),
            index,
            Argument::Words(base),
            Argument::Words(exponent),
            Argument::Words(scratch),
            Argument::Words(power),
        ];
        // SAFETY: there is no such kernel, so it is never launched.
        let launches = [first, second]
            .map(|arguments| unsafe { Launch::new(grid.image(), grid.blocks(count), arguments) });
        ModExpWork {
            layout,
            base,
            exponent,
            moduli,
            modulus_index,
            power,
            launches: launches.into(),
        }
    }

    fn write_modulus<'w>(
        &self,
        entry: &Entry,
        modulus: &[Limb],
        r2: &[Limb],
        record: &'w mut [u64],
        stores: &mut NonTemporal<'w>,
    ) {
        for (part, place) in [modulus, r2, modulus]
            .iter()
            .zip(record.chunks_exact_mut(entry.words()))
        {
            stores.copy_in(part, place);
        }
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
    assert_eq!(plan.forecast.key, plan.entry.image.key);
    plan.entry.image.key.family
}

#[test]
fn a_family_brings_its_widths() {
    assert_eq!(REGISTRY.widths()[..3], [256, 512, 768]);
    // DPF is the only shipped family in it.
    assert_eq!(REGISTRY.max_bits(), 4096);
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

#[test]
fn its_launches_are_its_own() {
    let device = DeviceInfo::imaginary(132, 227 << 10);
    let plan = planned(512, 100, &device).unwrap();
    let chunk = ModExpChunk {
        count: 100,
        moduli: 3,
        exponent_bits: 512,
        r2_bits: plan.entry.r2_bits(512),
        window: plan.window,
    };
    let grid = Grid::new(&plan.entry.image, 132);
    let work = plan.entry.family.mod_exp(plan.entry, grid, &chunk);
    assert_eq!(work.modulus_index.range(), 1600..1650);
    assert_eq!(work.moduli.range(), 1656..1656 + 3 * 24);
    let lens: Vec<_> = work
        .launches
        .iter()
        .map(|launch| launch.arguments().len())
        .collect();
    assert_eq!(lens, [2, 6]);
}
