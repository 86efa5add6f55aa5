//! Batches of signatures: signing and verification.

use batch_modexp::rsa::{AnyScheme, BatchSigner, BatchVerifier, Hash, KeyHandle, PublicKey};

use crate::border::{
    ARGUMENT, Failure, OK, OPERATION, SIGNATURE, argument, elements, elements_mut, failed, guard,
    object,
};
use crate::engine::Engine;

/// `bme_sign_item` of the header.
#[repr(C)]
struct SignItem {
    key: *const KeyHandle,
    message: *const u8,
    message_len: usize,
    signature: *mut u8,
    signature_len: usize,
    status: i32,
}

/// `bme_verify_item` of the header.
#[repr(C)]
struct VerifyItem {
    key: *const PublicKey,
    message: *const u8,
    message_len: usize,
    signature: *const u8,
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
unsafe extern "C" fn bme_sign(
    engine: *const Engine,
    number: i32,
    items: *mut SignItem,
    count: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, elements_mut(items, count)?) };
        let scheme = scheme(number)?;
        let (mut batch, mut places) = (Vec::new(), Vec::new());
        for item in items {
            item.status = ARGUMENT;
            // SAFETY: the caller vouches for what the item names, and that nobody else uses the place of the signature.
            let parts = unsafe {
                object(item.key).and_then(|key| {
                    let message = elements(item.message, item.message_len)?;
                    Ok((
                        key,
                        message,
                        elements_mut(item.signature, item.signature_len)?,
                    ))
                })
            };
            if let Ok((key, message, signature)) = parts
                && signature.len() == key.size()
            {
                item.status = OPERATION;
                batch.push((key, scheme, message));
                places.push((&mut item.status, signature));
            }
        }
        let signer = BatchSigner::new(engine, scheme);
        let signatures = signer
            .sign_mixed(&mut getrandom::SysRng, &batch)
            .map_err(failed)?;
        for (result, (status, place)) in signatures.iter().zip(places) {
            if let Ok(signature) = result {
                place.copy_from_slice(signature);
                *status = OK;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_verify(
    engine: *const Engine,
    number: i32,
    items: *mut VerifyItem,
    count: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, elements_mut(items, count)?) };
        let scheme = scheme(number)?;
        let (mut batch, mut statuses) = (Vec::new(), Vec::new());
        for item in items {
            item.status = ARGUMENT;
            // SAFETY: the caller vouches for what the item names.
            let parts = unsafe {
                object(item.key).and_then(|key| {
                    let message = elements(item.message, item.message_len)?;
                    Ok((key, message, elements(item.signature, item.signature_len)?))
                })
            };
            if let Ok((key, message, signature)) = parts {
                item.status = SIGNATURE;
                batch.push((key, message, signature));
                statuses.push(&mut item.status);
            }
        }
        let verifier = BatchVerifier::new(engine, scheme);
        let verdicts = verifier.verify_each(&batch).map_err(failed)?;
        for (verdict, status) in verdicts.iter().zip(statuses) {
            if verdict.is_ok() {
                *status = OK;
            }
        }
        Ok(())
    })
}
