//! Engines and batches of signatures.

use std::{ptr, slice};

use batch_modexp::backend::Auto;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, KeyHandle};

use crate::border::{ARGUMENT, Failure, OK, OPERATION, argument, guard, octets};

type Engine = BatchSigner<Auto, AnyScheme>;

/// `bme_sign_item` of the header.
#[repr(C)]
struct Item {
    key: *const KeyHandle,
    message: *const u8,
    message_len: usize,
    signature: *mut u8,
    signature_len: usize,
    status: i32,
}

fn scheme(number: i32) -> Result<AnyScheme, Failure> {
    let hash = match number & 3 {
        1 => Hash::Sha256,
        2 => Hash::Sha384,
        3 => Hash::Sha512,
        _ => return Err(argument("unknown scheme")),
    };
    match number >> 2 {
        0 => Ok(AnyScheme::Pkcs1v15 { hash }),
        1 => Ok(AnyScheme::Pss {
            hash,
            salt_len: hash.digest_len(),
        }),
        _ => Err(argument("unknown scheme")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_new(out: *mut *mut Engine) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(argument("out is NULL"));
        }
        // SAFETY: not NULL, and the caller vouches for the place.
        unsafe { out.write(ptr::null_mut()) };
        let auto = Auto::new().map_err(|error| Failure(OPERATION, error.to_string()))?;
        let engine = BatchSigner::new(auto, scheme(1)?);
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(Box::new(engine))) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_engine_free(engine: *mut Engine) {
    guard(|| {
        if !engine.is_null() {
            // SAFETY: made by `bme_engine_new`, and the caller frees it once.
            drop(unsafe { Box::from_raw(engine) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_sign(
    engine: *const Engine,
    number: i32,
    items: *mut Item,
    count: usize,
) -> i32 {
    guard(|| {
        // SAFETY: NULL, or an engine that the caller has not freed.
        let engine = unsafe { engine.as_ref() }.ok_or_else(|| argument("engine is NULL"))?;
        let scheme = scheme(number)?;
        if count == 0 {
            return Ok(());
        }
        if items.is_null() || count > isize::MAX as usize / size_of::<Item>() {
            return Err(argument("items are NULL or too many"));
        }
        // SAFETY: not NULL, and the caller vouches for `count` items without other users.
        let items = unsafe { slice::from_raw_parts_mut(items, count) };
        let (mut batch, mut places) = (Vec::new(), Vec::new());
        for (i, item) in items.iter_mut().enumerate() {
            item.status = ARGUMENT;
            // SAFETY: NULL, or a key that the caller has not freed.
            let Some(key) = (unsafe { item.key.as_ref() }) else {
                continue;
            };
            // SAFETY: the caller vouches for the message.
            let Ok(message) = (unsafe { octets(item.message, item.message_len) }) else {
                continue;
            };
            if !item.signature.is_null() && item.signature_len == key.size() {
                item.status = OPERATION;
                batch.push((key, scheme, message));
                places.push(i);
            }
        }
        let signatures = engine
            .sign_mixed(&mut getrandom::SysRng, &batch)
            .map_err(|error| Failure(OPERATION, error.to_string()))?;
        for (position, &i) in places.iter().enumerate() {
            let item = &mut items[i];
            if let Ok(signature) = signatures.get(position)
                && signature.len() == item.signature_len
            {
                // SAFETY: the caller vouches for `signature_len` octets, and the lengths are equal.
                unsafe { ptr::copy(signature.as_ptr(), item.signature, signature.len()) };
                item.status = OK;
            }
        }
        Ok(())
    })
}
