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
    if !is_affordable(&info.encryption_algorithm) {
        return Err(unsupported(
            &"its scrypt has an impossible cost, or asks for more than 1 GiB",
        ));
    }
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

/// Whether scrypt has a cost N that is possible, and takes at most 1 GiB; pkcs5 allocates what the document says, and
/// panics at N = 0.
fn is_affordable(encryption: &pkcs5::EncryptionScheme) -> bool {
    let Some(scrypt) = encryption.pbes2().and_then(|pbes2| pbes2.kdf.scrypt()) else {
        return true;
    };
    let n = scrypt.cost_parameter;
    let r_p = u128::from(scrypt.block_size) * u128::from(scrypt.parallelization);
    n.is_power_of_two() && 128 * u128::from(n) * r_p <= 1 << 30
}

fn unsupported(error: &dyn std::fmt::Display) -> String {
    format!(
        "cannot decrypt the key ({error}); encrypt it anew with `openssl pkcs8 -topk8 -in KEY -out NEW`"
    )
}
