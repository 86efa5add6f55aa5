//! Shapes and faults for the tests of callers.

use alloc::boxed::Box;

use super::*;
use crate::backend::cuda::runtime::slot::InjectionPoint;

impl CrtShape {
    /// Keys with exponents as long as their primes.
    pub(crate) fn full(n_bits: u32, prime_bits: u32) -> Self {
        Self {
            n_bits,
            prime_bits,
            exponent_bits: prime_bits,
        }
    }
}

impl<F> CrtBatch<'_, F> {
    /// Like [`run`](Self::run), with changes to the batch on its way to a device.
    pub(crate) fn run_tampered<'t, O: Destination>(
        mut self,
        output: O,
        tampering: Tampering<'t>,
    ) -> Result<(), F::Error>
    where
        F: CrtFeed<O>,
    {
        if let Some(family) = tampering.halves_by {
            let by_it = |entry: &&Entry| entry.key.family == family;
            self.class.halves.retain(by_it);
        }
        if tampering.loses_first_device {
            self.cuda.inject_losses(1, "CUDA_ERROR_TEST");
        }
        let mut batch: CrtBatch<'_, F> = self;
        batch.tampering = tampering;
        batch.run(output)
    }
}

/// Changes that tests make to a batch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tampering<'a> {
    /// Changes the inputs of each chunk on their way to the device: the words of the first numbers,
    /// and the key indices, two to a word.
    pub(crate) inputs: Option<ChangeInputs<'a>>,
    /// The only family whose kernels may compute the halves.
    pub(crate) halves_by: Option<&'a str>,
    /// Whether the first device is lost before the batch begins.
    pub(crate) loses_first_device: bool,
    /// Changes the memory of each chunk on the device, between launches.
    pub(crate) injection: Option<&'a Injection>,
}

impl Tampering<'_> {
    /// Has a slot change the memory of a chunk.
    pub(super) fn inject(&self, chunk: &Range<usize>, slot: &mut Slot) {
        if let Some(injection) = self.injection.cloned() {
            let chunk = chunk.clone();
            slot.inject(Box::new(move |point| injection(&chunk, point)));
        }
    }

    /// Changes the inputs of a chunk.
    pub(super) fn change(&self, inputs: [&mut [u64]; 2]) {
        if let Some(change) = self.inputs {
            change(inputs);
        }
    }
}

/// See [`Tampering::inputs`].
pub(crate) type ChangeInputs<'a> = &'a (dyn Fn([&mut [u64]; 2]) + Sync);

/// See [`Tampering::injection`]. Gets the items of the chunk.
pub(crate) type Injection =
    alloc::sync::Arc<dyn Fn(&Range<usize>, &InjectionPoint<'_>) + Send + Sync>;

mod launches;
