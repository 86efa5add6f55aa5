//! Copies on a device, and forked children. Some tests need a GPU.

use alloc::vec;

use cudarc::driver::sys::CUdeviceptr;

use super::super::device::Device;
use super::super::probe;
use super::*;

/// A word that nothing else writes.
const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

/// Few enough words for the driver to place several such lists beside each other.
const LEN: usize = 1 << 14;

fn secret() -> Resident {
    Resident::new(Secret::new(vec![SECRET; LEN]))
}

/// The context of the first device, or a message about why there is none.
fn context() -> Option<(Device, Arc<CudaContext>)> {
    let found = crate::need::available("cuda", probe::devices())?;
    let context = CudaContext::new(found[0].ordinal()).unwrap();
    Some((Device::open(&found[0]).unwrap(), context))
}

#[test]
fn each_device_copies_the_words_once() {
    let Some((device, context)) = context() else {
        return;
    };
    let owner = secret();
    let call = device.call();
    let copies = [(); 2].map(|()| call.device.resident(&owner).unwrap());
    assert!(Arc::ptr_eq(&copies[0], &copies[1]));
    assert!(copies[0].read().iter().all(|&word| word == SECRET));
    // Another backend has the same context, which it may outlive.
    drop(call);
    drop(device);
    let later = owner.on(&context).unwrap();
    assert!(Arc::ptr_eq(&copies[0], &later));
}

/// New memory of the device, which has not been cleared.
fn new_memory() -> CUdeviceptr {
    // SAFETY: the caller has bound a context.
    unsafe { result::malloc_sync(LEN * size_of::<u64>()).unwrap() }
}

fn free(memory: CUdeviceptr) {
    // SAFETY: the memory is from `new_memory`, and is not used after this.
    unsafe { result::free_sync(memory).unwrap() };
}

/// Whether new memory contains the secret.
fn finds_secret() -> bool {
    let memory = [(); 40].map(|()| new_memory());
    let found = memory.map(|memory| {
        let mut words = vec![0u64; LEN];
        // SAFETY: the memory has `LEN` words, any of which are valid.
        unsafe { result::memcpy_dtoh_sync(&mut words, memory).unwrap() };
        words.contains(&SECRET)
    });
    memory.into_iter().for_each(free);
    found.contains(&true)
}

/// The control: words in freed memory are found if they have not been wiped, unless other tests get
/// the memory first.
#[test]
fn dropped_words_are_wiped() {
    let Some((device, context)) = context() else {
        return;
    };
    context.bind_to_thread().unwrap();
    // Otherwise the driver might return the memory around the words.
    let neighbour = new_memory();
    let owner = secret();
    device.call().device.resident(&owner).unwrap();
    assert_eq!(lock(&owner.copies).len(), 1);
    drop(owner);
    assert!(!finds_secret());
    let is_found = || {
        let memory = new_memory();
        // SAFETY: the memory has `LEN` words.
        unsafe { result::memcpy_htod_sync(memory, &[SECRET; LEN]).unwrap() };
        free(memory);
        finds_secret()
    };
    assert!((0..40).any(|_| is_found()));
    free(neighbour);
}

/// A forked child leaves the copies to the parent.
#[test]
fn forked_children_call_no_driver() {
    let Some((device, _)) = context() else { return };
    let mut owner = secret();
    let copy = device.resident(&owner).unwrap();
    owner.process = process::id() + 1;
    drop(owner);
    assert_eq!(Arc::strong_count(&copy), 2);
}
