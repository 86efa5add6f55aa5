//! Why a key cannot be used.

use core::fmt;

/// What is wrong with a key. Nothing in it depends on a secret but the name of the relation that does not hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyFault {
    /// There is no PEM block, or it is damaged (RFC 7468).
    Pem,
    /// The PEM block has another label than `expected`.
    Label {
        /// The label that this function reads.
        expected: &'static str,
    },
    /// The PEM block, or the document inside, is encrypted.
    Encrypted,
    /// The document is not valid DER of the structure `expected`.
    Der {
        /// The structure that this function reads.
        expected: &'static str,
    },
    /// The key is for another algorithm than RSA.
    Algorithm,
    /// The key is restricted to parameters of RSASSA-PSS that this crate does not sign with: another hash function
    /// than SHA-256, SHA-384 and SHA-512, or another one for the mask generation.
    PssParameters,
    /// The passphrase is wrong, or the encryption is not supported.
    #[cfg(feature = "encrypted")]
    Decryption,
    /// n is even.
    EvenModulus,
    /// e is even, below 3, or not below n.
    PublicExponent,
    /// d is 0 or not below n.
    PrivateExponent,
    /// d modulo lcm(p - 1, q - 1) is below 2^(bits / 2), as for `d = 1` (FIPS 186-5, appendix A.1.1); of a key without
    /// primes, d itself is, or d changes nothing.
    ShortPrivateExponent,
    /// n is a prime or a power of one: then everybody can compute d.
    PrimePower,
    /// p or q is even or below 3.
    Factor,
    /// p = q.
    EqualFactors,
    /// n is not p q.
    Product,
    /// `d e` is not 1 modulo p - 1 and q - 1; of a key without primes, `2^(e d)` is not 2 modulo n.
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
        let relation = match self {
            Self::Pem => return f.write_str("this is not PEM, or the PEM block is damaged"),
            Self::Label { expected } => {
                return write!(f, "the PEM block is not labelled {expected:?}");
            }
            Self::Encrypted => {
                return f.write_str(
                    "the key is encrypted; decrypt it, or use the functions for encrypted keys",
                );
            }
            Self::Der { expected } => return write!(f, "this is not the DER of a {expected}"),
            Self::Algorithm => return f.write_str("the key is not for RSA"),
            Self::PssParameters => {
                return f.write_str(
                    "the key is restricted to RSASSA-PSS with parameters that are not supported; \
                     supported are SHA-256, SHA-384 and SHA-512, and MGF1 with the same",
                );
            }
            #[cfg(feature = "encrypted")]
            Self::Decryption => {
                return f.write_str("the passphrase is wrong, or this encryption is not supported");
            }
            Self::EvenModulus => "n is even",
            Self::PublicExponent => "e is not an odd number from 3 to n",
            Self::PrivateExponent => "d is not between 0 and n",
            Self::ShortPrivateExponent => {
                return f.write_str(
                    "d modulo lcm(p - 1, q - 1) is too small to be secret; generate another key",
                );
            }
            Self::PrimePower => {
                return f.write_str(
                    "n is a prime or a power of one, so its d is no secret; generate another key",
                );
            }
            Self::Factor => "p or q is not an odd number above 1",
            Self::EqualFactors => "p and q are equal",
            Self::Product => "n is not p q",
            Self::Exponents => "e and d do not belong together and to n",
            Self::Dp => "dP is not d mod p - 1",
            Self::Dq => "dQ is not d mod q - 1",
            Self::Qinv => "qInv is not the inverse of q modulo p",
        };
        write!(
            f,
            "the numbers of the key do not belong together: {relation}; export it again"
        )
    }
}
