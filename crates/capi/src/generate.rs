//! Generation of keys.

use batch_modexp::rsa::KeyGenerator;
use getrandom::SysRng;

use crate::boundary::{Place, argument, elements_mut, failed, guard, object};
use crate::engine::Engine;

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_generate_keys(
    engine: *const Engine,
    bits: u32,
    count: usize,
    documents: *mut u8,
    document_size: usize,
    document_lens: *mut usize,
) -> i32 {
    guard(|| {
        let Some(len) = count.checked_mul(document_size) else {
            return Err(argument("a length is too large"));
        };
        // SAFETY: the caller vouches for the engine and for both ranges, which have no other users.
        let (engine, mut documents, lens) = unsafe {
            (
                object(engine)?,
                Place::new(documents, len)?,
                elements_mut(document_lens, count)?,
            )
        };
        let generator = KeyGenerator::new(&*engine.0, bits).map_err(argument)?;
        // n and d have `bits` bits, and five numbers have half of that. e, and the DER around the
        // numbers, have less than 128 octets.
        if document_size < bits as usize * 9 / 16 + 128 {
            return Err(argument("document_size is less than BME_PKCS8_SIZE(bits)"));
        }
        let keys = generator.generate(&mut SysRng, count).map_err(failed)?;
        for (position, (key, len)) in keys.iter().zip(lens).enumerate() {
            let document = key.to_pkcs8_der();
            documents.write(position * document_size, &document);
            *len = document.len();
        }
        Ok(())
    })
}
