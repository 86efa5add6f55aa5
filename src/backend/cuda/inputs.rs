//! Turns the instances of a chunk into kernel inputs: two numbers for each instance, a record for
//! each modulus, and for each instance the index of its record.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::{mem, ptr};

use crypto_bigint::modular::MontyParams;
use cudarc::driver::DriverError;

use super::group::{Group, Instance};
use super::runtime::layout::Part;
use super::runtime::slot::Outgoing;
use super::words::{COPIED_AT_A_TIME, HostPool, NonTemporal, write_indices};

/// The places of a chunk's inputs, in this order.
pub(super) struct Parts {
    /// Two numbers of each instance.
    pub(super) numbers: [Part; 2],
    /// For each instance the index of its modulus record, two to a word.
    pub(super) modulus_index: Part,
    /// Space for one modulus record for each instance. The number of records is that of the runs of
    /// instances that share a reference, which is public.
    pub(super) records: Part,
}

impl<I: Instance> Group<'_, I> {
    /// Writes and sends the inputs of a chunk, on several threads if it is large.
    ///
    /// `write_numbers` fills the places of an instance's two numbers, given its member index.
    /// `write_modulus` fills the record of a modulus, given an instance that has it. The indices
    /// are filled here.
    pub(super) fn fill(
        &self,
        chunk: &Range<usize>,
        mut inputs: Outgoing<'_>,
        parts: &Parts,
        threads: HostPool<'_>,
        write_numbers: impl for<'w> Fn(usize, &I, [&'w mut [u64]; 2], &mut NonTemporal<'w>) + Sync,
        write_modulus: impl for<'w> Fn(&I, &'w mut [u64], &mut NonTemporal<'w>) + Sync,
    ) -> Result<(), DriverError> {
        let mut numbers = inputs.take_to(parts.numbers[1].range().end);
        let places = numbers.places(parts.numbers);
        let runs = self.fill_numbers(chunk, places, threads, write_numbers);
        // The numbers are copied while the moduli are written.
        numbers.send()?;
        let Range { start, end } = parts.records.range();
        let size = (end - start) / chunk.len();
        let places = inputs.places([parts.modulus_index, parts.records]);
        self.fill_moduli(chunk, &runs, places, size, threads, write_modulus);
        let of_moduli = inputs.take_to(start + size * runs.iter().sum::<usize>());
        of_moduli.send()?;
        inputs.leave_out();
        Ok(())
    }

    /// Writes the numbers, and returns the number of runs that begin in each part of the chunk. One
    /// thread copies a part at a time.
    fn fill_numbers(
        &self,
        chunk: &Range<usize>,
        [first, second]: [&mut [u64]; 2],
        threads: HostPool<'_>,
        write: impl for<'w> Fn(usize, &I, [&'w mut [u64]; 2], &mut NonTemporal<'w>) + Sync,
    ) -> Vec<usize> {
        let sizes = [&*first, second].map(|words| words.len() / chunk.len());
        let mut runs = vec![0; chunk.len().div_ceil(COPIED_AT_A_TIME)];
        let parts = first
            .chunks_mut(COPIED_AT_A_TIME * sizes[0])
            .zip(second.chunks_mut(COPIED_AT_A_TIME * sizes[1]))
            .zip(chunk.clone().step_by(COPIED_AT_A_TIME).zip(&mut runs));
        threads.each_item(parts.collect(), |((first, second), (start, runs_here))| {
            let pairs = first
                .chunks_exact_mut(sizes[0])
                .zip(second.chunks_exact_mut(sizes[1]));
            let mut last = self.params_before(start, chunk);
            // A local count: the counts of other threads share its cache line.
            let mut runs = 0;
            NonTemporal::with(|stores| {
                for (member, (first, second)) in (start..).zip(pairs) {
                    let instance = self.instance(member);
                    let params = ptr::from_ref(instance.params());
                    runs += usize::from(params != mem::replace(&mut last, params));
                    write(member, instance, [first, second], stores);
                }
            });
            *runs_here = runs;
        });
        runs
    }

    /// Writes the indices, and the records of `size` words each.
    fn fill_moduli(
        &self,
        chunk: &Range<usize>,
        runs: &[usize],
        [modulus_index, mut records]: [&mut [u64]; 2],
        size: usize,
        threads: HostPool<'_>,
        write: impl for<'w> Fn(&I, &'w mut [u64], &mut NonTemporal<'w>) + Sync,
    ) {
        let mut before = 0;
        let parts = modulus_index
            .chunks_mut(COPIED_AT_A_TIME / 2)
            .zip(chunk.clone().step_by(COPIED_AT_A_TIME).zip(runs))
            .map(|(modulus_index, (start, runs))| {
                before += runs;
                let records = take(&mut records, runs * size);
                (start, before - runs, records, modulus_index)
            });
        let parts: Vec<_> = parts.collect();
        threads.each_item(parts, |(start, before, records, modulus_index)| {
            let members = start..(start + COPIED_AT_A_TIME).min(chunk.end);
            let mut records = records.chunks_exact_mut(size);
            let mut last = self.params_before(start, chunk);
            let mut runs = before as u32;
            NonTemporal::with(|stores| {
                let indices = members.map(|member| {
                    let instance = self.instance(member);
                    let params = ptr::from_ref(instance.params());
                    if params != mem::replace(&mut last, params) {
                        runs += 1;
                        let record = records.next().expect("a record for each run");
                        write(instance, record, stores);
                    }
                    runs - 1
                });
                write_indices(indices, modulus_index);
            });
        });
    }

    /// The modulus of the instance before a member, if that is in the chunk.
    fn params_before(&self, member: usize, chunk: &Range<usize>) -> *const MontyParams<I::Number> {
        match member == chunk.start {
            true => ptr::null(),
            false => self.instance(member - 1).params(),
        }
    }
}

