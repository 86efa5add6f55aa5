//! A library without `std`, with its own panic handler and allocator. If a dependency used `std`,
//! there would be two panic handlers, and the build would fail. A successful build shows that the
//! crate needs only `core` and `alloc`.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::convert::Infallible;
use core::panic::PanicInfo;

use batch_modexp::backend::Serial;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{self, KeyHandle};
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::{BoxedUint, U2048};
use rand_core::{TryCryptoRng, TryRng};

/// Uses the trait at a fixed width.
pub fn fixed(batch: &[ModExp<'_, U2048>], out: &mut [U2048]) -> Result<(), Error> {
    Serial.batch_mod_exp(batch, U2048::BITS, out)
}

/// Uses the trait at a width known at run time.
pub fn boxed(batch: &[ModExp<'_, BoxedUint>], out: &mut [BoxedUint]) -> Result<(), Error> {
    Serial.batch_mod_exp(batch, 2048, out)
}

/// Uses the RSA layer.
pub fn private_op(key: &KeyHandle, block: &[u8], rng: &mut Constant) -> Result<usize, rsa::Error> {
    Ok(rsasp1(&Serial, Some(rng), &[(key, block)])?.len())
}

/// A stand-in for a random number generator.
pub struct Constant;

impl TryRng for Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(7)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(7)
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        octets.fill(7);
        Ok(())
    }
}

impl TryCryptoRng for Constant {}

/// An allocator that has no memory.
struct NoMemory;

// SAFETY: a null pointer means that there is no memory, so there is never a block to free.
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
