//! Tests of powers of one base by a table: `fixed_entries_BITS_tT` and `fixed_exp_BITS_tT`.

use num_bigint::BigUint;
use ptx_machine::{Argument, Global};

use crate::harness::{launch, padded, program, scratch_bytes};
use crate::manifest::{ShippedEntry, entries};

/// Bits in a digit, and entries in a row.
const WINDOW: u32 = 5;
const ENTRIES: u32 = 1 << WINDOW;

/// The public parameters of a table and of the powers by it.
#[derive(Clone, Copy)]
struct Public {
    exponent_bits: u32,
    flipped: u32,
    blocks: u32,
}

impl Public {
    fn rows(self) -> u32 {
        self.exponent_bits.div_ceil(WINDOW).max(1)
    }
}

fn ones(bits: u32) -> BigUint {
    (BigUint::from(1u32) << bits as usize) - 1u32
}

/// The entries of a table as the first kernel computes them: for each digit and each of its values
/// the residues of an operand.
fn residues(entry: &ShippedEntry, base: &BigUint, modulus: &BigUint, public: Public) -> Vec<u8> {
    let bytes = entry.bits as usize / 8;
    let count = public.rows() * ENTRIES;
    let exponents = (0..count).map(|i| {
        let shift = (i / ENTRIES * WINDOW) as usize;
        BigUint::from(i % ENTRIES) << shift & ones(public.exponent_bits)
    });
    let r = BigUint::from(1u32) << entry.bits as usize;
    let record = [modulus.clone(), &r * &r % modulus];
    let mut global = Global::default();
    let mut input = |contents: Vec<u8>, secret: bool| {
        let pointer = global.with_bytes(contents, secret);
        global.set_read_only(pointer);
        Argument::Pointer(pointer)
    };
    let arguments = [
        input(padded(base, bytes).repeat(count as usize), true),
        input(exponents.flat_map(|x| padded(&x, bytes)).collect(), true),
        input(record.iter().flat_map(|x| padded(x, bytes)).collect(), true),
        input(vec![0; 4 * count as usize], false),
    ];
    let out = global.uninitialised(operand_bytes(entry) * count as usize);
    let scratch = global.uninitialised(scratch_bytes(entry, 1, 5));
    let numbers = [count, public.exponent_bits, entry.bits, 5];
    let arguments: Vec<_> = [Argument::Pointer(out)]
        .into_iter()
        .chain(arguments)
        .chain([Argument::Pointer(scratch)])
        .chain(numbers.map(Argument::U32))
        .collect();
    let outcome = program(entry).run(&launch(entry, 1), &arguments, &mut global);
    let outcome = outcome.unwrap_or_else(|stop| panic!("{stop}"));
    assert!(!outcome.secrets_left_in_shared && !outcome.secrets_left_in_variables);
    assert!(!global.buffer(scratch).holds_secrets());
    let out = global.buffer(out);
    assert!(out.all_written() && out.holds_secrets(), "{}", entry.name);
    out.bytes().to_vec()
}

/// Octets of the residues of an operand.
fn operand_bytes(entry: &ShippedEntry) -> usize {
    8 * moduli(entry)
}

/// The number of moduli in a base.
fn moduli(entry: &ShippedEntry) -> usize {
    match entry.bits {
        1024 => 36,
        1536 => 56,
        2048 => 72,
        _ => unreachable!("no such kernel"),
    }
}

/// Arranges residues as kernels/README.md describes.
fn arranged(entry: &ShippedEntry, residues: &[u8], public: Public) -> Vec<u8> {
    let mut table = Vec::new();
    for row in 0..public.rows() as usize {
        // Four residues at a time, first in base B and then in base A.
        for four in (0..2 * moduli(entry)).step_by(4) {
            for (t, g) in (0..4).flat_map(|t| (0..8).map(move |g| (t, g))) {
                for byte in [g % 2, 2 + g % 2] {
                    table.extend((8 * t..8 * t + 8).map(|digit| {
                        let operand = (row * ENTRIES as usize + digit) * operand_bytes(entry);
                        residues[operand + 4 * (four + g / 2) + byte]
                    }));
                }
            }
        }
    }
    table
}

fn check(number: usize, len: u32, base: &BigUint, modulus: &BigUint, public: Public) {
    let maker = &entries("fixed_entries_")[number];
    let entry = &entries("fixed_exp_")[number];
    let bytes = entry.bits as usize / 8;
    let table = arranged(entry, &residues(maker, base, modulus, public), public);
    let values = [
        ones(entry.bits),
        BigUint::ZERO,
        ones(entry.bits) / 3u32,
        BigUint::from(0x9e37_79b9u32).pow(entry.bits / 32),
    ];
    let exponents: Vec<_> = (0..len as usize)
        .map(|i| (&values[i % 4] >> (i / 4)) as BigUint)
        .collect();

    let mut global = Global::default();
    let mut input = |contents: Vec<u8>| {
        let pointer = global.with_bytes(contents, true);
        global.set_read_only(pointer);
        Argument::Pointer(pointer)
    };
    let record = [padded(modulus, bytes), table].concat();
    let inputs = [
        input(exponents.iter().flat_map(|x| padded(x, bytes)).collect()),
        input(record),
    ];
    let out = global.uninitialised(bytes * len as usize);
    let scratch = global.uninitialised(scratch_bytes(entry, public.blocks, 1));
    let numbers = [len, public.exponent_bits, public.flipped];
    let arguments: Vec<_> = [Argument::Pointer(out)]
        .into_iter()
        .chain(inputs)
        .chain([Argument::Pointer(scratch)])
        .chain(numbers.map(Argument::U32))
        .collect();
    let outcome = program(entry).run(&launch(entry, public.blocks), &arguments, &mut global);
    let outcome = outcome.unwrap_or_else(|stop| panic!("{stop}"));
    assert!(!outcome.secrets_left_in_shared && !outcome.secrets_left_in_variables);
    assert!(!global.buffer(scratch).holds_secrets());
    let out = global.buffer(out);
    assert!(out.all_written() && out.holds_secrets(), "{}", entry.name);
    let top = (public.rows() - 1) * WINDOW;
    for (i, (found, exponent)) in out.bytes().chunks(bytes).zip(&exponents).enumerate() {
        let exponent = exponent & ones(public.exponent_bits);
        let exponent = exponent ^ (BigUint::from(public.flipped) << top as usize);
        let expected = base.modpow(&exponent, modulus);
        assert_eq!(
            BigUint::from_bytes_le(found),
            expected,
            "{}, instance {i}",
            entry.name
        );
    }
}

/// A highest digit that is not full, and two blocks that take more than one round, the last one only
/// partly.
#[test]
fn powers_by_a_table() {
    for (number, bits) in [1024, 1536, 2048].into_iter().enumerate() {
        let modulus = ones(bits) - 158u32;
        let base = ones(bits) / 7u32;
        for (exponent_bits, len, blocks) in [(13, 1, 1), (8, 2 * 192 + 3, 2)] {
            let public = Public {
                exponent_bits,
                flipped: 1 << ((exponent_bits - 1) % WINDOW),
                blocks,
            };
            check(number, len, &base, &modulus, public);
        }
    }
}

#[test]
fn exponents_of_no_bits() {
    let public = Public {
        exponent_bits: 0,
        flipped: 0,
        blocks: 1,
    };
    check(0, 9, &BigUint::ZERO, &BigUint::from(3u32), public);
}
