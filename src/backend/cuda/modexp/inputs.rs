//! The inputs of a chunk of exponentiations: base and exponent of each instance, a record for each
//! modulus, and for each instance the index of its record.

use alloc::vec::Vec;
use core::iter::repeat_n;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::monty::{ModulusRef, power_of_two};
use crypto_bigint::Unsigned;

use super::{ModExp, ModExpJob};
use crate::backend::cuda::family::ModExpWork;
use crate::backend::cuda::family::entry::Entry;
use crate::backend::cuda::runtime::layout::places;
use crate::backend::cuda::words::{COPIED_AT_A_TIME, HostPool, NonTemporal, write_indices};

/// Moduli whose records a thread writes at a time. Some need `R^2` of another width, which takes much
/// longer than a copy.
const MODULI_AT_A_TIME: usize = 32;

impl<U: Unsigned + Sync + Send> ModExpJob<'_, U> {
    /// Writes the inputs of a chunk, on several threads if it is large. Returns the number of words
    /// up to the last record. There is a record for each run of instances that share a reference to
    /// a modulus, which is public.
    pub(super) fn fill(
        &self,
        entry: &Entry,
        chunk: &Range<usize>,
        work: &ModExpWork,
        input: &mut [u64],
    ) -> usize {
        let parts = [work.base, work.exponent, work.modulus_index, work.moduli];
        let [bases, exponents, indices, records] = places(input, parts);
        let chunk = &self.batch[chunk.clone()];
        let runs = chunk.chunk_by(|a, b| ptr::eq(a.params, b.params));
        let moduli = runs.map(|run| (ModulusRef::of(run[0].params), run.len()));
        let moduli: Vec<_> = moduli.collect();
        self.write_numbers(entry, chunk, [bases, exponents]);
        write_moduli(entry, &moduli, [indices, records], self.threads);
        work.moduli.range().start + moduli.len() * 2 * entry.words()
    }

    fn write_numbers(
        &self,
        entry: &Entry,
        chunk: &[ModExp<'_, U>],
        [bases, exponents]: [&mut [u64]; 2],
    ) {
        let size = entry.words();
        let [bases, exponents] =
            [bases, exponents].map(|words| words.chunks_mut(COPIED_AT_A_TIME * size));
        let parts = chunk.chunks(COPIED_AT_A_TIME).zip(bases.zip(exponents));
        let parts = parts.collect();
        self.threads
            .each_item(parts, |(instances, (bases, exponents))| {
                let [bases, exponents] =
                    [bases, exponents].map(|words| words.chunks_exact_mut(size));
                NonTemporal::with(|stores| {
                    for (instance, (base, exponent)) in instances.iter().zip(bases.zip(exponents)) {
                        stores.copy_in(instance.base.as_limbs(), base);
                        stores.copy_in(instance.exponent.as_limbs(), exponent);
                    }
                });
            });
    }
}

/// Writes a record for each modulus, and for each instance the index of its record. A modulus comes
/// with the number of consecutive instances that have it.
pub(in super::super) fn write_moduli(
    entry: &Entry,
    moduli: &[(ModulusRef<'_>, usize)],
    [indices, records]: [&mut [u64]; 2],
    threads: HostPool<'_>,
) {
    let size = 2 * entry.words();
    let parts = records.chunks_mut(MODULI_AT_A_TIME * size);
    let parts = moduli.chunks(MODULI_AT_A_TIME).zip(parts).collect();
    threads.each_item(parts, |(moduli, records): (&[_], &mut [_])| {
        NonTemporal::with(|stores| {
            for (&(modulus, _), record) in moduli.iter().zip(records.chunks_exact_mut(size)) {
                write_modulus(entry, modulus, record, stores);
            }
        });
    });
    let each = (0..)
        .zip(moduli)
        .flat_map(|(index, &(_, len))| repeat_n(index, len));
    write_indices(each, indices);
}

/// Writes the record of a modulus: the modulus, and `2^(2 * r2_bits)` modulo it.
pub(in super::super) fn write_modulus<'w>(
    entry: &Entry,
    modulus: ModulusRef<'_>,
    record: &'w mut [u64],
    stores: &mut NonTemporal<'w>,
) {
    let bits = modulus.bits();
    let r2_bits = entry.r2_bits(bits);
    let wider = (r2_bits != bits).then(|| power_of_two(2 * r2_bits, modulus.limbs, 0));
    let r2 = wider.as_deref().map_or(modulus.r2, Vec::as_slice);
    let (first, second) = record.split_at_mut(entry.words());
    stores.copy_in(modulus.limbs, first);
    stores.copy_in(r2, second);
}
