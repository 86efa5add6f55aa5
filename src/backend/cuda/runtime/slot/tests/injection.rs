//! Changes that tests make to the memory of a device while a chunk is under way.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cudarc::driver::sys::CUdeviceptr;
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

    /// The part of a launch argument, unless it is a kernel's own workspace.
    pub(crate) fn part(&self, argument: usize) -> Option<Part> {
        match self.argument(argument)? {
            Argument::Words(part) | Argument::RecordIndices { part, .. } if !part.is_scratch() => {
                Some(*part)
            }
            _ => None,
        }
    }

    /// Whether an argument consists of indices.
    pub(crate) fn is_indices(&self, argument: usize) -> bool {
        matches!(
            self.argument(argument),
            Some(Argument::RecordIndices { .. })
        )
    }

    /// Changes the words of a part with `change`.
    pub(crate) fn change(&self, part: Part, change: impl FnOnce(&mut [u64])) {
        self.change_at(part.address(self.addresses), part.len(), change);
    }

    /// Changes the record with this index.
    pub(crate) fn change_record(&self, index: usize, change: impl FnOnce(&mut [u64])) {
        let records = self.work.resident();
        assert!(index < records.len());
        let address = records.address_of(index as u32);
        self.change_at(address, records.kind.words, change);
    }

    fn change_at(&self, address: CUdeviceptr, len: usize, change: impl FnOnce(&mut [u64])) {
        let mut words: Vec<u64> = vec![0; len];
        // SAFETY: parts are within their buffers, as was checked before the first launch, and
        // records within their table. The maker of this value has waited until the device is idle.
        unsafe { result::memcpy_dtoh_sync(&mut words, address).unwrap() };
        change(&mut words);
        // SAFETY: as above.
        unsafe { result::memcpy_htod_sync(address, &words).unwrap() };
    }
}
