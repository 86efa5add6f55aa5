//! Launches against the tables of parameters in `kernels/README.md`, and records.

use super::super::*;
use crate::backend::cuda::runtime::launch::Part;
use crypto_bigint::Odd;
use crypto_bigint::modular::{BoxedMontyParams, MontyParams};

fn class() -> CrtClass {
    let mut classes = CrtClass::all(CrtShape {
        n_bits: 1472,
        prime_bits: 768,
        exponent_bits: 736,
    });
    classes.find(|class| class.join.bits == 1536).unwrap()
}

fn prepared(class: &CrtClass) -> Prepared {
    Prepared {
        halves: Kernel::imaginary(class.halves[0]),
        recombine: Kernel::imaginary(class.recombine),
        join: Kernel::imaginary(class.join),
        blind: Kernel::imaginary(class.blind),
        shape: class.shape,
        window: Window::new(5).unwrap(),
        most_blinded_by_host: 0,
    }
}

/// The arguments of the records of three keys, and of their indices for 101 items.
fn records_of(work: &Work<'_>) -> [Argument; 2] {
    let (part, records, size) = (work.indices, work.records, 11 * 12);
    assert_eq!((part.len(), records.len()), (51, 3 * size));
    let index = Argument::Indices {
        part,
        count: 101,
        records,
        size,
    };
    [Argument::Words(records), index]
}

#[test]
fn arguments_of_the_three_launches() {
    let class = class();
    let prepared = prepared(&class);
    let work = prepared.work(101, Operands::Same, 3);
    let [exp, garner, join] = work.launches() else {
        panic!("three launches");
    };
    let (count, p) = (Argument::U32(101), 1536 / 128);
    let [records, index] = records_of(&work);
    assert_eq!(work.numbers.map(Part::len), [101 * 2 * p, 0]);
    let product = Work::default().output(101 * 2 * p);

    let [halves, base, rest @ ..] = exp.arguments() else {
        panic!("halves and numbers");
    };
    let Argument::Words(halves) = *halves else {
        panic!("halves are words");
    };
    assert_eq!(halves.len(), 101 * 2 * p);
    assert_eq!(*base, Argument::Words(work.numbers[0]));
    assert_eq!(rest[..2], [records, index]);
    let Argument::Words(scratch) = rest[2] else {
        panic!("scratch is memory");
    };
    let entry = prepared.halves.entry;
    let threads = prepared.halves.blocks(202) * entry.threads as usize;
    assert_eq!(scratch.len(), threads * entry.scratch_doubles * 32);
    let numbers = [736, 768, 5].map(Argument::U32);
    assert_eq!(rest[3..], [count, numbers[0], numbers[1], numbers[2]]);

    let [h, rest @ ..] = garner.arguments() else {
        panic!("h");
    };
    let Argument::Words(h) = *h else {
        panic!("h is words");
    };
    assert_eq!(h.len(), 101 * p);
    let (halves, prime_bits) = (Argument::Words(halves), numbers[1]);
    assert_eq!(*rest, [halves, records, index, count, prime_bits]);

    let expected = [
        Argument::Words(product),
        halves,
        Argument::Words(h),
        *base,
        records,
        index,
        count,
        Argument::U32(1472),
    ];
    assert_eq!(*join.arguments(), expected);
}

/// The exponentiation reads only the first of two numbers, and the product the second.
#[test]
fn arguments_of_given_operands() {
    let class = class();
    let prepared = prepared(&class);
    let work = prepared.work(101, Operands::Given, 3);
    let [exp, _, join] = work.launches() else {
        panic!("three launches");
    };
    let factor = work.numbers[1];
    assert_eq!(exp.arguments()[1], Argument::Words(work.numbers[0]));
    assert_eq!(join.arguments()[3], Argument::Words(factor));
    assert_eq!(factor.len(), work.numbers[0].len());
}

