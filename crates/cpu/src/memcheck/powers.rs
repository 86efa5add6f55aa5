//! Tables of fixed bases, powers by them, and products of powers, with all secrets marked.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{
    FixedPowers, HasPowerEngine, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use batch_modexp_core::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExpVartime, BatchMultiExp, ModMultiExp,
    MultiExpVartime, PublicExponent, Serial,
};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};

use crate::lanes::testing::Random;
use crate::valgrind::{set_modulus_undefined, set_undefined};

fn number(random: &mut Random, bits: u32) -> BoxedUint {
    let mut number = BoxedUint::zero_with_precision(bits);
    number.as_mut_limbs().fill_with(|| Limb(random.next() as _));
    number
}

fn params(random: &mut Random, bits: u32) -> BoxedMontyParams {
    let odd = number(random, bits) | BoxedUint::one_with_precision(bits);
    BoxedMontyParams::new(Odd::new(odd).unwrap())
}

/// Makes a table of each kind, and computes powers with exponents of several lengths, for more
/// instances than lanes.
pub(super) fn fixed_base(backend: &impl BatchFixedBaseExp, bits: u32) {
    let mut random = Random(6);
    let params = params(&mut random, bits);
    let exponents: Vec<_> = (0..9).map(|_| number(&mut random, 128)).collect();
    // The inverse of -1 is -1, so no other number needs to be known to belong to a base.
    let one = BoxedUint::one_with_precision(bits);
    let base = params.modulus().as_ref().wrapping_sub(&one);
    set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
    set_undefined(base.as_limbs(), true);
    for exponent in &exponents {
        set_undefined(exponent.as_limbs(), true);
    }
    let mut out = vec![BoxedUint::zero(); exponents.len()];
    for max_bytes in [1 << 20, usize::MAX] {
        let table = backend.fixed_base(&base, params.as_ref(), 70, max_bytes);
        let table = table.unwrap();
        for exponent_bits in [70, 3, 0] {
            backend
                .batch_fixed_base_exp(&table, &exponents, exponent_bits, &mut out)
                .unwrap();
            black_box(&out);
        }
    }
    let table = backend
        .signed_fixed_base(&base, &base, params.as_ref(), 70, 1 << 20)
        .unwrap();
    backend
        .batch_fixed_base_exp(&table, &exponents, 70, &mut out)
        .unwrap();
    black_box(&out);
    set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
}

/// The same with public exponents: only the base and the modulus are marked.
pub(super) fn fixed_base_vartime(backend: &impl BatchFixedBaseExpVartime, bits: u32) {
    let mut random = Random(9);
    let params = params(&mut random, bits);
    let mut exponents: Vec<_> = (0..9).map(|_| number(&mut random, 128)).collect();
    exponents[..4].fill(BoxedUint::one_with_precision(128));
    let one = BoxedUint::one_with_precision(bits);
    let base = params.modulus().as_ref().wrapping_sub(&one);
    set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
    set_undefined(base.as_limbs(), true);
    let mut out = vec![BoxedUint::zero(); exponents.len()];
    let table = backend.fixed_base_vartime(&base, params.as_ref(), 70, usize::MAX);
    let signed = backend.signed_fixed_base_vartime(&base, &base, params.as_ref(), 70, 1 << 20);
    let (table, signed) = (table.unwrap(), signed.unwrap());
    for (table, exponent_bits) in [(&table, 70), (&table, 3), (&table, 0), (&signed, 70)] {
        backend
            .batch_fixed_base_exp_vartime(table, &exponents, exponent_bits, &mut out)
            .unwrap();
        black_box(&out);
    }
    set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
}

/// Uses secret exponents as public ones, which must be found.
pub(super) fn fixed_base_vartime_of_secrets(backend: &impl BatchFixedBaseExpVartime) {
    let mut random = Random(10);
    let params = params(&mut random, 256);
    let base = number(&mut random, 256);
    let exponent = number(&mut random, 128);
    let table = backend.fixed_base_vartime(&base, params.as_ref(), 70, usize::MAX);
    set_undefined(exponent.as_limbs(), true);
    let mut out = [BoxedUint::zero()];
    backend
        .batch_fixed_base_exp_vartime(&table.unwrap(), &[exponent], 70, &mut out)
        .unwrap();
    black_box(&out);
}