/// Removes and returns the first `len` words.
fn take<'a>(words: &mut &'a mut [u64], len: usize) -> &'a mut [u64] {
    let (head, tail) = mem::take(words).split_at_mut(len);
    *words = tail;
    head
}

#[cfg(test)]
mod tests {
    use super::super::runtime::layout::Layout;
    use super::*;
    use alloc::vec;
    use batch_modexp_core::ModExp;
    use crypto_bigint::modular::FixedMontyParams;
    use crypto_bigint::{Odd, U64};

    /// Every place is filled correctly, for runs within parts, across parts, as long as parts, and
    /// of no instances.
    #[test]
    fn every_place_is_filled() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
        let pool = pool.unwrap();
        let moduli: Vec<_> = (0..1000u64)
            .map(|i| FixedMontyParams::new(Odd::new(U64::from(2 * i + 3)).unwrap()))
            .collect();
        let zero = U64::ZERO;
        const PART: usize = COPIED_AT_A_TIME;
        for run in [1, 2, 3, 100, PART - 1, PART, PART + 1, 3 * PART] {
            let batch: Vec<_> = (0..3 * PART + 9)
                .map(|i| ModExp::new(&zero, &zero, &moduli[i / run % 1000]))
                .collect();
            let [group] = &Group::by_width(&batch, HostPool(None))[..] else {
                panic!("all are equally wide");
            };
            for chunk in [0..1, 0..batch.len(), 5..5 + PART, 7..2 * PART + 8] {
                for threads in [HostPool(None), HostPool(Some(&pool))] {
                    let first = chunk.start / run;
                    let runs = (chunk.end - 1) / run - first + 1;
                    let len = chunk.len();
                    let mut layout = Layout::default();
                    let lens = [len, 2 * len, len.div_ceil(2), 2 * len];
                    let [a, b, modulus_index, records] = lens.map(|len| layout.input(len));
                    let parts = Parts {
                        numbers: [a, b],
                        modulus_index,
                        records,
                    };
                    let mut words = vec![u64::MAX; records.range().end];
                    let index_of = |instance: &ModExp<'_, U64>| {
                        let mut others = batch.iter();
                        others.position(|other| ptr::eq(other, instance)).unwrap() as u64
                    };
                    let filled = group.fill(
                        &chunk,
                        Outgoing::nowhere(&mut words),
                        &parts,
                        threads,
                        |member, _, numbers, _| {
                            numbers
                                .into_iter()
                                .for_each(|words| words.fill(member as u64));
                        },
                        |instance, record, _| record.fill(index_of(instance)),
                    );
                    assert!(filled.is_ok());
                    let [a, b, modulus_index, mut records] = [a, b, modulus_index, records]
                        .map(|part| words[part.range()].iter().copied());
                    let members = || chunk.clone().map(|member| member as u64);
                    assert!(a.eq(members()));
                    assert!(b.eq(members().flat_map(|member| [member; 2])));
                    let firsts = members().filter(|&member| {
                        let member = member as usize;
                        member == chunk.start || member.is_multiple_of(run)
                    });
                    let expected = firsts.flat_map(|member| [member; 2]);
                    assert!(records.by_ref().take(2 * runs).eq(expected));
                    assert!(records.all(|word| word == u64::MAX));
                    let index = |member: usize| (member / run - first) as u64;
                    for (word, pair) in modulus_index.zip(chunk.clone().step_by(2)) {
                        let second = (pair + 1 < chunk.end).then(|| index(pair + 1));
                        assert_eq!(word, index(pair) | second.unwrap_or(0) << 32);
                    }
                }
            }
        }
    }
}
