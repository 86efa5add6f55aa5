//! Powers of a fixed base on emulated units, compared with num-bigint.

use batch_modexp_core::{BatchFixedBaseExp, BatchFixedBaseExpVartime};

use super::*;

#[test]
fn fixed_bases_on_emulated_units() {
    check(&ifma::testing::eight_on_portable_unit());
    check(&ifma::testing::four_on_portable_unit());
}

/// Secret and public exponents, more than the 1,024 that eight lanes compute together, with digits of
/// 0 in some lanes and in all.
fn check(backend: &(impl BatchFixedBaseExp + BatchFixedBaseExpVartime)) {
    let mut random = Random(11);
    for (limbs, zeros) in [(4, 0), (17, 5)] {
        let params = random.modulus(limbs, zeros);
        let modulus = modulus_of(ModulusRef::of(params.as_ref()));
        let base = BoxedUint::max(limbs as u32 * Limb::BITS);
        let exponents: Vec<_> = (0..1029u64)
            .map(|i| match i / 128 % 3 {
                0 => i,
                1 => u64::from(i as u8) << 24,
                _ => random.next() >> (i % 8),
            })
            .collect();
        let numbers: Vec<_> = exponents.iter().map(|x| BoxedUint::from(*x)).collect();
        let mut out = [(); 2].map(|()| vec![BoxedUint::zero(); numbers.len()]);
        let [secret, public] = &mut out;
        let table = backend.fixed_base(&base, params.as_ref(), 64, usize::MAX);
        backend
            .batch_fixed_base_exp(&table.unwrap(), &numbers, 64, secret)
            .unwrap();
        let table = backend.fixed_base_vartime(&base, params.as_ref(), 64, usize::MAX);
        backend
            .batch_fixed_base_exp_vartime(&table.unwrap(), &numbers, 64, public)
            .unwrap();
        let base = value(base.as_limbs());
        for (i, exponent) in exponents.iter().enumerate() {
            let expected = base.modpow(&BigUint::from(*exponent), &modulus);
            for out in &out {
                assert_eq!(
                    value(out[i].as_limbs()),
                    expected,
                    "{limbs} limbs, number {i}"
                );
            }
        }
    }
}
