//! Keys under a passphrase: `EncryptedPrivateKeyInfo` with PBES2 (RFC 8018, section 6.2).

use rsa::pkcs8::der::Decode;
use rsa::pkcs8::pkcs5;
use rsa::pkcs8::{EncryptedPrivateKeyInfoRef, Error};

use super::container::{Document, Kind};

/// The passphrase in a file, as `openssl -passin file:` reads it.
pub fn first_line(text: &[u8]) -> &[u8] {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or(text);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Decrypts `document`.
pub fn decrypt(document: &Document, passphrase: &[u8]) -> Result<Document, String> {
    let info = EncryptedPrivateKeyInfoRef::from_der(document.der.as_bytes())
        .map_err(|error| unsupported(&error))?;
    match info.decrypt(passphrase) {
        Ok(der) => Ok(Document {
            kind: Kind::Pkcs8,
            der,
        }),
        // What comes out under a wrong passphrase is not padded, or else no DER.
        Err(Error::EncryptedPrivateKey(pkcs5::Error::DecryptFailed) | Error::Asn1(_)) => {
            Err("the passphrase does not fit".into())
        }
        Err(error) => Err(unsupported(&error)),
    }
}

fn unsupported(error: &dyn std::fmt::Display) -> String {
    format!(
        "cannot decrypt the key ({error}); encrypt it anew with `openssl pkcs8 -topk8 -in KEY -out NEW`"
    )
}
