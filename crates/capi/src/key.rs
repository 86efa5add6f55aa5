//! Private keys.

use batch_modexp::rsa::{KeyHandle, RsaComponents};

use crate::boundary::{Failure, argument, bad_key, elements, free, make, parameters};

/// `bme_octets` of the header.
#[repr(C)]
struct Octets {
    data: *const u8,
    len: usize,
}

/// `bme_key_numbers` of the header.
#[repr(C)]
struct KeyNumbers {
    size: usize,
    n: Octets,
    e: Octets,
    d: Octets,
    p: Octets,
    q: Octets,
    dp: Octets,
    dq: Octets,
    qinv: Octets,
}

impl Octets {
    /// # Safety
    ///
    /// That of [`elements`].
    unsafe fn get<'a>(&self) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller vouches for the range.
        unsafe { elements(self.data, self.len) }
    }

    /// The octets, or `None` if there are none.
    ///
    /// # Safety
    ///
    /// That of [`elements`].
    unsafe fn optional<'a>(&self) -> Result<Option<&'a [u8]>, Failure> {
        // SAFETY: the caller vouches for the range.
        let octets = unsafe { self.get() }?;
        Ok(Some(octets).filter(|octets| !octets.is_empty()))
    }
}

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
        // If both fail, the error is that of PKCS#8, the usual format.
        let key = key.or_else(|error| KeyHandle::from_pkcs1_der(der).map_err(|_| error));
        key.map_err(bad_key)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_key_from_numbers(
    numbers: *const KeyNumbers,
    out: *mut *mut KeyHandle,
) -> i32 {
    let read = || {
        // SAFETY: the caller vouches for the struct.
        let numbers = unsafe { parameters(numbers) }?;
        // SAFETY: the caller vouches for the ranges.
        let (n, e, d) = unsafe { (numbers.n.get()?, numbers.e.get()?, numbers.d.get()?) };
        // SAFETY: as above.
        let (p, q) = unsafe { (numbers.p.optional()?, numbers.q.optional()?) };
        // SAFETY: as above.
        let (dp, dq, qinv) = unsafe {
            (
                numbers.dp.optional()?,
                numbers.dq.optional()?,
                numbers.qinv.optional()?,
            )
        };
        let mut key = RsaComponents::new(n, e, d);
        match (p, q) {
            (Some(p), Some(q)) => key = key.primes(p, q),
            (None, None) if dp.or(dq).or(qinv).is_none() => {}
            _ => return Err(argument("a prime is missing")),
        }
        if let Some(dp) = dp {
            key = key.dp(dp);
        }
        if let Some(dq) = dq {
            key = key.dq(dq);
        }
        if let Some(qinv) = qinv {
            key = key.qinv(qinv);
        }
        KeyHandle::from_components(&key).map_err(bad_key)
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
