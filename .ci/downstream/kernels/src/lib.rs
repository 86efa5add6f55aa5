//! A user's batches. They must not cause the kernels to be compiled in the user's crate, because
//! kernels take much longer to compile than all else. `.ci/run downstream` looks for their
//! instructions in this library.

use batch_modexp::backend::Cpu;
use batch_modexp::{
    BatchFixedBaseExp, BatchModExp, BatchModExpVartime, BatchModMul, BatchMultiExp, Error,
    FixedBase, ModExp, ModMul, ModMultiExp, PublicExponent,
};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, U1024, U2048};

pub fn powers(cpu: &Cpu, batch: &[ModExp<'_, U2048>], out: &mut [U2048]) -> Result<(), Error> {
    cpu.batch_mod_exp(batch, U2048::BITS, out)
}

pub fn boxed(
    cpu: &Cpu,
    batch: &[ModExp<'_, BoxedUint>],
    out: &mut [BoxedUint],
) -> Result<(), Error> {
    cpu.batch_mod_exp(batch, 2048, out)
}

pub fn products(cpu: &Cpu, batch: &[ModMul<'_, U1024>], out: &mut [U1024]) -> Result<(), Error> {
    cpu.batch_mod_mul(batch, out)
}

pub fn products_of_powers(
    cpu: &Cpu,
    batch: &[ModMultiExp<'_, U2048>],
    out: &mut [U2048],
) -> Result<(), Error> {
    cpu.batch_multi_exp(batch, &[2048, 256], out)
}

pub fn fixed_base(
    cpu: &Cpu,
    table: &FixedBase<U2048>,
    exponents: &[U2048],
    out: &mut [U2048],
) -> Result<(), Error> {
    cpu.batch_fixed_base_exp(table, exponents, 2048, out)
}

pub fn public_powers(
    cpu: &Cpu,
    bases: &[(&U2048, &MontyParams<U2048>)],
    exponent: &PublicExponent,
    out: &mut [U2048],
) -> Result<(), Error> {
    cpu.batch_mod_exp_vartime(bases, exponent, out)
}
