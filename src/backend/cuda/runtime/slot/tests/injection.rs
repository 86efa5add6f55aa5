//! Changes that tests make to the memory of a device while a chunk is under way.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cudarc::driver::{CudaContext, CudaStream, result};

use super::super::super::buffers::Addresses;
use super::super::super::launch::{Argument, Part, Work};

pub(crate) type Injection = Box<dyn Fn(&InjectionPoint<'_>) + Send>;

/// The points of a chunk: before each launch and after the last.
pub(in super::super) struct Injections<'a> {
    injection: Option<Injection>,
    context: Arc<CudaContext>,
    step: usize,
    work: &'a Work<'a>,
    addresses: &'a Addresses,
}

impl<'a> Injections<'a> {
    pub(in super::super) fn new(
        injection: Option<Injection>,
        work: &'a Work<'a>,
        addresses: &'a Addresses,
        stream: &CudaStream,
    ) -> Self {
        Self {
            injection,
            context: stream.context().clone(),
            step: 0,
            work,
            addresses,
        }
    }

    pub(in super::super) fn next(&mut self) {
        let Some(injection) = &self.injection else {
            return;
        };
        self.context.synchronize().unwrap();
        injection(&InjectionPoint {
            step: self.step,
            work: self.work,
            addresses: self.addresses,
        });
        // Copies from memory that is not pinned may return early (CUDA Driver API, "API
        // synchronization behavior").
        self.context.synchronize().unwrap();
        self.step += 1;
    }
}

/// The memory of a chunk between two of its launches, while the device is idle.
pub(crate) struct InjectionPoint<'a> {
    /// The number of launches that have ended.
    pub(crate) step: usize,
    work: &'a Work<'a>,
    addresses: &'a Addresses,
}

impl InjectionPoint<'_> {
    /// An argument of the next launch, or of the last one.
    fn argument(&self, argument: usize) -> Option<&Argument> {
        let launches = &self.work.launches;
        let launch = &launches[self.step.min(launches.len() - 1)];
        launch.arguments().get(argument)
    }

    /// The part of a launch argument with words or indices of items: no records, and no workspace
    /// of a kernel.
    pub(crate) fn part(&self, argument: usize) -> Option<Part> {
        match self.argument(argument)? {
            Argument::Words(part) | Argument::Indices { part, .. } => {
                Some(*part).filter(|part| !part.is_scratch() && *part != self.work.records)
            }
            _ => None,
        }
    }

    /// Whether an argument consists of indices.
    pub(crate) fn is_indices(&self, argument: usize) -> bool {
        matches!(self.argument(argument), Some(Argument::Indices { .. }))
    }

    /// The records of all keys of the chunk.
    pub(crate) fn records(&self) -> Part {
        self.work.records
    }

    /// Changes the words of a part with `change`.
    pub(crate) fn change(&self, part: Part, change: impl FnOnce(&mut [u64])) {
        let address = part.address(self.addresses);
        let mut words: Vec<u64> = vec![0; part.len()];
        // SAFETY: parts are within their buffers, as was checked before the first launch. The maker
        // of this value has waited until the device is idle.
        unsafe { result::memcpy_dtoh_sync(&mut words, address).unwrap() };
        change(&mut words);
        // SAFETY: as above.
        unsafe { result::memcpy_htod_sync(address, &words).unwrap() };
    }
}
