//! Runs the library, so that it is known to be what a program would link.

use batch_modexp::ModExp;
use batch_modexp::backend::{Auto, Cpu};
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

/// Checks the reason for the missing GPU: this program is built without the feature `cuda`.
#[test]
fn a_reason_why_there_is_no_gpu() {
    let auto = Auto::with_gpus().unwrap();
    assert!(auto.reason().contains("without the feature `cuda`"));
    assert!(!Auto::new().unwrap().reason().contains("cuda"));
}
