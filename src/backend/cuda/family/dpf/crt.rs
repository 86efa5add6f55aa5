//! The operations on numbers modulo a product of two primes: `rsa_BITS_*` of `kernels/README.md`.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use super::Dpf;
use crate::backend::cuda::family::crt::{
    CrtChunk, CrtClass, CrtFamily, CrtKernels, CrtModulus, CrtWork, Operands,
};
use crate::backend::cuda::family::entry::Operation;
use crate::backend::cuda::family::modexp::{
    check_count, check_kernel, check_r2_bits, scratch_words,
};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;
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

    /// p, q, their exponents, qInv and two constants, n and its constant.
    fn record_words(&self, class: &CrtClass) -> usize {
        11 * prime_words(class)
    }

    fn write_record(&self, class: &CrtClass, modulus: &CrtModulus<'_>, record: &mut [u64]) {
        let words = prime_words(class);
        let (primes, n) = record.split_at_mut(7 * words);
        let parts = [
            modulus.p.modulus().as_ref(),
            modulus.p.r2(),
            modulus.exponent_p,
            modulus.q.modulus().as_ref(),
            modulus.q.r2(),
            modulus.exponent_q,
            modulus.qinv,
        ];
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
            blind: (blind_entry, blind_grid),
            records: kind,
        } = *kernels;
        let words = halves_entry.words();
        let blocks = halves_grid.blocks(2 * count);
        let (numbers, indices) = (2 * words * count, count.div_ceil(2));

        let mut layout = Layout::default();
        let first = layout.input(numbers);
        let second = match chunk.operands {
            Operands::Same => None,
            Operands::Given | Operands::Blinded => Some(layout.input(numbers)),
        };
        let record_index = layout.input(indices);
        let halves = layout.intermediate(numbers);
        let h = layout.intermediate(words * count);
        let product = layout.output(numbers);
        let scratch = layout.scratch(scratch_words(halves_entry, blocks, chunk.window));
        let (base, factor) = match chunk.operands {
            // Lanes past the end have places of their own.
            Operands::Blinded => {
                let per_block = blind_entry.image.instances_per_block;
                let numbers = 2 * words * count.next_multiple_of(per_block);
                (layout.intermediate(numbers), layout.intermediate(numbers))
            }
            Operands::Given | Operands::Same => (first, second.unwrap_or(first)),
        };

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
            Argument::Words(product),
            Argument::Words(halves),
            Argument::Words(h),
            Argument::Words(factor),
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
        if let (Operands::Blinded, Some(random)) = (chunk.operands, second) {
            let blind_arguments = vec![
                Argument::Words(factor),
                Argument::Words(base),
                Argument::Words(first),
                Argument::Words(random),
                records,
                index,
                Argument::U64(chunk.public_exponent - 1),
                Argument::U32(count as u32),
                Argument::U32(n_bits),
            ];
            let blocks = blind_grid.blocks(count);
            steps.insert(0, (blind_grid, blocks, blind_arguments));
        }
        let launch = |(grid, blocks, arguments): (Grid, usize, Vec<Argument>)| {
            let is_short = !ptr::eq(grid.image(), halves_grid.image());
            // SAFETY: these are the parameters of `rsa_BITS_exp_tT`, `rsa_BITS_garner`,
            // `rsa_BITS_join` and `rsa_BITS_blind`, each with its own grid, checked above; every
            // part has the length that its buffer must have.
            let launch = unsafe { Launch::new(grid.image(), blocks, arguments) };
            match is_short {
                true => launch.short(),
                false => launch,
            }
        };
        CrtWork {
            layout,
            first,
            second,
            record_index,
            product,
            launches: steps.into_iter().map(launch).collect(),
        }
    }
}

/// Panics unless the kernels belong to one class and accept the chunk's numbers.
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
    assert!(
        chunk.public_exponent > 1 && chunk.public_exponent % 2 == 1,
        "the public exponent is none"
    );
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
