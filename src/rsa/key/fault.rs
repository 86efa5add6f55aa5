//! Why a key cannot be used.

use core::fmt;

#[cfg(feature = "encrypted")]
use super::encryption::EncryptionAlgorithm;
use crate::rsa::{MAX_PUBLIC_BITS, MIN_BITS};

/// A fault of a key. The only fact that depends on a secret is which relation does not hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyFault {
    /// There is no PEM block, or it is damaged (RFC 7468).
    Pem,
    /// A number of a JSON Web Key is not base64url without padding (RFC 7515, section 2).
    Base64,
    /// The newlines of a PEM block are escaped as a backslash and the letter n, as in JSON and
    /// environment variables.
    EscapedNewlines,
    /// There is PEM, but no block with an `expected` label.
    Label {
        /// The label or labels that this function reads.
        expected: &'static str,
    },
    /// The PEM block, or the document inside, is encrypted.
    Encrypted,
    /// The document is not valid DER of the structure `expected`.
    Der {
        /// The structure that this function reads.
        expected: &'static str,
    },
    /// The document is a `found`, but the PEM label or the function requires another structure.
    Structure {
        /// The structure of the document: `PrivateKeyInfo` (PKCS#8) or `RSAPrivateKey` (PKCS#1).
        found: &'static str,
    },
    /// The key is for another algorithm than RSA.
    Algorithm,
    /// The key is restricted to RSASSA-PSS parameters that this crate does not support: a hash
    /// function outside `Hash`, or another one for the mask generation.
    PssParameters,
    /// The passphrase is wrong, or the encrypted octets are damaged.
    #[cfg(feature = "encrypted")]
    Passphrase,
    /// The document is encrypted, or its key derived, with this algorithm, which is not supported.
    #[cfg(feature = "encrypted")]
    Encryption(EncryptionAlgorithm),
    /// The key derivation that the document sets is invalid, or takes too much memory or time.
    #[cfg(feature = "encrypted")]
    Derivation,
    /// n is even.
    EvenModulus,
    /// e is even, below 3, or not below n.
    PublicExponent,
    /// n of a public key is too short or too long.
    PublicKeySize {
        /// Length of n in bits.
        bits: u32,
    },
    /// e of a public key is longer than the caller allows.
    LongPublicExponent {
        /// Length of e in bits.
        bits: u32,
        /// The longest that is allowed.
        max_bits: u32,
    },
    /// d is 0 or not below n.
    PrivateExponent,
    /// d modulo lcm(p - 1, q - 1) is below 2^(bits / 2), such as `d = 1` (FIPS 186-5, appendix
    /// A.1.1). Without primes: d itself is below that, or the private operation changes nothing.
    ShortPrivateExponent,
    /// n is a prime or a power of one, so d is easy to compute.
    PrimePower,
    /// p or q is even or below 3.
    Factor,
    /// p = q.
    EqualFactors,
    /// n is not p q.
    Product,
    /// `d e` is not 1 modulo p - 1 and q - 1. Without primes: d is even, or `2^(e d)` is not 2 modulo
    /// n.
    Exponents,
    /// dP is not d mod p - 1.
    Dp,
    /// dQ is not d mod q - 1.
    Dq,
    /// qInv is not the inverse of q modulo p, or q has none.
    Qinv,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem => f.write_str("there is no PEM block, or it is damaged"),
            Self::Base64 => f.write_str("n or e is not base64url without padding"),
            Self::Label { expected } => write!(f, "there is no PEM block labelled {expected}"),
            Self::EscapedNewlines => f.write_str(
                r"the newlines of the PEM block are written as \n; replace them by newlines",
            ),
            Self::Encrypted => f.write_str(
                "the key is encrypted; read it by `from_pkcs8_encrypted_pem`, or decrypt it with \
                     `openssl pkey -in KEY -out NEW`",
            ),
            Self::Structure { found } => {
                let (label, other) = match *found {
                    "PrivateKeyInfo" => ("PRIVATE KEY", "PKCS#1 or encrypted"),
                    _ => ("RSA PRIVATE KEY", "PKCS#8"),
                };
                write!(
                    f,
                    "this is a {found}, read as {other}; its PEM label must be {label}"
                )
            }
            Self::Der { expected } => write!(f, "this is not the DER of a {expected}"),
            Self::Algorithm => f.write_str("this is not an RSA key"),
            Self::PssParameters => f.write_str(
                "the key is restricted to RSASSA-PSS with parameters that are not supported; \
                     supported are SHA-2 and SHA-3, and MGF1 with the same hash",
            ),
            #[cfg(feature = "encrypted")]
            Self::Passphrase => f.write_str("the passphrase does not fit"),
            #[cfg(feature = "encrypted")]
            Self::Encryption(algorithm) => write!(
                f,
                "keys that are encrypted with {algorithm} are not supported; \
                     encrypt it anew with `openssl pkcs8 -topk8 -in KEY -out NEW`"
            ),
            #[cfg(feature = "encrypted")]
            Self::Derivation => f.write_str(
                "the encrypted key asks for a derivation with impossible parameters, or with \
                     more than 1 GiB or 100 million iterations; \
                     encrypt it anew with `openssl pkcs8 -topk8 -in KEY -out NEW`",
            ),
            Self::PublicKeySize { bits } => write!(
                f,
                "n has {bits} bits; supported are {MIN_BITS} to {MAX_PUBLIC_BITS} bits"
            ),
            Self::LongPublicExponent { bits, max_bits } => write!(
                f,
                "e has {bits} bits, and at most {max_bits} are allowed; if you trust the key, read it by \
                     `from_numbers_with_exponent_bits`"
            ),
            Self::EvenModulus => contradiction(f, "n is even"),
            Self::PublicExponent => contradiction(f, "e is not an odd number from 3 to n"),
            Self::PrivateExponent => contradiction(f, "d is not between 0 and n"),
            Self::ShortPrivateExponent => f.write_str(
                "d modulo lcm(p - 1, q - 1) is too small to be secret; generate another key",
            ),
            Self::PrimePower => f.write_str(
                "n is a prime or a power of one, so its d is no secret; generate another key",
            ),
            Self::Factor => contradiction(f, "p or q is not an odd number above 1"),
            Self::EqualFactors => contradiction(f, "p and q are equal"),
            Self::Product => contradiction(f, "n is not p q"),
            Self::Exponents => contradiction(f, "e and d do not belong together and to n"),
            Self::Dp => contradiction(f, "dP is not d mod p - 1"),
            Self::Dq => contradiction(f, "dQ is not d mod q - 1"),
            Self::Qinv => contradiction(f, "qInv is not the inverse of q modulo p"),
        }
    }
}

/// Writes that numbers of the key break a relation.
fn contradiction(f: &mut fmt::Formatter<'_>, relation: &str) -> fmt::Result {
    write!(
        f,
        "the numbers of the key do not belong together: {relation}; export it again"
    )
}
