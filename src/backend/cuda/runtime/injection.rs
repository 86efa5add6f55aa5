//! Changes that tests make to the memory of a device while a chunk is under way.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, result};

use super::launch::{Argument, Launch, Loaded};
use super::layout::{Addresses, Part};

pub(crate) type Injection = Box<dyn Fn(&InjectionPoint<'_>) + Send>;

/// The points of a chunk: before each launch and after the last.
pub(super) struct Injections<'a> {
    pub(super) injection: Option<Injection>,
    pub(super) context: &'a CudaContext,
    pub(super) step: usize,
    pub(super) launches: &'a [Launch],
    pub(super) addresses: &'a Addresses,
    pub(super) loaded: &'a Loaded,
}

impl Injections<'_> {
    pub(super) fn next(&mut self) {
        let Some(injection) = &self.injection else {
            return;
        };
        self.context.synchronize().unwrap();
        injection(&InjectionPoint {
            step: self.step,
            launch: &self.launches[self.step.min(self.launches.len() - 1)],
            addresses: self.addresses,
            loaded: self.loaded,
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
    /// The next launch, or the last one.
    pub(crate) launch: &'a Launch,
    addresses: &'a Addresses,
    loaded: &'a Loaded,
}

impl InjectionPoint<'_> {
    /// The part of a launch argument, unless it is a kernel's own workspace.
    pub(crate) fn part(&self, argument: usize) -> Option<Part> {
        match self.launch.arguments().get(argument)? {
            Argument::Words(part) | Argument::RecordIndices { part, .. } if !part.is_scratch() => {
                Some(*part)
            }
            _ => None,
        }
    }

    /// Whether an argument consists of indices.
    pub(crate) fn is_indices(&self, argument: usize) -> bool {
        let argument = self.launch.arguments().get(argument);
        matches!(argument, Some(Argument::RecordIndices { .. }))
    }

    /// Changes the words of a part with `change`.
    pub(crate) fn change(&self, part: Part, change: impl FnOnce(&mut [u64])) {
        self.change_at(self.addresses.of(part), part.len(), change);
    }

    /// Changes the record with this index.
    pub(crate) fn change_record(&self, index: usize, change: impl FnOnce(&mut [u64])) {
        let (records, words) = (self.loaded.records(), self.loaded.records().kind.words);
        assert!(index < records.len());
        let start = (index * words * size_of::<u64>()) as CUdeviceptr;
        self.change_at(records.address() + start, words, change);
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
