//! Encrypted keys whose documents ask for an impossible key derivation, or for too much memory.
//! They are no fuzz target: the document determines the cost of a possible derivation.

use std::io::Write;

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{KeyFault, KeyHandle};
use rsa::pkcs8::EncryptedPrivateKeyInfoRef;
use rsa::pkcs8::der::{Decode, Encode, pem};
use rsa::pkcs8::pkcs5::EncryptionScheme;
use rsa::pkcs8::pkcs5::pbes2::{Kdf, ScryptParams};
use tempfile::NamedTempFile;

use super::targets::sign_batch;

const PASSPHRASE: &[u8] = b"correct horse";

/// A document of OpenSSL with other scrypt parameters.
fn with(change: impl FnOnce(&mut ScryptParams)) -> Vec<u8> {
    let text = include_str!("../keys/encrypted-scrypt.pem");
    let (_, der) = pem::decode_vec(text.as_bytes()).unwrap();
    let mut info = EncryptedPrivateKeyInfoRef::from_der(&der).unwrap();
    match &mut info.encryption_algorithm {
        EncryptionScheme::Pbes2(parameters) => match &mut parameters.kdf {
            Kdf::Scrypt(scrypt) => change(scrypt),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    info.to_der().unwrap()
}

fn file(octets: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(octets).unwrap();
    file
}

#[test]
fn what_scrypt_may_take_is_limited() {
    let passphrase = file(PASSPHRASE);
    let load = |der: &[u8]| {
        let program = sign_batch::loads_encrypted(file(der).path(), passphrase.path());
        (
            KeyHandle::from_pkcs8_encrypted_der(der, PASSPHRASE).err(),
            program,
        )
    };
    assert_eq!(load(&with(|_| {})), (None, true));
    let refused = (Some(Error::Key(KeyFault::Derivation)), false);
    type Change = fn(&mut ScryptParams);
    let changes: [Change; 8] = [
        |scrypt| scrypt.cost_parameter = 0,
        |scrypt| scrypt.cost_parameter += 1,
        |scrypt| scrypt.cost_parameter = 1 << 40,
        |scrypt| scrypt.cost_parameter = 1 << 63,
        |scrypt| scrypt.block_size = u16::MAX,
        |scrypt| scrypt.block_size = 0,
        |scrypt| scrypt.parallelization = u16::MAX,
        |scrypt| scrypt.parallelization = 0,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(load(&with(change)), refused, "change {number}");
    }
}
