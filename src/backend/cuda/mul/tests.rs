//! Tests of the parent module.

use super::*;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd, Resize};

fn params(modulus: u64, bits: u32) -> BoxedMontyParams {
    let modulus = BoxedUint::from(modulus).resize(bits);
    BoxedMontyParams::new(Odd::new(modulus).unwrap())
}

/// The inputs of a chunk, written over those of an earlier one.
fn filled(group: &Group<'_, ModMul<'_, BoxedUint>>, chunk: Range<usize>) -> (ModMulWork, Vec<u64>) {
    let job = ModMulJob {
        group,
        form: Form::Ordinary,
        registry: SHIPPED,
        threads: HostPool(None),
    };
    let entry = SHIPPED.multiplying(group.bits).next().unwrap();
    let what = ModMulChunk {
        count: chunk.len(),
        moduli: chunk.len(),
        form: job.form,
    };
    let work = mul::launch(entry, Grid::new(&entry.image, 132), &what);
    let mut words = vec![u64::MAX; work.moduli.range().end];
    let inputs = Outgoing::nowhere(&mut words);
    let filled = job.fill(entry, &chunk, &work, inputs);
    assert!(filled.is_ok());
    (work, words)
}

/// A modulus of 320 bits uses the kernel for 384. Its second factor and `r2` are one word higher.
#[test]
fn words_of_a_chunk() {
    let (first, second) = (params(15, 320), params(17, 320));
    let (a, b) = (BoxedUint::max(128), BoxedUint::from(5u64));
    let batch = [&second, &first, &first, &second].map(|params| ModMul {
        a: &a,
        b: &b,
        params: params.as_ref(),
    });
    let groups = Group::by_width(&batch, HostPool(None));
    assert_eq!(groups.len(), 1);
    let (work, words) = filled(&groups[0], 1..4);

    for number in words[work.a.range()].chunks(6) {
        assert_eq!(number, [u64::MAX, u64::MAX, 0, 0, 0, 0]);
    }
    for number in words[work.b.range()].chunks(6) {
        assert_eq!(number, [0, 5, 0, 0, 0, 0]);
    }
    let records: Vec<_> = words[work.moduli.range()].chunks(6).collect();
    // There is space for three.
    assert_eq!(records.len(), 6);
    assert_eq!(records[4..], [[u64::MAX; 6]; 2]);
    assert_eq!(records[0], [15, 0, 0, 0, 0, 0]);
    assert_eq!(records[2], [17, 0, 0, 0, 0, 0]);
    // 2^640 = 16^160 = 1 modulo 15, and (-1)^160 = 1 modulo 17.
    assert_eq!(records[1], [0, 1, 0, 0, 0, 0]);
    assert_eq!(records[3], [0, 1, 0, 0, 0, 0]);
    assert_eq!(words[work.modulus_index.range()], [0, 1]);
}

/// A modulus as wide as its class leaves all numbers in place.
#[test]
fn numbers_of_full_width_stay_where_they_are() {
    let params = params(15, 256);
    let (a, b) = (BoxedUint::max(256), BoxedUint::from(5u64));
    let batch = [ModMul::new(&a, &b, params.as_ref())];
    let groups = Group::by_width(&batch, HostPool(None));
    let (work, words) = filled(&groups[0], 0..1);
    assert_eq!(words[work.b.range()], [5, 0, 0, 0]);
    assert_eq!(words[work.moduli.range()], [15, 0, 0, 0, 1, 0, 0, 0]);
}
