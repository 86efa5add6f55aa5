//! The private keys of the tests.

use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;

/// The key whose modulus has `bits` bits: 2048, 3072 or 4096.
///
/// # Panics
///
/// For any other length.
pub(crate) fn private_key(bits: u32) -> PrivateKey {
    let pem = match bits {
        2048 => include_str!("../../../tests/keys/rsa2048.pem"),
        3072 => include_str!("../../../tests/keys/rsa3072.pem"),
        4096 => include_str!("../../../tests/keys/rsa4096.pem"),
        _ => panic!("there is no key of {bits} bits for benchmarks"),
    };
    PrivateKey::from_pkcs1_pem(pem).expect("a key of the tests")
}
