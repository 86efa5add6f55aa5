//! The operations on numbers modulo a product of two primes: `rsa_BITS_*` of `kernels/README.md`.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use super::Dpf;
use crate::backend::cuda::family::crt::{
    CrtChunk, CrtClass, CrtFamily, CrtKernels, CrtModulus, CrtWork,
};
use crate::backend::cuda::family::modexp::{
    check_count, check_kernel, check_r2_bits, scratch_words,
};
use crate::backend::cuda::registry::Operation;
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::{Layout, Part};
use crate::backend::cuda::runtime::module::Grid;
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
        check(kernels, chunk);
        let CrtChunk {
            count,
            n_bits,
            prime_bits,
            ..
        } = *chunk;
        let CrtKernels {
            halves: (halves_entry, halves_grid),
            recombine: (_, recombine_grid),
            join: (_, join_grid),
            blind: (_, blind_grid),
            records: kind,
        } = *kernels;
        let words = halves_entry.words();
        let blocks = halves_grid.blocks(2 * count);
        let (numbers, indices) = (2 * words * count, count.div_ceil(2));

        let mut layout = Layout::default();
        let base = layout.input(numbers);
        let blind = chunk
            .is_blinded
            .then(|| (layout.input(numbers), layout.input(numbers)));
        let record_index = layout.input(indices);
        let halves = layout.intermediate(numbers);
        let h = layout.intermediate(words * count);
        let power = layout.output(numbers);
        let scratch = layout.scratch(scratch_words(halves_entry, blocks, chunk.window));
        let blinding = blind.map(|(r, inverse)| Blinding {
            r,
            inverse,
            base: layout.intermediate(numbers),
            power: layout.intermediate(numbers),
        });
        let exponentiated = blinding.as_ref().map_or(base, |blinding| blinding.base);
        let joined = blinding.as_ref().map_or(power, |blinding| blinding.power);

        let records = Argument::Records(kind);
        let index = Argument::RecordIndices {
            part: record_index,
            count,
        };
        let blind_arguments = |out, factor, base, exponent| {
            vec![
                Argument::Words(out),
                Argument::Words(factor),
                Argument::Words(base),
                records,
                index,
                Argument::U64(exponent),
                Argument::U32(count as u32),
                Argument::U32(n_bits),
            ]
        };
        let halves_arguments = vec![
            Argument::Words(halves),
            Argument::Words(exponentiated),
            records,
            index,
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(chunk.exponent_bits),
            Argument::U32(prime_bits),
            Argument::U32(chunk.window.bits()),
        ];
        let recombine_arguments = vec![
            Argument::Words(h),
            Argument::Words(halves),
            records,
            index,
            Argument::U32(count as u32),
            Argument::U32(prime_bits),
        ];
        let join_arguments = vec![
            Argument::Words(joined),
            Argument::Words(halves),
            Argument::Words(h),
            records,
            index,
            Argument::U32(count as u32),
            Argument::U32(n_bits),
        ];
        let mut steps = vec![
            (halves_grid, blocks, halves_arguments),
            (
                recombine_grid,
                recombine_grid.blocks(count),
                recombine_arguments,
            ),
            (join_grid, join_grid.blocks(count), join_arguments),
        ];
        if let Some(with) = blinding {
            let hide = blind_arguments(with.base, base, with.r, chunk.public_exponent);
            let reveal = blind_arguments(power, with.power, with.inverse, 1);
            let blocks = blind_grid.blocks(count);
            steps.insert(0, (blind_grid, blocks, hide));
            steps.push((blind_grid, blocks, reveal));
        }
        let launch = |(grid, blocks, arguments): (Grid, usize, Vec<Argument>)| {
            let is_short = !ptr::eq(grid.image(), halves_grid.image());
            // SAFETY: these are the parameters of `rsa_BITS_exp_tT`, `rsa_BITS_garner`, `rsa_BITS_join` and
            // `rsa_BITS_blind`, each with its own grid, checked above; every part has the length that its
            // buffer must have.
            let launch = unsafe { Launch::new(grid.image(), blocks, arguments) };
            match is_short {
                true => launch.short(),
                false => launch,
            }
        };
        CrtWork {
            layout,
            base,
            blind,
            record_index,
            power,
            launches: steps.into_iter().map(launch).collect(),
        }
    }
}

/// What blinding adds to a chunk.
struct Blinding {
    /// Inputs: random numbers, and their inverses modulo n.
    r: Part,
    inverse: Part,
    /// The blinded numbers, and their powers.
    base: Part,
    power: Part,
}

/// Panics unless the kernels are those of one class, and take the numbers of the chunk.
fn check(kernels: &CrtKernels, chunk: &CrtChunk) {
    let (halves, halves_grid) = kernels.halves;
    let (recombine, recombine_grid) = kernels.recombine;
    let (join, join_grid) = kernels.join;
    let (blind, blind_grid) = kernels.blind;
    check_kernel(halves, Operation::CrtHalves, halves_grid);
    check_kernel(recombine, Operation::CrtRecombine, recombine_grid);
    check_kernel(join, Operation::CrtJoin, join_grid);
    check_kernel(blind, Operation::CrtBlind, blind_grid);
    check_count(chunk.count);
    check_r2_bits(halves, chunk.prime_bits);
    check_r2_bits(recombine, chunk.prime_bits);
    check_r2_bits(join, chunk.n_bits);
    check_r2_bits(blind, chunk.n_bits);
    assert!(
        chunk.exponent_bits <= halves.bits,
        "the exponents are too long"
    );
    assert!(chunk.public_exponent >= 1, "the public exponent is 0");
    let words = halves.words();
    assert!(
        words == recombine.words()
            && 2 * words == join.words()
            && 2 * words == blind.words()
            && 11 * words == kernels.records.words,
        "kernels and records of different classes"
    );
}

#[cfg(test)]
mod tests;
