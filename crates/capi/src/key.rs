//! Private and public keys.

use batch_modexp::rsa::{KeyHandle, PublicKey};

use crate::border::{bad_key, elements, free, make, object};

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_from_pem(
    pem: *const u8,
    pem_len: usize,
    password: *const u8,
    password_len: usize,
    out: *mut *mut KeyHandle,
) -> i32 {
    let read = || {
        // SAFETY: the caller vouches for both ranges.
        let (pem, word) = unsafe { (elements(pem, pem_len)?, elements(password, password_len)?) };
        let key = match password.is_null() {
            true => KeyHandle::from_pem(pem),
            false => KeyHandle::from_pkcs8_encrypted_pem(pem, word),
        };
        key.map_err(bad_key)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_from_der(
    der: *const u8,
    der_len: usize,
    out: *mut *mut KeyHandle,
) -> i32 {
    let read = || {
        // SAFETY: the caller vouches for the range.
        let der = unsafe { elements(der, der_len) }?;
        let key = KeyHandle::from_pkcs8_der(der);
        // What is neither is reported as PKCS#8, which is what most keys are.
        let key = key.or_else(|error| KeyHandle::from_pkcs1_der(der).map_err(|_| error));
        key.map_err(bad_key)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_size(key: *const KeyHandle) -> usize {
    // SAFETY: NULL, or a key that the caller has not freed.
    unsafe { key.as_ref() }.map_or(0, KeyHandle::size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_free(key: *mut KeyHandle) {
    // SAFETY: the caller vouches for it.
    unsafe { free(key) }
}

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
unsafe extern "C" fn bme_public_key_free(key: *mut PublicKey) {
    // SAFETY: the caller vouches for it.
    unsafe { free(key) }
}
