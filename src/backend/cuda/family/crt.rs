//! Products `factor * base^exponent` modulo n = p q by the Chinese remainder theorem: launches of
//! `rsa_BITS_*` (`kernels/README.md`).
//!
//! The steps are both half exponentiations, Garner's recombination, and the product. The result is
//! not checked here. Optionally, a first step blinds both operands with a random number: see
//! [`Operands`].
//!
//! The half exponentiations may use kernels of any family: their parameters and records are the
//! same in all. The DPF family has the kernels for the other steps.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::window::Window;
use crypto_bigint::BoxedUint;

use super::modexp::{check_count, check_operation, check_r2_bits, scratch_words};
use super::{Entry, Grid, Operation, Work, all};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::records::RecordKind;
use crate::backend::cuda::words::copy_in;

/// The numbers in the record of a key: `n = p q`, the exponents for p and q, and `q^-1 mod p`. All
/// except n are secret.
#[derive(Clone, Copy)]
pub(crate) struct CrtModulus<'a> {
    pub(crate) p: ModulusRef<'a>,
    pub(crate) exponent_p: &'a BoxedUint,
    pub(crate) q: ModulusRef<'a>,
    pub(crate) exponent_q: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: ModulusRef<'a>,
}

/// Kernels for moduli of up to `bits` bits.
#[derive(Clone, Debug)]
pub(crate) struct CrtClass {
    pub(crate) bits: u32,
    /// The candidates for the half exponentiations.
    pub(crate) halves: Vec<&'static Entry>,
    pub(crate) recombine: &'static Entry,
    pub(crate) join: &'static Entry,
    /// Blinds operands.
    pub(crate) blind: &'static Entry,
}

impl CrtClass {
    /// All kernels of the class.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.halves.iter().copied().chain(self.short())
    }

    /// The kernels beside those for the half exponentiations.
    fn short(&self) -> [&'static Entry; 3] {
        [self.recombine, self.join, self.blind]
    }

    /// All classes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let kernels = move |operation, bits| {
            all().filter(move |entry| entry.operation == operation && entry.bits == bits)
        };
        let joins = all().filter(|entry| entry.operation == Operation::CrtJoin);
        joins.filter_map(move |join| {
            let prime = join.bits / 2;
            Some(Self {
                bits: join.bits,
                halves: kernels(Operation::CrtHalves, prime).collect(),
                recombine: kernels(Operation::CrtRecombine, prime).next()?,
                join,
                blind: kernels(Operation::CrtBlind, join.bits).next()?,
            })
        })
    }

    /// The class, restricted to kernels for moduli of `n_bits` bits with factors of `prime_bits`
    /// bits, which are also the widths of the Montgomery parameters. `None` if no kernel for the
    /// halves is left.
    pub(crate) fn taking(mut self, n_bits: u32, prime_bits: u32) -> Option<Self> {
        let takes = |entry: &Entry, bits| (entry.min_r2_bits..=entry.bits).contains(&bits);
        self.halves.retain(|entry| takes(entry, prime_bits));
        let fits = !self.halves.is_empty()
            && takes(self.recombine, prime_bits)
            && takes(self.join, n_bits)
            && takes(self.blind, n_bits);
        fits.then_some(self)
    }

    /// Whether a device can run the class.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.halves.iter().any(|entry| entry.runs_on(device))
            && self.short().iter().all(|entry| entry.runs_on(device))
    }

    /// The kind of the records of its moduli: p, q, their exponents, qInv and two constants, n and
    /// its constant.
    pub(crate) fn records(&self) -> RecordKind {
        RecordKind {
            family: self.join.image.key.family,
            bits: self.bits,
            words: 11 * self.prime_words(),
        }
    }

    /// 64-bit words in a factor of n.
    fn prime_words(&self) -> usize {
        self.bits as usize / 128
    }

    /// Writes the whole record of a key.
    pub(crate) fn write_record(&self, modulus: &CrtModulus<'_>, record: &mut [u64]) {
        let words = self.prime_words();
        let (primes, n) = record.split_at_mut(7 * words);
        let parts = [
            modulus.p.limbs,
            modulus.p.r2,
            modulus.exponent_p.as_limbs(),
            modulus.q.limbs,
            modulus.q.r2,
            modulus.exponent_q.as_limbs(),
            modulus.qinv.as_limbs(),
        ];
        for (place, part) in primes.chunks_exact_mut(words).zip(parts) {
            copy_in(part, place);
        }
        let parts = [modulus.n.limbs, modulus.n.r2];
        for (place, part) in n.chunks_exact_mut(2 * words).zip(parts) {
            copy_in(part, place);
        }
    }
}

/// The kernels with which a device computes its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtKernels {
    pub(crate) halves: Grid,
    pub(crate) recombine: Grid,
    pub(crate) join: Grid,
    pub(crate) blind: Grid,
    /// The kind of the records of the moduli.
    pub(crate) records: RecordKind,
}

