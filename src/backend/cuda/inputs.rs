//! How the instances of a chunk become the inputs of kernels whose instances have a modulus each: two numbers of each instance, a
//! record of each modulus, and which of them an instance has.

use alloc::vec::Vec;
use core::ops::Range;
use core::{mem, ptr};
use std::sync::{Mutex, PoisonError};

use super::group::{Group, Instance};
use super::runtime::layout::Part;
use super::runtime::pipeline::Stop;
use super::runtime::slot::Outgoing;
use super::words::{COPIED_AT_A_TIME, HostPool, write_indices};
use crate::Error;

/// The moduli of a chunk: one for each run of instances that share a reference, which is public.
pub(super) struct Moduli {
    /// How many runs begin before each part of the chunk, and in the end how many there are. A part is what a thread copies at a
    /// time. That is little to remember, and threads find the runs of their parts themselves.
    before: Vec<usize>,
}

impl Moduli {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.before.last().copied().unwrap_or(0)
    }
}

impl<I: Instance> Group<'_, I> {
    pub(super) fn moduli(&self, chunk: &Range<usize>) -> Moduli {
        let mut before = Vec::with_capacity(chunk.len().div_ceil(COPIED_AT_A_TIME) + 1);
        let (mut count, mut last) = (0, ptr::null());
        for (i, member) in chunk.clone().enumerate() {
            if i.is_multiple_of(COPIED_AT_A_TIME) {
                before.push(count);
            }
            let params = ptr::from_ref(self.instance(member).params());
            count += usize::from(params != last);
            last = params;
        }
        before.push(count);
        Moduli { before }
    }

    /// Writes and sends the inputs of a chunk, whose parts follow one another: has `write_numbers` fill the places of the two numbers of each instance, given with its
    /// member, and `write_modulus` that of each modulus, given an instance that has it, and fills those of the indices, which are the
    /// number of its modulus for each instance, two to a word. On several threads if there are many.
    ///
    /// # Errors
    ///
    /// One that `write_numbers` has, after which nothing is sent.
    pub(super) fn fill(
        &self,
        chunk: &Range<usize>,
        moduli: &Moduli,
        mut inputs: Outgoing<'_>,
        [first, second, records, modulus_index]: [Part; 4],
        threads: HostPool<'_>,
        write_numbers: impl Fn(usize, &I, [&mut [u64]; 2]) -> Result<(), Error> + Sync,
        write_modulus: impl Fn(&I, &mut [u64]) + Sync,
    ) -> Result<(), Stop> {
        let mut numbers = inputs.take_through(second);
        let places = numbers.places([first, second]);
        self.fill_numbers(chunk, places, threads, write_numbers)
            .map_err(Stop::Batch)?;
        // They are on their way while the moduli are being written.
        numbers.send()?;
        let places = inputs.places([records, modulus_index]);
        self.fill_moduli(chunk, moduli, places, threads, write_modulus);
        inputs.send()?;
        Ok(())
    }

    fn fill_numbers(
        &self,
        chunk: &Range<usize>,
        [first, second]: [&mut [u64]; 2],
        threads: HostPool<'_>,
        write: impl Fn(usize, &I, [&mut [u64]; 2]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let found = Mutex::new(Ok(()));
        let sizes = [&*first, second].map(|words| (words.len() / chunk.len().max(1)).max(1));
        let parts = first
            .chunks_mut(COPIED_AT_A_TIME * sizes[0])
            .zip(second.chunks_mut(COPIED_AT_A_TIME * sizes[1]))
            .zip(chunk.clone().step_by(COPIED_AT_A_TIME));
        threads.each_item(parts.collect(), |((first, second), start)| {
            let pairs = first
                .chunks_exact_mut(sizes[0])
                .zip(second.chunks_exact_mut(sizes[1]));
            for (member, (first, second)) in (start..).zip(pairs) {
                let written = write(member, self.instance(member), [first, second]);
                if written.is_err() {
                    *found.lock().unwrap_or_else(PoisonError::into_inner) = written;
                }
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill_moduli(
        &self,
        chunk: &Range<usize>,
        moduli: &Moduli,
        [mut records, mut modulus_index]: [&mut [u64]; 2],
        threads: HostPool<'_>,
        write: impl Fn(&I, &mut [u64]) + Sync,
    ) {
        let size = records.len() / moduli.count().max(1);
        let starts = chunk.clone().step_by(COPIED_AT_A_TIME);
        let parts = starts.zip(moduli.before.windows(2)).map(|(start, runs)| {
            let members = start..(start + COPIED_AT_A_TIME).min(chunk.end);
            let modulus_index = take(&mut modulus_index, members.len().div_ceil(2));
            let records = take(&mut records, (runs[1] - runs[0]) * size);
            (members, runs[0], records, modulus_index)
        });
        let parts: Vec<_> = parts.collect();
        threads.each_item(parts, |(members, before, records, modulus_index)| {
            let mut records = records.chunks_exact_mut(size.max(1));
            let mut last = match members.start == chunk.start {
                true => ptr::null(),
                false => ptr::from_ref(self.instance(members.start - 1).params()),
            };
            let mut runs = before as u32;
            let indices = members.map(|member| {
                let instance = self.instance(member);
                let params = ptr::from_ref(instance.params());
                if params != mem::replace(&mut last, params) {
                    runs += 1;
                    records
                        .next()
                        .into_iter()
                        .for_each(|record| write(instance, record));
                }
                runs - 1
            });
            write_indices(indices, modulus_index);
        });
    }
}

/// The first `len` words, which are taken away.
fn take<'a>(words: &mut &'a mut [u64], len: usize) -> &'a mut [u64] {
    let (head, tail) = mem::take(words).split_at_mut(len);
    *words = tail;
    head
}

#[cfg(test)]
mod tests {
    use super::super::runtime::layout::Layout;
    use super::*;
    use crate::ModMul;
    use alloc::vec;
    use crypto_bigint::modular::FixedMontyParams;
    use crypto_bigint::{Odd, U64};

    /// Runs within parts, across them and as long as them, and none: each place is filled with what belongs there.
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
                .map(|i| ModMul::new(&zero, &zero, &moduli[i / run % 1000]))
                .collect();
            let Some(group) = Group::supposed(&batch) else {
                panic!("all are equally wide");
            };
            for chunk in [0..1, 0..batch.len(), 5..5 + PART, 7..2 * PART + 8] {
                for threads in [HostPool(None), HostPool(Some(&pool))] {
                    let moduli = group.moduli(&chunk);
                    let first = chunk.start / run;
                    let runs = (chunk.end - 1) / run - first + 1;
                    assert_eq!(moduli.count(), runs, "{run}, {chunk:?}");
                    let len = chunk.len();
                    let mut layout = Layout::default();
                    let lens = [len, 2 * len, 2 * runs, len.div_ceil(2)];
                    let parts = lens.map(|len| layout.input(len));
                    let mut words = vec![u64::MAX; parts[3].range().end];
                    let index_of = |instance: &ModMul<'_, U64>| {
                        let mut others = batch.iter();
                        others.position(|other| ptr::eq(other, instance)).unwrap() as u64
                    };
                    let write_numbers = |member, _: &_, numbers: [&mut [u64]; 2]| {
                        numbers.map(|words| words.fill(member as u64));
                        Ok(())
                    };
                    let write_modulus =
                        |instance: &_, record: &mut [u64]| record.fill(index_of(instance));
                    let filled = group.fill(
                        &chunk,
                        &moduli,
                        Outgoing::nowhere(&mut words),
                        parts,
                        threads,
                        write_numbers,
                        write_modulus,
                    );
                    assert!(filled.is_ok());
                    let [a, b, records, modulus_index] =
                        parts.map(|part| words[part.range()].iter().copied());
                    let members = || chunk.clone().map(|member| member as u64);
                    assert!(a.eq(members()));
                    assert!(b.eq(members().flat_map(|member| [member; 2])));
                    let firsts = members().filter(|&member| {
                        let member = member as usize;
                        member == chunk.start || member.is_multiple_of(run)
                    });
                    assert!(records.eq(firsts.flat_map(|member| [member; 2])));
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