/// Computes products of three powers, with exponents of several lengths, for more instances than
/// lanes.
pub(super) fn multi_exp(backend: &impl BatchMultiExp, bits: u32) {
    let mut random = Random(7);
    let params = params(&mut random, bits);
    let numbers: Vec<_> = (0..27)
        .map(|_| [bits, 384].map(|bits| number(&mut random, bits)))
        .collect();
    set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
    for number in numbers.iter().flatten() {
        set_undefined(number.as_limbs(), true);
    }
    let terms: Vec<_> = numbers
        .iter()
        .map(|[base, exponent]| (base, exponent))
        .collect();
    let batch: Vec<_> = terms
        .chunks_exact(3)
        .map(|terms| ModMultiExp::new(terms, params.as_ref()))
        .collect();
    let mut out = vec![BoxedUint::zero(); batch.len()];
    for lengths in [[330, 17, 0], [110, 17, 0], [3, 3, 4]] {
        backend.batch_multi_exp(&batch, &lengths, &mut out).unwrap();
        black_box(&out);
    }
    set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
}

/// Computes powers with a short and a long public exponent, for more instances than lanes.
pub(super) fn public_exponent(backend: &impl BatchModExpVartime, bits: u32) {
    let mut random = Random(8);
    let params = params(&mut random, bits);
    let numbers: Vec<_> = (0..9).map(|_| number(&mut random, bits)).collect();
    set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
    for number in &numbers {
        set_undefined(number.as_limbs(), true);
    }
    let bases: Vec<_> = numbers.iter().map(|base| (base, params.as_ref())).collect();
    let mut out = vec![BoxedUint::zero(); bases.len()];
    for exponent in [BoxedUint::from(65_537u32), BoxedUint::max(128)] {
        let exponent = PublicExponent::new_vartime(&exponent);
        backend
            .batch_mod_exp_vartime(&bases, &exponent, &mut out)
            .unwrap();
        black_box(&out);
    }
    set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
}

/// Computes a product of few powers and one of many, with public exponents. Some engines would use
/// buckets only for more, so their products are computed by themselves too.
pub(super) fn many_powers(backend: &impl MultiExpVartime, bits: u32) {
    let mut random = Random(9);
    let params = params(&mut random, bits);
    let exponents: Vec<_> = (0..200).map(|_| number(&mut random, 64) >> 54u32).collect();
    let bases: Vec<_> = exponents
        .iter()
        .map(|_| number(&mut random, bits))
        .collect();
    set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
    for base in &bases {
        set_undefined(base.as_limbs(), true);
    }
    let terms: Vec<_> = bases.iter().zip(&exponents).collect();
    for terms in [&terms[..9], &terms] {
        black_box(backend.multi_exp_vartime(terms, params.as_ref()).unwrap());
    }
    let (engine, modulus) = (backend.power_engine(), ModulusRef::of(params.as_ref()));
    let limbs = engine.table_form(bits).limbs;
    let numbers: Vec<_> = bases[..9].iter().map(BoxedUint::as_limbs).collect();
    let mut forms = vec![0; 9 * limbs];
    engine.to_montgomery(modulus, &numbers, &mut forms);
    let mut products = vec![0; 8 * limbs];
    engine.indexed_products(IndexedProducts {
        modulus,
        numbers: [&forms, &[]],
        pairs: &[0, 1, 2, 3, 4, 5, 6, 7].map(|i| [i, i + 1]),
        out: &mut products,
    });
    let mut out = vec![Limb::ZERO; 8 * modulus.limbs.len()];
    engine.retrieve(modulus, &products, &mut out);
    black_box(&out);
    set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
}

/// A control: reads entries of rows at addresses that depend on the digits.
pub(super) struct LeaksByAddress;

impl HasPowerEngine for LeaksByAddress {
    fn power_engine(&self) -> &dyn PowerEngine {
        self
    }
}

impl PowerEngine for LeaksByAddress {
    fn table_form(&self, bits: u32) -> TableForm {
        Serial.table_form(bits)
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        Serial.fill_rows(table, base, first);
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        let rows = powers.table.rows();
        let mut digits = vec![0; powers.table.digit_count(powers.exponent_bits)];
        for exponent in powers.exponents {
            powers
                .table
                .recode(exponent, powers.exponent_bits, &mut digits);
            for (row, digit) in digits.iter().enumerate() {
                black_box(rows.row(row)[usize::from(*digit)]);
            }
        }
    }

    fn fewest_for_buckets(&self, _: u32) -> usize {
        unreachable!("only powers by tables are computed")
    }

    fn multi_powers(&self, _: MultiPowers<'_, '_>) {
        unreachable!("only powers by tables are computed")
    }

    fn powers_vartime(&self, _: PublicPowers<'_, '_>) {
        unreachable!("only powers by tables are computed")
    }

    fn to_montgomery(&self, _: ModulusRef<'_>, _: &[&[Limb]], _: &mut [u64]) {
        unreachable!("only powers by tables are computed")
    }

    fn indexed_products(&self, _: IndexedProducts<'_>) {
        unreachable!("only powers by tables are computed")
    }

    fn retrieve(&self, _: ModulusRef<'_>, _: &[u64], _: &mut [Limb]) {
        unreachable!("only powers by tables are computed")
    }
}
