//! Batches of signatures: signing and verification.

use batch_modexp::rsa::{BatchSigner, BatchVerifier, Error, KeyHandle, PublicKey};
use getrandom::SysRng;

use crate::boundary::{
    ARGUMENT, OK, OPERATION, Place, SIGNATURE, argument, batch, elements, failed, guard, object,
};
use crate::engine::Engine;
use crate::schemes::SignatureScheme;

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

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_sign(
    engine: *const Engine,
    scheme: i32,
    items: *mut SignItem,
    count: usize,
    item_size: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, batch(items, count, item_size)?) };
        let scheme = SignatureScheme::new(scheme)?;
        let (mut given, mut places) = (Vec::new(), Vec::new());
        for item in items {
            item.status = ARGUMENT;
            let parts = || {
                // SAFETY: the caller vouches for what the item names.
                let (key, message, place) = unsafe {
                    (
                        object(item.key)?,
                        elements(item.message, item.message_len)?,
                        Place::new(item.signature, item.signature_len)?,
                    )
                };
                match place.len() == key.size() && scheme.takes(message) {
                    true => Ok((key, message, place)),
                    false => Err(argument("wrong length")),
                }
            };
            if let Ok((key, message, place)) = parts() {
                item.status = OPERATION;
                given.push((key, scheme.scheme, message));
                places.push((&mut item.status, place));
            }
        }
        let signer = BatchSigner::new(&*engine.0, scheme.scheme);
        let signatures = match scheme.is_prehashed {
            true => signer.sign_prehash_mixed(&mut SysRng, &given),
            false => signer.sign_mixed(&mut SysRng, &given),
        };
        let signatures = signatures.map_err(failed)?;
        for (result, (status, mut place)) in signatures.iter().zip(places) {
            if let Ok(signature) = result {
                place.write(0, signature);
                *status = OK;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_verify(
    engine: *const Engine,
    scheme: i32,
    items: *mut VerifyItem,
    count: usize,
    item_size: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, batch(items, count, item_size)?) };
        let scheme = SignatureScheme::new(scheme)?;
        let (mut given, mut statuses) = (Vec::new(), Vec::new());
        for item in items {
            item.status = ARGUMENT;
            let parts = || {
                // SAFETY: the caller vouches for what the item names.
                let parts = unsafe {
                    (
                        object(item.key)?,
                        elements(item.message, item.message_len)?,
                        elements(item.signature, item.signature_len)?,
                    )
                };
                match scheme.takes(parts.1) {
                    true => Ok(parts),
                    false => Err(argument("wrong length")),
                }
            };
            if let Ok(parts) = parts() {
                given.push(parts);
                statuses.push(&mut item.status);
            }
        }
        let verifier = BatchVerifier::new(&*engine.0, scheme.scheme);
        let verdicts = match scheme.is_prehashed {
            true => verifier.verify_prehash_each(&given),
            false => verifier.verify_each(&given),
        };
        let verdicts = verdicts.map_err(failed)?;
        for (verdict, status) in verdicts.iter().zip(statuses) {
            *status = match verdict {
                Ok(()) => OK,
                Err(Error::Verification { .. } | Error::BlockOutOfRange { .. }) => SIGNATURE,
                Err(_) => OPERATION,
            };
        }
        Ok(())
    })
}