/// The exponentiation reads only blinded numbers.
#[test]
fn arguments_of_blinded_launches() {
    let class = class();
    let prepared = prepared(&class);
    let work = prepared.work(101, Operands::Blinded(65537), 3);
    let [blind, exp, garner, join] = work.launches() else {
        panic!("four launches");
    };
    let (count, p) = (Argument::U32(101), 1536 / 128);
    let [records, index] = records_of(&work);
    let random = work.numbers[1];
    let mut end = 0usize;
    let inputs = [work.numbers[0], random, work.indices, work.records];
    let lens = [101 * 2 * p, 101 * 2 * p, 51, 3 * 11 * p];
    for (part, len) in inputs.into_iter().zip(lens) {
        let start = end.next_multiple_of(8);
        assert_eq!(part.range(), start..start + len);
        end = start + len;
    }
    let product = Work::default().output(101 * 2 * p);

    let [Argument::Words(factor), Argument::Words(base), rest @ ..] = blind.arguments() else {
        panic!("both operands are words");
    };
    let inputs = [work.numbers[0], random].map(Argument::Words);
    let (exponent, n_bits) = (Argument::U64(65536), Argument::U32(1472));
    assert_eq!(rest[..2], inputs);
    assert_eq!(rest[2..], [records, index, exponent, count, n_bits]);
    // Places for whole blocks.
    let per_block = prepared.blind.entry.instances_per_block;
    let places = 101usize.next_multiple_of(per_block) * 2 * p;
    assert_eq!([factor.len(), base.len()], [places; 2]);

    let [Argument::Words(halves), from, ..] = exp.arguments() else {
        panic!("halves are words");
    };
    assert_eq!(*from, Argument::Words(*base));
    let [Argument::Words(h), from, ..] = garner.arguments() else {
        panic!("h is words");
    };
    assert_eq!(*from, Argument::Words(*halves));
    let expected = [
        Argument::Words(product),
        Argument::Words(*halves),
        Argument::Words(*h),
        Argument::Words(*factor),
        records,
        index,
        count,
        n_bits,
    ];
    assert_eq!(*join.arguments(), expected);

    // Intermediate results have their own places, and none is an output.
    let mut between = [*factor, *base, *halves, *h].map(|part| part.range());
    between.sort_by_key(|range| range.start);
    assert!(between.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let lens = between.map(|range| range.len());
    assert_eq!(lens.iter().sum::<usize>(), 2 * places + 3 * 101 * p);
}

/// Kernels with these arguments would not end, or would leave their buffers.
#[test]
fn arguments_out_of_range_are_refused() {
    let class = class();
    let refuses_work = |count, operands, change: fn(&mut Prepared)| {
        let mut prepared = prepared(&class);
        change(&mut prepared);
        let call = core::panic::AssertUnwindSafe(|| prepared.work(count, operands, 3).indices);
        std::panic::catch_unwind(call).is_err()
    };
    assert!(!refuses_work(101, Operands::Same, |_| ()));
    assert!(refuses_work(0, Operands::Same, |_| ()));
    assert!(!refuses_work(101, Operands::Blinded(3), |_| ()));
    assert!(refuses_work(101, Operands::Blinded(1), |_| ()));
    assert!(refuses_work(101, Operands::Blinded(4), |_| ()));
    let refuses = |change| refuses_work(101, Operands::Same, change);
    assert!(refuses(|prepared| prepared.shape.n_bits = 704));
    assert!(refuses(|prepared| prepared.shape.prime_bits = 384));
    assert!(refuses(|prepared| prepared.shape.prime_bits = 832));
    assert!(refuses(|prepared| prepared.shape.exponent_bits = 769));
    assert!(refuses(|prepared| prepared.blind = prepared.join.clone()));
    assert!(refuses(|prepared| prepared.join = prepared.blind.clone()));
    let narrower = |prepared: &mut Prepared| {
        let wider = CrtShape::full(2048, 1024);
        prepared.halves = Kernel::imaginary(CrtClass::narrowest(wider).unwrap().halves[0]);
    };
    assert!(refuses(narrower));
}

/// p, its constant and exponent, q, its constant and exponent, qInv, n, its constant; zeros above.
#[test]
fn records_of_moduli() {
    let number = |value: u64| BoxedUint::from(value);
    let params = |value: u64| BoxedMontyParams::new(Odd::new(number(value)).unwrap());
    let (p, q, n) = (params(11), params(13), params(143));
    let (exponents, qinv) = ([3, 5].map(number), number(6));
    let key = CrtKey {
        p: ModulusRef::of(p.as_ref()),
        exponent_p: &exponents[0],
        q: ModulusRef::of(q.as_ref()),
        exponent_q: &exponents[1],
        qinv: &qinv,
        n: ModulusRef::of(n.as_ref()),
    };
    let mut record = vec![u64::MAX; 11 * 12];
    NonTemporal::with(|stores| key.write_record(&mut record, stores));
    let r2 = |params: &MontyParams<BoxedUint>| params.r2().as_words()[0];
    let parts = [11, r2(p.as_ref()), 3, 13, r2(q.as_ref()), 5, 6];
    for (place, part) in record.chunks(12).zip(parts) {
        assert_eq!(place[0], part);
        assert!(place[1..].iter().all(|&word| word == 0));
    }
    for (place, part) in record[7 * 12..].chunks(24).zip([143, r2(n.as_ref())]) {
        assert_eq!(place[0], part);
        assert!(place[1..].iter().all(|&word| word == 0));
    }
}
