//! The operations on numbers modulo a product of two primes: `rsa_BITS_*` of `kernels/README.md`.
#![allow(unsafe_code)]

use alloc::vec;

use super::Dpf;
use crate::backend::cuda::family::crt::{
    CrtChunk, CrtClass, CrtFamily, CrtKernels, CrtModulus, CrtWork,
};
use crate::backend::cuda::family::modexp::{
    check_count, check_kernel, check_r2_bits, scratch_words,
};
use crate::backend::cuda::registry::Operation;
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;
use crate::backend::cuda::words::copy_in;

/// 64-bit words in a factor of n.
fn prime_words(class: &CrtClass) -> usize {
    class.bits as usize / 128
}

impl CrtFamily for Dpf {
    fn name(&self) -> &'static str {
        super::NAME
    }

    /// p, q, dP, dQ, qInv and two constants, n and its constant.
    fn record_words(&self, class: &CrtClass) -> usize {
        11 * prime_words(class)
    }

    fn write_record(&self, class: &CrtClass, modulus: &CrtModulus<'_>, record: &mut [u64]) {
        let words = prime_words(class);
        let [p, r2_p, dp, q, r2_q, dq, qinv] = [
            modulus.p.modulus().as_ref(),
            modulus.p.r2(),
            modulus.dp,
            modulus.q.modulus().as_ref(),
            modulus.q.r2(),
            modulus.dq,
            modulus.qinv,
        ];
        let (primes, n) = record.split_at_mut(7 * words);
        let parts = [p, r2_p, dp, q, r2_q, dq, qinv];
        for (place, part) in primes.chunks_exact_mut(words).zip(parts) {
            copy_in(part.as_limbs(), place);
        }
        let parts = [modulus.n.modulus().as_ref(), modulus.n.r2()];
        for (place, part) in n.chunks_exact_mut(2 * words).zip(parts) {
            copy_in(part.as_limbs(), place);
        }
    }

    fn exponentiate(&self, kernels: &CrtKernels, chunk: &CrtChunk) -> CrtWork {
        let CrtChunk {
            count,
            n_bits,
            prime_bits,
            exponent_bits,
            public_exponent,
            window,
        } = *chunk;
        let CrtKernels {
            halves: (halves_entry, halves_grid),
            recombine: (recombine_entry, recombine_grid),
            check: (check_entry, check_grid),
            records: kind,
        } = *kernels;
        check_kernel(halves_entry, Operation::CrtHalves, halves_grid);
        check_kernel(recombine_entry, Operation::CrtRecombine, recombine_grid);
        check_kernel(check_entry, Operation::CrtCheck, check_grid);
        check_count(count);
        check_r2_bits(halves_entry, prime_bits);
        check_r2_bits(recombine_entry, prime_bits);
        check_r2_bits(check_entry, n_bits);
        assert!(
            exponent_bits <= halves_entry.bits,
            "the exponents are too long"
        );
        assert!(public_exponent >= 1, "the public exponent is 0");
        let words = halves_entry.words();
        assert!(
            words == recombine_entry.words()
                && 2 * words == check_entry.words()
                && 11 * words == kind.words,
            "kernels and records of different classes"
        );
        let blocks = halves_grid.blocks(2 * count);
        let (numbers, indices) = (2 * words * count, count.div_ceil(2));

        let mut layout = Layout::default();
        let base = layout.input(numbers);
        let base_copy = layout.input(numbers);
        let record_index = layout.input(indices);
        let halves = layout.intermediate(numbers);
        let h = layout.intermediate(words * count);
        let power = layout.output(numbers);
        let verdict = layout.output(indices);
        let scratch = layout.scratch(scratch_words(halves_entry, blocks, window));

        let records = Argument::Records(kind);
        let index = Argument::RecordIndices {
            part: record_index,
            count,
        };
        let halves_arguments = vec![
            Argument::Words(halves),
            Argument::Words(base),
            records,
            index,
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(exponent_bits),
            Argument::U32(prime_bits),
            Argument::U32(window.bits()),
        ];
        let recombine_arguments = vec![
            Argument::Words(h),
            Argument::Words(halves),
            records,
            index,
            Argument::U32(count as u32),
            Argument::U32(prime_bits),
        ];
        let check_arguments = vec![
            Argument::Words(power),
            Argument::Words(verdict),
            Argument::Words(halves),
            Argument::Words(h),
            Argument::Words(base_copy),
            records,
            index,
            Argument::U64(public_exponent),
            Argument::U32(count as u32),
            Argument::U32(n_bits),
        ];
        // SAFETY: these are the parameters of `rsa_BITS_exp_tT`, `rsa_BITS_garner` and `rsa_BITS_check`, checked
        // above; every part has the length that its buffer must have.
        let launches = unsafe {
            vec![
                Launch::new(halves_grid.image(), blocks, halves_arguments),
                Launch::new(
                    recombine_grid.image(),
                    recombine_grid.blocks(count),
                    recombine_arguments,
                ),
                Launch::new(
                    check_grid.image(),
                    check_grid.blocks(count),
                    check_arguments,
                ),
            ]
        };
        CrtWork {
            layout,
            base,
            base_copy,
            record_index,
            power,
            verdict,
            launches,
        }
    }
}

#[cfg(test)]
mod tests;
