//! Invalid instances and several widths in large batches.

use batch_modexp::backend::Serial;
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::BoxedUint;

use super::{Batch, assert_same, gpu};

/// Enough instances for several chunks.
const LEN: usize = 100_000;

const WIDTH: u32 = 512;

/// Replaces the bases by ones of 1,024 bits where `wide` says so.
fn with_wide_bases<'a>(
    batch: &'a Batch,
    base: &'a BoxedUint,
    wide: &[usize],
) -> Vec<ModExp<'a, BoxedUint>> {
    let mut instances = batch.mod_exps();
    for &index in wide {
        instances[index].base = base;
    }
    instances
}

/// The first of several faults is reported, whatever its chunk. No result is left, and the backend
/// remains usable.
#[test]
fn the_first_fault_of_a_batch_is_told() {
    let Some((_memory, cuda)) = gpu() else { return };
    let batch = Batch::random(WIDTH, LEN, 500);
    let base = BoxedUint::one_with_precision(2 * WIDTH);
    for wide in [
        &[LEN - 2][..],
        &[0],
        &[1, LEN - 1],
        &[70_001, 30_000, 99_000],
        &[50_000, 51_000, 12_345],
    ] {
        let mut out = vec![BoxedUint::max(WIDTH); LEN];
        let instances = with_wide_bases(&batch, &base, wide);
        let result = cuda.batch_mod_exp(&instances, 16, &mut out);
        let expected = Error::BaseWidth {
            index: *wide.iter().min().unwrap(),
            bits: 2 * WIDTH,
            modulus_bits: WIDTH,
        };
        assert_eq!(result, Err(expected));
        assert!(out.iter().all(|number| number.is_zero().to_bool()));
    }
    let result = cuda.batch_mod_exp(&batch.mod_exps(), WIDTH + 1, &mut batch.zeros());
    assert!(matches!(result, Err(Error::ExponentBits { index: 0, .. })));
    assert_same(&batch.run(&cuda, 16), &batch.run(&Serial, 16));
}

/// Wider and narrower instances among the others, at the ends and in the middle.
#[test]
fn batches_of_several_widths() {
    let Some((_memory, cuda)) = gpu() else { return };
    let batch = Batch::random(WIDTH, LEN, 500);
    let others = [64, 2 * WIDTH].map(|width| Batch::random(width, 100, 3));
    let positions = [(0..1), (1..2), (40_000..40_050), (99_999..100_000)];
    for other in &others {
        for positions in &positions {
            let mut instances = batch.mod_exps();
            instances[positions.clone()].copy_from_slice(&other.mod_exps()[..positions.len()]);
            let [mut device, mut host] = [(); 2].map(|()| batch.zeros());
            cuda.batch_mod_exp(&instances, 16, &mut device).unwrap();
            Serial.batch_mod_exp(&instances, 16, &mut host).unwrap();
            assert_same(&device, &host);
        }
    }
}
