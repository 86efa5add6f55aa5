//! Tests of batches of products: `modmul_BITS_t1`.

use num_bigint::BigUint;
use ptx_machine::{Argument, Global, Outcome};

use crate::harness::{launch, padded, program};
use crate::manifest::{ShippedEntry, entries};

/// The public parameters of a launch.
#[derive(Clone, Copy)]
struct Public {
    blocks: u32,
    ordinary: bool,
    times: u32,
    /// The width of the moduli, at most that of the class.
    bits: u32,
}

/// One product. Its modulus is given by the index in the batch's list.
#[derive(Clone)]
struct Instance {
    a: BigUint,
    b: BigUint,
    modulus: usize,
}

fn ones(bits: u32) -> BigUint {
    (BigUint::from(1u32) << bits as usize) - 1u32
}

/// Extreme numbers of up to `bits` bits: all ones, powers of two around limbs, and limbs that
/// alternate between all ones and 0.
fn edges(bits: u32) -> Vec<BigUint> {
    let one = || BigUint::from(1u32);
    let limbs = (32..bits).step_by(32).flat_map(|limb| {
        let limb = limb as usize;
        [
            ones(bits) - (ones(32) << (limb - 32)),
            (one() << limb) + 1u32,
        ]
    });
    let others = [
        one(),
        BigUint::from(3u32),
        ones(bits),
        ones(bits) - 158u32,
        (one() << (bits - 1) as usize) + 1u32,
        ones(bits) / ones(64) * ones(32),
        ones(bits) / 5u32,
        BigUint::from(0x9e37_79b9_7f4a_7c15u64).pow(bits / 64),
        BigUint::ZERO,
        ones(bits) << 32usize & ones(bits),
    ];
    others.into_iter().chain(limbs).collect()
}

/// Extreme moduli, and `len` products: with extreme factors, with factors just below the modulus,
/// and with one reduced factor, like a Montgomery form.
fn batch(bits: u32, len: usize) -> (Vec<BigUint>, Vec<Instance>) {
    let values = edges(bits);
    let moduli: Vec<_> = values.iter().map(|x| x | BigUint::from(1u32)).collect();
    let batch = (0..len).map(|i| {
        let modulus = i % moduli.len();
        let n = &moduli[modulus];
        let [a, b] = [i / 2, i / 5 + 3].map(|k| values[(k + i) % values.len()].clone());
        let (a, b) = match i % 4 {
            0 => (n - 1u32, b),
            1 => (a % n, b),
            2 => (a, b % n),
            _ => (n - 1u32, n - 1u32),
        };
        Instance { a, b, modulus }
    });
    let batch = batch.collect();
    (moduli, batch)
}

/// Runs the batch with secret factors, moduli and `r2` in buffers of the documented lengths, and
/// compares with `num_bigint`.
fn check(entry: &ShippedEntry, moduli: &[BigUint], batch: &[Instance], public: Public) -> Outcome {
    let bytes = entry.bits as usize / 8;
    let radix = BigUint::from(1u32) << public.bits as usize;
    let mut global = Global::default();
    let mut input = |contents: Vec<u8>, secret: bool| {
        let pointer = global.with_bytes(contents, secret);
        global.set_read_only(pointer);
        Argument::Pointer(pointer)
    };
    // In the highest bits of its place.
    let high = |x: &BigUint| padded(&(x << (entry.bits - public.bits) as usize), bytes);
    let a = batch.iter().flat_map(|x| padded(&x.a, bytes)).collect();
    let b = batch.iter().flat_map(|x| high(&x.b)).collect();
    let records = moduli.iter().flat_map(|modulus| {
        let r2 = &radix * &radix % modulus;
        [padded(modulus, bytes), high(&r2)].concat()
    });
    let index = batch.iter().flat_map(|x| (x.modulus as u32).to_le_bytes());
    let inputs = [
        input(a, true),
        input(b, true),
        input(records.collect(), true),
        input(index.collect(), false),
    ];
    let out = global.uninitialised(bytes * batch.len());
    let numbers = [batch.len() as u32, public.ordinary.into(), public.times];
    let arguments: Vec<_> = [Argument::Pointer(out)]
        .into_iter()
        .chain(inputs)
        .chain(numbers.map(Argument::U32))
        .collect();
    let launch = launch(entry, public.blocks);
    let outcome = program(entry)
        .run(&launch, &arguments, &mut global)
        .unwrap_or_else(|stop| panic!("{stop}"));
    let out = global.buffer(out);
    assert!(out.all_written() && out.holds_secrets(), "{}", entry.name);
    for (i, (found, x)) in out.bytes().chunks(bytes).zip(batch).enumerate() {
        let modulus = &moduli[x.modulus];
        let mut expected = match public.ordinary {
            true => &x.a * &radix % modulus,
            false => x.a.clone(),
        };
        // Modulo 1 everything is 0.
        let inverse = radix.modinv(modulus).unwrap_or_default();
        for _ in 0..public.times {
            expected = expected * &x.b * &inverse % modulus;
        }
        let found = BigUint::from_bytes_le(found);
        assert_eq!(found, expected, "{}, instance {i}", entry.name);
    }
    assert!(!outcome.secrets_left_in_shared, "{}", entry.name);
    outcome
}

/// Two blocks that take more than one round, the last one only partly, in both forms.
#[test]
fn products_at_the_edges() {
    for entry in &entries("modmul_") {
        let (moduli, batch) = batch(entry.bits, 3 * entry.instances_per_block as usize + 77);
        for ordinary in [false, true] {
            let public = Public {
                blocks: 2,
                ordinary,
                times: 1,
                bits: entry.bits,
            };
            check(entry, &moduli, &batch, public);
        }
    }
}

/// The radix is that of the modulus's own width.
#[test]
fn moduli_narrower_than_the_class() {
    for entry in &entries("modmul_") {
        for bits in [64, entry.bits - 64, entry.bits - 32] {
            let (moduli, batch) = batch(bits, 100);
            for ordinary in [false, true] {
                let public = Public {
                    blocks: 1,
                    ordinary,
                    times: 1,
                    bits,
                };
                check(entry, &moduli, &batch, public);
            }
        }
    }
}

/// The measurements use such products.
#[test]
fn products_with_one_factor_again_and_again() {
    for entry in &entries("modmul_") {
        let (moduli, mut batch) = batch(entry.bits, 40);
        for x in &mut batch {
            x.b %= &moduli[x.modulus];
        }
        for ordinary in [false, true] {
            let public = Public {
                blocks: 1,
                ordinary,
                times: 5,
                bits: entry.bits,
            };
            check(entry, &moduli, &batch, public);
        }
    }
}

/// The taint rules imply this; here it is counted.
#[test]
fn as_many_steps_whatever_the_secrets() {
    let entry = &entries("modmul_")[0];
    let public = Public {
        blocks: 1,
        ordinary: true,
        times: 1,
        bits: entry.bits,
    };
    let steps = edges(entry.bits).into_iter().map(|value| {
        let modulus = &value | BigUint::from(1u32);
        let instance = Instance {
            a: value.clone(),
            b: value,
            modulus: 0,
        };
        check(entry, &[modulus], &[instance], public).steps
    });
    let steps: Vec<_> = steps.collect();
    assert!(steps.iter().all(|count| *count == steps[0]), "{steps:?}");
}
