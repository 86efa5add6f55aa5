//! A library without `std`, with a panic handler and an allocator of its own. Were `std` anywhere among its
//! dependencies, it would have two panic handlers and not compile: that it does shows that the crate
//! needs no more than `core` and `alloc`.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

use batch_modexp::backend::Serial;
use batch_modexp::rsa::{KeyHandle, PrivateOp, RsaPrivateOp};
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, U2048};

/// Uses the trait at a fixed width.
pub fn fixed(batch: &[ModExp<'_, U2048>], out: &mut [U2048]) -> Result<(), Error> {
    Serial.batch_mod_exp(batch, U2048::BITS, out)
}

/// Uses the trait at a width known at run time.
pub fn boxed(batch: &[ModExp<'_, BoxedUint>], out: &mut [BoxedUint]) -> Result<(), Error> {
    Serial.batch_mod_exp(batch, 2048, out)
}

/// Uses the RSA layer.
pub fn private_op(key: &KeyHandle, block: &BoxedUint) -> Result<usize, Error> {
    Ok(Serial
        .private_op(&[PrivateOp::new(key, block, None)])?
        .len())
}

/// Has no memory to give.
struct NoMemory;

// SAFETY: a null pointer says that there is no memory, so there is never a block to free.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
