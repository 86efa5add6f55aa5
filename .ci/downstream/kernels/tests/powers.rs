//! That the library is what a program would link.

use batch_modexp::ModExp;
use batch_modexp::backend::Cpu;
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Odd, U2048};

#[test]
fn a_power() {
    let params = MontyParams::new(Odd::new(U2048::from(7u32)).unwrap());
    let (base, exponent) = (U2048::from(3u32), U2048::from(5u32));
    let mut out = [U2048::ZERO];
    let batch = [ModExp::new(&base, &exponent, &params)];
    tree_kernels::powers(&Cpu::new().unwrap(), &batch, &mut out).unwrap();
    assert_eq!(out, [U2048::from(5u32)]);
}
