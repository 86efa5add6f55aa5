//! Batches of encryptions and decryptions.

use batch_modexp::rsa::{BatchDecryptor, BatchEncryptor, Error, KeyHandle, PublicKey};
use getrandom::SysRng;

use crate::boundary::{
    ARGUMENT, DECRYPTION, OK, OPERATION, Place, argument, batch, elements, failed, guard, object,
};
use crate::engine::Engine;
use crate::schemes::{EncryptionParameters, encryption};

/// `bme_encrypt_item` of the header.
#[repr(C)]
struct EncryptItem {
    key: *const PublicKey,
    message: *const u8,
    message_len: usize,
    ciphertext: *mut u8,
    ciphertext_len: usize,
    status: i32,
}

/// `bme_decrypt_item` of the header.
#[repr(C)]
struct DecryptItem {
    key: *const KeyHandle,
    ciphertext: *const u8,
    ciphertext_len: usize,
    message: *mut u8,
    message_capacity: usize,
    message_len: usize,
    status: i32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_encrypt(
    engine: *const Engine,
    scheme: *const EncryptionParameters,
    items: *mut EncryptItem,
    count: usize,
    item_size: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, batch(items, count, item_size)?) };
        // SAFETY: the caller vouches for the scheme and its label.
        let scheme = unsafe { encryption(scheme) }?;
        let (mut given, mut places) = (Vec::new(), Vec::new());
        for item in items {
            item.status = ARGUMENT;
            let parts = || {
                // SAFETY: the caller vouches for what the item names.
                let (key, message, place) = unsafe {
                    (
                        object(item.key)?,
                        elements(item.message, item.message_len)?,
                        Place::new(item.ciphertext, item.ciphertext_len)?,
                    )
                };
                match place.len() == key.size() {
                    true => Ok((key, message, place)),
                    false => Err(argument("wrong length")),
                }
            };
            if let Ok((key, message, place)) = parts() {
                given.push((key, message));
                places.push((&mut item.status, place));
            }
        }
        let encryptor = BatchEncryptor::new(&*engine.0, scheme);
        let ciphertexts = encryptor.encrypt_each(&mut SysRng, &given);
        let ciphertexts = ciphertexts.map_err(failed)?;
        for (result, (status, mut place)) in ciphertexts.iter().zip(places) {
            *status = match result {
                Ok(ciphertext) => {
                    place.write(0, ciphertext);
                    OK
                }
                Err(Error::MessageTooLong { .. }) => ARGUMENT,
                Err(_) => OPERATION,
            };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_decrypt(
    engine: *const Engine,
    scheme: *const EncryptionParameters,
    items: *mut DecryptItem,
    count: usize,
    item_size: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for the engine and for `count` items without other users.
        let (engine, items) = unsafe { (object(engine)?, batch(items, count, item_size)?) };
        // SAFETY: the caller vouches for the scheme and its label.
        let scheme = unsafe { encryption(scheme) }?;
        let (mut given, mut places) = (Vec::new(), Vec::new());
        for item in items {
            (item.status, item.message_len) = (ARGUMENT, 0);
            let parts = || {
                // SAFETY: the caller vouches for what the item names.
                let (key, ciphertext, place) = unsafe {
                    (
                        object(item.key)?,
                        elements(item.ciphertext, item.ciphertext_len)?,
                        Place::new(item.message, item.message_capacity)?,
                    )
                };
                match place.len() >= key.size() {
                    true => Ok((key, ciphertext, place)),
                    false => Err(argument("wrong length")),
                }
            };
            if let Ok((key, ciphertext, place)) = parts() {
                given.push((key, ciphertext));
                places.push((&mut item.status, &mut item.message_len, place));
            }
        }
        let decryptor = BatchDecryptor::new(&*engine.0, scheme);
        let messages = decryptor.decrypt_each(&mut SysRng, &given);
        let messages = messages.map_err(failed)?;
        for (result, (status, len, mut place)) in messages.iter().zip(places) {
            *status = match result {
                Ok(message) => {
                    place.write(0, message);
                    *len = message.len();
                    OK
                }
                Err(Error::Decryption { .. } | Error::BlockOutOfRange { .. }) => DECRYPTION,
                Err(_) => OPERATION,
            };
        }
        Ok(())
    })
}
