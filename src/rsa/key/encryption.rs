//! Names of key encryption algorithms.

use core::fmt;

use pkcs8::ObjectIdentifier;

/// An unsupported key encryption algorithm, or a part of one. Displayed as its name, or as its
/// object identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(docsrs, doc(cfg(feature = "encrypted")))]
pub struct EncryptionAlgorithm(pub(super) ObjectIdentifier);

impl fmt::Display for EncryptionAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(oid, _)| *oid == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "the algorithm {}", self.0),
        }
    }
}

macro_rules! names {
    ($($oid:literal $name:literal)*) => {
        &[$((ObjectIdentifier::new_unwrap($oid), $name)),*]
    };
}

/// Algorithms with which OpenSSL and Java encrypt keys, or once did.
const NAMES: &[(ObjectIdentifier, &str)] = names! {
    // RFC 8018, appendices A.3, B.1.1 and B.2.
    "1.2.840.113549.1.5.1" "pbeWithMD2AndDES-CBC"
    "1.2.840.113549.1.5.3" "pbeWithMD5AndDES-CBC"
    "1.2.840.113549.1.5.4" "pbeWithMD2AndRC2-CBC"
    "1.2.840.113549.1.5.6" "pbeWithMD5AndRC2-CBC"
    "1.2.840.113549.1.5.10" "pbeWithSHA1AndDES-CBC"
    "1.2.840.113549.1.5.11" "pbeWithSHA1AndRC2-CBC"
    "1.2.840.113549.2.7" "HMAC-SHA-1"
    "1.2.840.113549.2.12" "HMAC-SHA-512/224"
    "1.2.840.113549.2.13" "HMAC-SHA-512/256"
    "1.3.14.3.2.7" "DES-CBC"
    "1.2.840.113549.3.2" "RC2-CBC"
    "1.2.840.113549.3.7" "DES-EDE3-CBC (3DES)"
    "1.2.840.113549.3.9" "RC5-CBC"
    // RFC 7292, appendix C.
    "1.2.840.113549.1.12.1.1" "pbeWithSHAAnd128BitRC4 (PKCS#12)"
    "1.2.840.113549.1.12.1.2" "pbeWithSHAAnd40BitRC4 (PKCS#12)"
    "1.2.840.113549.1.12.1.3" "pbeWithSHAAnd3-KeyTripleDES-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.4" "pbeWithSHAAnd2-KeyTripleDES-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.5" "pbeWithSHAAnd128BitRC2-CBC (PKCS#12)"
    "1.2.840.113549.1.12.1.6" "pbewithSHAAnd40BitRC2-CBC (PKCS#12)"
    // RFC 3657, section 3.
    "1.2.392.200011.61.1.1.1.2" "Camellia-128-CBC"
    "1.2.392.200011.61.1.1.1.3" "Camellia-192-CBC"
    "1.2.392.200011.61.1.1.1.4" "Camellia-256-CBC"
    // RFC 5794, appendix B.
    "1.2.410.200046.1.1.2" "ARIA-128-CBC"
    "1.2.410.200046.1.1.7" "ARIA-192-CBC"
    "1.2.410.200046.1.1.12" "ARIA-256-CBC"
    // RFC 4269, section 3.
    "1.2.410.200004.1.4" "SEED-CBC"
};
