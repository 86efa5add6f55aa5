//! How the instances of a chunk become the inputs of kernels whose instances have a modulus each: two numbers of each instance, a
//! record of each modulus, and which of them an instance has.

use alloc::vec::Vec;
use core::ops::Range;
use core::{mem, ptr};

use super::group::{Group, Instance};
use super::words::{COPIED_AT_A_TIME, HostPool, write_indices};

/// The moduli of a chunk: one for each run of instances that share a reference, which is public.
pub(super) struct Moduli {
    /// How many runs begin before each part of the chunk, and in the end how many there are. A part is what a thread copies at a
    /// time. That is little to remember, and threads find the runs of their parts themselves.
    before: Vec<usize>,
    /// How many instances the chunk has.
    len: usize,
}

/// What some parts of a chunk have.
pub(super) struct Extent {
    /// Instances.
    pub(super) members: usize,
    /// Runs that begin in them.
    pub(super) runs: usize,
}

impl Moduli {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.before.last().copied().unwrap_or(0)
    }

    /// All parts of the chunk.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.before.len() - 1
    }

    /// The first half of the parts, of which there may be none, and the others.
    pub(super) fn halves(&self) -> [Range<usize>; 2] {
        let all = self.all();
        let middle = all.end / 2;
        [0..middle, middle..all.end]
    }

    pub(super) fn extent(&self, parts: &Range<usize>) -> Extent {
        let [start, end] = [parts.start, parts.end].map(|part| part * COPIED_AT_A_TIME);
        Extent {
            members: end.min(self.len) - start,
            runs: self.before[parts.end] - self.before[parts.start],
        }
    }
}

/// Where the inputs go.
pub(super) struct Inputs<'a> {
    /// The first numbers of all instances, and the second ones.
    pub(super) numbers: [&'a mut [u64]; 2],
    pub(super) records: &'a mut [u64],
    /// The number of its record for each instance, two to a word.
    pub(super) modulus_index: &'a mut [u64],
}

/// Where those of one instance go.
pub(super) struct Places<'a> {
    pub(super) numbers: [&'a mut [u64]; 2],
    /// If it has another modulus than the instance before it.
    pub(super) record: Option<&'a mut [u64]>,
}

/// The inputs of some instances that follow one another.
struct InputsOf<'a> {
    members: Range<usize>,
    inputs: Inputs<'a>,
    /// How many runs begin before them.
    before: usize,
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
        Moduli {
            before,
            len: chunk.len(),
        }
    }

    /// Has `write` fill the places of each instance in some parts of a chunk, on several threads if there are many, and fills those of the
    /// indices. The inputs are those of these parts.
    pub(super) fn fill(
        &self,
        parts: Range<usize>,
        chunk: &Range<usize>,
        moduli: &Moduli,
        inputs: Inputs<'_>,
        threads: HostPool<'_>,
        write: impl Fn(usize, &I, Places<'_>) + Sync,
    ) {
        let Inputs {
            mut numbers,
            mut records,
            mut modulus_index,
        } = inputs;
        // Where there are no instances, or no runs, there are no words, and nothing has a size.
        let Extent { members, runs } = moduli.extent(&parts);
        let sizes = numbers.each_ref().map(|words| words.len() / members.max(1));
        let record_size = records.len() / runs.max(1);
        let parts = parts.map(|part| {
            let start = chunk.start + part * COPIED_AT_A_TIME;
            let members = start..(start + COPIED_AT_A_TIME).min(chunk.end);
            let runs = &moduli.before[part..part + 2];
            let [first, second] = &mut numbers;
            let inputs = Inputs {
                numbers: [
                    take(first, members.len() * sizes[0]),
                    take(second, members.len() * sizes[1]),
                ],
                records: take(&mut records, (runs[1] - runs[0]) * record_size),
                modulus_index: take(&mut modulus_index, members.len().div_ceil(2)),
            };
            InputsOf {
                members,
                inputs,
                before: runs[0],
            }
        });
        let parts: Vec<_> = parts.collect();
        threads.each_item(parts, |part| {
            self.fill_part(chunk.start, sizes, record_size, part, &write);
        });
    }

    fn fill_part(
        &self,
        first: usize,
        sizes: [usize; 2],
        record_size: usize,
        part: InputsOf<'_>,
        write: impl Fn(usize, &I, Places<'_>),
    ) {
        let InputsOf {
            members,
            inputs,
            before: mut runs,
        } = part;
        let [a, b] = inputs.numbers;
        let pairs = a
            .chunks_exact_mut(sizes[0])
            .zip(b.chunks_exact_mut(sizes[1]));
        let mut records = inputs.records.chunks_exact_mut(record_size.max(1));
        let mut last = match members.start == first {
            true => ptr::null(),
            false => ptr::from_ref(self.instance(members.start - 1).params()),
        };
        let indices = members.zip(pairs).map(|(member, (a, b))| {
            let instance = self.instance(member);
            let params = ptr::from_ref(instance.params());
            let is_new = params != mem::replace(&mut last, params);
            runs += usize::from(is_new);
            let places = Places {
                numbers: [a, b],
                record: is_new.then(|| records.next()).flatten(),
            };
            write(member, instance, places);
            runs as u32 - 1
        });
        write_indices(indices, inputs.modulus_index);
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
                    let [mut a, mut b] = [1, 2].map(|size| vec![u64::MAX; size * len]);
                    let mut records = vec![u64::MAX; 2 * runs];
                    let mut modulus_index = vec![u64::MAX; len.div_ceil(2)];
                    let mut rest = [&mut a[..], &mut b, &mut records, &mut modulus_index];
                    for parts in moduli.halves() {
                        let Extent { members, runs } = moduli.extent(&parts);
                        let lens = [members, 2 * members, 2 * runs, members.div_ceil(2)];
                        let [a, b, records, modulus_index] =
                            core::array::from_fn(|i| take(&mut rest[i], lens[i]));
                        let inputs = Inputs {
                            numbers: [a, b],
                            records,
                            modulus_index,
                        };
                        let write = |member, _: &_, places: Places<'_>| {
                            let all = places.numbers.into_iter().chain(places.record);
                            all.for_each(|words| words.fill(member as u64));
                        };
                        group.fill(parts, &chunk, &moduli, inputs, threads, write);
                    }
                    assert!(rest.iter().all(|words| words.is_empty()));
                    let members = || chunk.clone().map(|member| member as u64);
                    assert!(a.into_iter().eq(members()));
                    assert!(b.into_iter().eq(members().flat_map(|member| [member; 2])));
                    let firsts = members().filter(|&member| {
                        let member = member as usize;
                        member == chunk.start || member.is_multiple_of(run)
                    });
                    assert!(
                        records
                            .into_iter()
                            .eq(firsts.flat_map(|member| [member; 2]))
                    );
                    let index = |member: usize| (member / run - first) as u64;
                    for (word, pair) in modulus_index.into_iter().zip(chunk.clone().step_by(2)) {
                        let second = (pair + 1 < chunk.end).then(|| index(pair + 1));
                        assert_eq!(word, index(pair) | second.unwrap_or(0) << 32);
                    }
                }
            }
        }
    }
}
