//! Private keys.

use std::ptr;

use batch_modexp::rsa::KeyHandle;

use crate::border::{Failure, KEY, argument, guard, octets};

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_from_pem(
    pem: *const u8,
    pem_len: usize,
    password: *const u8,
    password_len: usize,
    out: *mut *mut KeyHandle,
) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(argument("out is NULL"));
        }
        // SAFETY: not NULL, and the caller vouches for the place.
        unsafe { out.write(ptr::null_mut()) };
        // SAFETY: the caller vouches for both ranges.
        let (pem, word) = unsafe { (octets(pem, pem_len)?, octets(password, password_len)?) };
        let key = if password.is_null() {
            KeyHandle::from_pem(pem)
        } else {
            KeyHandle::from_pkcs8_encrypted_pem(pem, word)
        };
        let key = key.map_err(|error| Failure(KEY, error.to_string()))?;
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(Box::new(key))) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_size(key: *const KeyHandle) -> usize {
    // SAFETY: NULL, or a key that the caller has not freed.
    unsafe { key.as_ref() }.map_or(0, KeyHandle::size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_free(key: *mut KeyHandle) {
    guard(|| {
        if !key.is_null() {
            // SAFETY: made by `bme_key_from_pem`, and the caller frees it once.
            drop(unsafe { Box::from_raw(key) });
        }
        Ok(())
    });
}
