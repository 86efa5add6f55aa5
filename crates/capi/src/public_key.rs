//! Public keys.

use std::ptr;

use batch_modexp::rsa::{KeyHandle, PublicKey};

use crate::boundary::{bad_key, elements, free, make, object};

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_public(key: *const KeyHandle, out: *mut *mut PublicKey) -> i32 {
    // SAFETY: NULL, or a key that the caller has not freed.
    let public = || Ok(unsafe { object(key) }?.public_key());
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, public) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_from_pem(
    pem: *const u8,
    pem_len: usize,
    out: *mut *mut PublicKey,
) -> i32 {
    // SAFETY: the caller vouches for the range.
    let read = || PublicKey::from_pem(unsafe { elements(pem, pem_len) }?).map_err(bad_key);
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_from_der(
    der: *const u8,
    der_len: usize,
    out: *mut *mut PublicKey,
) -> i32 {
    let read = || {
        // SAFETY: the caller vouches for the range.
        let der = unsafe { elements(der, der_len) }?;
        PublicKey::from_spki_der(der).map_err(bad_key)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_from_numbers(
    n: *const u8,
    n_len: usize,
    e: *const u8,
    e_len: usize,
    out: *mut *mut PublicKey,
) -> i32 {
    let read = || {
        // SAFETY: the caller vouches for both ranges.
        let (n, e) = unsafe { (elements(n, n_len)?, elements(e, e_len)?) };
        PublicKey::from_numbers(n, e).map_err(bad_key)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_size(key: *const PublicKey) -> usize {
    // SAFETY: NULL, or a key that the caller has not freed.
    unsafe { key.as_ref() }.map_or(0, PublicKey::size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_der(key: *const PublicKey, len: *mut usize) -> *const u8 {
    // SAFETY: NULL, or a key that the caller has not freed, and NULL or a place for a length.
    let (key, len) = unsafe { (key.as_ref(), len.as_mut()) };
    match (key, len) {
        (Some(key), Some(len)) => {
            *len = key.as_der().len();
            key.as_der().as_ptr()
        }
        _ => ptr::null(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_public_key_free(key: *mut PublicKey) {
    // SAFETY: the caller vouches for it.
    unsafe { free(key) }
}