/// The operands of `factor * base^exponent`, and the numbers that are copied to the device for
/// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    /// One number m is both base and factor.
    Same,
    /// Two numbers: the base, then the factor.
    Given,
    /// Two numbers, m and r. With the public exponent e, the factor is `m r^(e - 1)`, and the base
    /// is r times the factor.
    Blinded,
}

/// The public properties that all keys of a batch share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CrtShape {
    /// The width of n in bits, and of both primes: also those of their Montgomery parameters.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// An upper bound for the length of the exponents modulo p and q, in bits.
    pub(crate) exponent_bits: u32,
    /// e, odd and above 1.
    pub(crate) public_exponent: u64,
}

/// A chunk of products of powers modulo n. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    pub(crate) shape: CrtShape,
    pub(crate) window: Window,
    pub(crate) operands: Operands,
}

impl CrtKernels {
    /// Lays out a chunk in memory, and makes its launches.
    pub(crate) fn exponentiate(&self, chunk: &CrtChunk) -> Work {
        check(self, chunk);
        let CrtChunk { count, shape, .. } = *chunk;
        let words = self.halves.entry.words();
        let blocks = self.halves.blocks(2 * count);
        let len = 2 * words * count;

        let mut layout = Layout::default();
        let first = layout.input(len);
        let second = layout.input(match chunk.operands {
            Operands::Same => 0,
            Operands::Given | Operands::Blinded => len,
        });
        let indices = layout.input(count.div_ceil(2));
        let halves = layout.intermediate(len);
        let h = layout.intermediate(words * count);
        let product = layout.output(len);
        let scratch = layout.scratch(scratch_words(self.halves.entry, blocks, chunk.window));
        let (base, factor) = match chunk.operands {
            Operands::Same => (first, first),
            Operands::Given => (first, second),
            // Lanes past the end have places of their own.
            Operands::Blinded => {
                let per_block = self.blind.entry.image.instances_per_block;
                let len = 2 * words * count.next_multiple_of(per_block);
                (layout.intermediate(len), layout.intermediate(len))
            }
        };

        let records = Argument::Records(self.records);
        let index = Argument::RecordIndices {
            part: indices,
            count,
        };
        let halves_arguments = vec![
            Argument::Words(halves),
            Argument::Words(base),
            records,
            index,
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(shape.exponent_bits),
            Argument::U32(shape.prime_bits),
            Argument::U32(chunk.window.bits()),
        ];
        let recombine_arguments = vec![
            Argument::Words(h),
            Argument::Words(halves),
            records,
            index,
            Argument::U32(count as u32),
            Argument::U32(shape.prime_bits),
        ];
        let join_arguments = vec![
            Argument::Words(product),
            Argument::Words(halves),
            Argument::Words(h),
            Argument::Words(factor),
            records,
            index,
            Argument::U32(count as u32),
            Argument::U32(shape.n_bits),
        ];
        let short = |grid: Grid, arguments| {
            // SAFETY: these are the parameters of `rsa_BITS_garner`, `rsa_BITS_join` and
            // `rsa_BITS_blind`, each with its own grid, checked above; every part has the length
            // that its buffer must have.
            unsafe { Launch::new(&grid.entry.image, grid.blocks(count), arguments) }.short()
        };
        let mut launches = Vec::with_capacity(4);
        if chunk.operands == Operands::Blinded {
            let blind_arguments = vec![
                Argument::Words(factor),
                Argument::Words(base),
                Argument::Words(first),
                Argument::Words(second),
                records,
                index,
                Argument::U64(shape.public_exponent - 1),
                Argument::U32(count as u32),
                Argument::U32(shape.n_bits),
            ];
            launches.push(short(self.blind, blind_arguments));
        }
        let image = &self.halves.entry.image;
        // SAFETY: as above, for `rsa_BITS_exp_tT`.
        launches.push(unsafe { Launch::new(image, blocks, halves_arguments) });
        launches.push(short(self.recombine, recombine_arguments));
        launches.push(short(self.join, join_arguments));
        let records = layout.input(0);
        Work {
            layout,
            numbers: [first, second],
            indices,
            records,
            launches,
        }
    }
}

/// Panics unless the kernels belong to one class and accept the chunk's numbers.
fn check(kernels: &CrtKernels, chunk: &CrtChunk) {
    let CrtKernels {
        halves,
        recombine,
        join,
        blind,
        ..
    } = kernels;
    let [halves, recombine, join, blind] = [halves, recombine, join, blind].map(|grid| grid.entry);
    check_operation(halves, Operation::CrtHalves);
    check_operation(recombine, Operation::CrtRecombine);
    check_operation(join, Operation::CrtJoin);
    check_operation(blind, Operation::CrtBlind);
    check_count(chunk.count);
    check_r2_bits(halves, chunk.shape.prime_bits);
    check_r2_bits(recombine, chunk.shape.prime_bits);
    check_r2_bits(join, chunk.shape.n_bits);
    check_r2_bits(blind, chunk.shape.n_bits);
    assert!(
        chunk.shape.exponent_bits <= halves.bits,
        "the exponents are too long"
    );
    assert!(
        chunk.shape.public_exponent > 1 && chunk.shape.public_exponent % 2 == 1,
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
