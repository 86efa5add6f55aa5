//! The entries of a table as a device job: exponentiations of one base, whose results are operands.

use core::cmp::Ordering;
use core::ops::Range;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::width::width;
use crypto_bigint::{BoxedUint, Resize, Unsigned};

use super::Inputs;
use crate::backend::cuda::family::Entry;
use crate::backend::cuda::family::fixed::{self, TableShape};
use crate::backend::cuda::family::modexp::{ModExpChunk, ModExpWork};
use crate::backend::cuda::plan::Plan;
use crate::backend::cuda::powers::{Share, write_modulus};
use crate::backend::cuda::runtime::device::Call;
use crate::backend::cuda::runtime::layout::{Part, places};
use crate::backend::cuda::runtime::pipeline::{Job, Prepared, Stop};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::slot::Slot;
use crate::backend::cuda::words::{HostPool, NonTemporal, copy_in};

/// The entries of all rows. The results are operands.
pub(super) struct EntriesJob<'a, U: Unsigned> {
    pub(super) kernel: &'static Entry,
    pub(super) shape: TableShape,
    pub(super) inputs: &'a Inputs<'a, U>,
    pub(super) threads: HostPool<'a>,
}

impl<U: Unsigned> EntriesJob<'_, U> {
    fn plan(&self, device: &DeviceInfo, count: usize) -> Option<Plan> {
        let (entry, bits) = (self.kernel, self.shape.exponent_bits);
        entry.runs_on(device).then(|| Plan {
            entry,
            window: entry.family.best_window(bits),
            milliseconds: entry.milliseconds(device, count, bits),
        })
    }

    /// The width of the modulus.
    fn bits(&self) -> u32 {
        width(self.inputs.params.modulus().as_ref())
    }

    /// The base of an entry, and its exponent, which is public. An entry of row j for the digit d is
    /// the power with the exponent `d 2^(j w)`.
    ///
    /// Signed exponents are raised by half of their range, for which row 0 compensates: there the
    /// exponent is `d - 2^(exponent_bits - 1)`, a power of the inverse if it is negative.
    fn operands(&self, number: usize) -> (&U, BoxedUint) {
        let bits = self.shape.exponent_bits;
        let (row, digit) = (number / fixed::ENTRIES, number % fixed::ENTRIES);
        let shifted = |number: u64, shift| {
            // Bits above the longest exponents are not used.
            let number = BoxedUint::from(number).resize(self.kernel.bits);
            let shifted = number.shl_vartime(shift);
            shifted.expect("a row begins within the longest exponents")
        };
        let digit = shifted(digit as u64, row as u32 * fixed::WINDOW_BITS);
        let (Some(inverse), 0, Some(top)) = (self.inputs.inverse, row, bits.checked_sub(1)) else {
            return (self.inputs.base, digit);
        };
        let half = shifted(1, top);
        match digit.cmp_vartime(&half) {
            Ordering::Less => (inverse, half.wrapping_sub(&digit)),
            _ => (self.inputs.base, digit.wrapping_sub(&half)),
        }
    }

    /// Writes the inputs of a chunk. Returns their number of words.
    fn fill(&self, chunk: &Range<usize>, work: &ModExpWork, input: &mut [u64]) -> usize {
        let parts = [work.base, work.exponent, work.modulus_index, work.moduli];
        let [bases, exponents, indices, record] = places(input, parts);
        let size = self.kernel.words();
        let numbers = bases
            .chunks_exact_mut(size)
            .zip(exponents.chunks_exact_mut(size));
        for (number, (base, exponent)) in chunk.clone().zip(numbers) {
            let (of, by) = self.operands(number);
            copy_in(of.as_limbs(), base);
            copy_in(by.as_limbs(), exponent);
        }
        // There is one record.
        indices.fill(0);
        NonTemporal::with(|stores| {
            write_modulus(
                self.kernel,
                ModulusRef::of(self.inputs.params),
                record,
                stores,
            );
        });
        input.len()
    }
}

impl<'p, U: Unsigned + Sync + Send> Job<&'p mut [&mut [u64]]> for EntriesJob<'_, U> {
    type Share = Share;
    /// The place of the operands in the output.
    type Chunk = Part;
    type Error = Error;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.plan(device, count).map(|plan| plan.milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Share>, Error> {
        let Some(plan) = self.plan(call.device().info(), count) else {
            unreachable!("a device without a forecast has no share");
        };
        Share::prepare(plan, call)
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Part, Stop<Error>> {
        let what = ModExpChunk {
            count: chunk.len(),
            moduli: 1,
            exponent_bits: self.shape.exponent_bits,
            r2_bits: self.kernel.r2_bits(self.bits()),
            window: share.plan.window,
        };
        let work = fixed::entries(self.kernel, share.grid, &what);
        let fill = |input: &mut [u64]| self.fill(chunk, &work, input);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok(work.power)
    }

    fn take(
        &self,
        operands: Part,
        _: &Range<usize>,
        words: &mut [u64],
        places: &'p mut [&mut [u64]],
    ) {
        let words = &mut words[operands.range()];
        let size = fixed::operand_words(self.kernel);
        self.threads
            .each_with_number(places, words, size, |_, place, words| {
                place.copy_from_slice(words);
            });
    }
}
