//! Documents with keys. Documents without a key are errors, and keys agree with an independent
//! reader.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{KeyFault, KeyHandle, PublicKey};
use data_encoding::BASE64;
use num_bigint::BigUint;

use super::key_components::{Numbers, check_use};

/// Returns the results of the imports of PKCS#1 and of PKCS#8; of PEM if the input is text.
pub fn run(data: &[u8]) -> [Result<(), Error>; 2] {
    public_import(data);
    let imports = match str::from_utf8(data) {
        Ok(text) => KINDS.map(|kind| text_import(text, kind)),
        Err(_) => KINDS.map(|kind| der_import(data, kind)),
    };
    // Each error has a message.
    for error in imports.iter().filter_map(|import| import.as_ref().err()) {
        assert!(!error.to_string().is_empty());
    }
    let [pkcs1, pkcs8] = &imports;
    if str::from_utf8(data).is_err() {
        match numbers(data) {
            Some(Some(numbers)) => {
                assert_eq!(pkcs1.as_ref().err(), numbers.verdict().as_ref().err());
            }
            // A key with more than two primes.
            Some(None) => {}
            None => assert!(matches!(
                pkcs1,
                Err(Error::Key(
                    KeyFault::Der { .. } | KeyFault::Structure { .. }
                ))
            )),
        }
        // No document is both.
        assert!(pkcs1.is_err() || pkcs8.is_err());
    }
    imports
}

/// Checks that a public key has an encoding that reproduces it; all else is an error.
fn public_import(data: &[u8]) {
    let imports = [
        PublicKey::from_spki_der(data),
        PublicKey::from_pkcs1_der(data),
        PublicKey::from_certificate_der(data),
        PublicKey::from_pem(data),
    ];
    for import in imports {
        match import {
            Ok(key) => {
                assert_eq!(PublicKey::from_spki_der(key.as_der()).unwrap(), key);
                assert_eq!(PublicKey::from_pem(key.to_pem()).unwrap(), key);
                let [n, e] = [key.n(), key.e()].map(|octets| BigUint::from_bytes_be(&octets));
                assert!(n.bit(0) && e.bit(0) && e > BigUint::from(1u8) && e < n && e.bits() <= 64);
                assert_eq!(n.bits(), u64::from(key.bits()));
            }
            Err(error) => assert!(matches!(error, Error::PublicKey(_)), "{error:?}"),
        }
    }
}

/// A key structure and its importer.
#[derive(Clone, Copy)]
struct Kind {
    label: &'static str,
    from_der: fn(&[u8]) -> Result<KeyHandle, Error>,
    from_pem: fn(&str) -> Result<KeyHandle, Error>,
}

const KINDS: [Kind; 2] = [
    Kind {
        label: "RSA PRIVATE KEY",
        from_der: KeyHandle::from_pkcs1_der,
        from_pem: |text| KeyHandle::from_pkcs1_pem(text),
    },
    Kind {
        label: "PRIVATE KEY",
        from_der: KeyHandle::from_pkcs8_der,
        from_pem: |text| KeyHandle::from_pkcs8_pem(text),
    },
];

/// Reads DER; the same data in PEM must have the same result.
fn der_import(der: &[u8], kind: Kind) -> Result<(), Error> {
    let label = kind.label;
    let key = (kind.from_der)(der);
    let end = ["\n", "\r\n"][der.len() % 2];
    let mut text = format!("-----BEGIN {label}-----{end}");
    for line in BASE64.encode(der).as_bytes().chunks(64) {
        text.push_str(str::from_utf8(line).unwrap());
        text.push_str(end);
    }
    text.push_str(&format!("-----END {label}-----{end}"));
    let again = (kind.from_pem)(&text);
    assert_eq!(key.as_ref().err(), again.as_ref().err());
    let key = key?;
    assert_eq!(key.public_key(), again?.public_key());
    check_public_half(&key);
    Ok(())
}

/// Reads PEM; accepted text is base64 of DER with the same result.
fn text_import(text: &str, kind: Kind) -> Result<(), Error> {
    let key = (kind.from_pem)(text);
    let body = first_block(text, kind.label).and_then(|rest| {
        let (body, _) = rest.split_once(&format!("-----END {}-----", kind.label))?;
        let octets = body
            .bytes()
            .filter(|octet| !b" \t\r\n\x0b\x0c".contains(octet));
        BASE64.decode(&octets.collect::<Vec<_>>()).ok()
    });
    match (&key, body) {
        (Err(Error::Key(fault)), None) => assert!(
            matches!(
                fault,
                KeyFault::Pem
                    | KeyFault::Label { .. }
                    | KeyFault::Encrypted
                    | KeyFault::EscapedNewlines
            ),
            "{fault:?} in what is no base64"
        ),
        (_, None) => panic!("a document was found in what is no base64"),
        (_, Some(der)) => assert_eq!(key.as_ref().err(), (kind.from_der)(&der).as_ref().err()),
    }
    check_public_half(&key?);
    Ok(())
}

/// The text after the first line that starts a block with this label. Lines before it are arbitrary
/// (RFC 7468, section 2).
fn first_block<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let begin = format!("-----BEGIN {label}-----");
    let mut lines = text.split_inclusive(['\r', '\n']).scan(0, |end, line| {
        let start = *end;
        *end += line.len();
        Some((start, line))
    });
    lines.find_map(|(start, line)| {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let line = line.trim_start_matches([' ', '\t']);
        let is_begin = line.starts_with(&begin);
        is_begin.then(|| text[start..].split_once(&begin).expect("found").1)
    })
}

fn check_public_half(key: &KeyHandle) {
    let (n, e) = (
        BigUint::from_bytes_be(&key.n()),
        BigUint::from_bytes_be(&key.e()),
    );
    let spki = key.public_key_der();
    let mut info = sequence(&spki).unwrap();
    field(&mut info, 0x30).unwrap();
    let bits = field(&mut info, 0x03).unwrap();
    let mut public = sequence(&bits[1..]).unwrap();
    assert_eq!(
        [integer(&mut public), integer(&mut public)],
        [Some(n.clone()), Some(e.clone())]
    );
    // Long keys would take most of the time.
    if key.bits() <= 2048 {
        check_use(key, &n, &e);
    }
}

/// The numbers of an `RSAPrivateKey` (RFC 8017, appendix A.1.2) in strict DER; `Some(None)` if it
/// has more than two primes.
fn numbers(der: &[u8]) -> Option<Option<Numbers>> {
    let mut fields = sequence(der)?;
    let version = field(&mut fields, 0x02)?;
    let [n, e, d, p, q, dp, dq, qinv] = {
        let mut all = [const { BigUint::ZERO }; 8];
        for number in &mut all {
            *number = integer(&mut fields)?;
        }
        all
    };
    match version {
        [0] if fields.is_empty() => Some(Some(Numbers {
            n,
            e,
            d,
            primes: Some([p, q]),
            dp: Some(dp),
            dq: Some(dq),
            qinv: Some(qinv),
        })),
        [1] => {
            let mut others = field(&mut fields, 0x30)?;
            while !others.is_empty() {
                let mut other = field(&mut others, 0x30)?;
                for _ in 0..3 {
                    integer(&mut other)?;
                }
                other.is_empty().then_some(())?;
            }
            fields.is_empty().then_some(None)
        }
        _ => None,
    }
}

/// The contents of a SEQUENCE that spans `der`.
fn sequence(mut der: &[u8]) -> Option<&[u8]> {
    let contents = field(&mut der, 0x30)?;
    der.is_empty().then_some(contents)
}

/// Takes the contents of the next field, which must have this tag (X.690, section 10.1).
fn field<'a>(fields: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let [first, length, rest @ ..] = *fields else {
        return None;
    };
    let (len, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            let len = octets
                .iter()
                .fold(0, |len, octet| len << 8 | usize::from(*octet));
            let is_shortest = octets[0] != 0 && len >= 0x80;
            is_shortest.then_some((len, rest))?
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(len)?;
    *fields = rest;
    (*first == tag).then_some(contents)
}

/// Takes an INTEGER that is not negative (X.690, section 8.3).
fn integer(fields: &mut &[u8]) -> Option<BigUint> {
    let octets = field(fields, 0x02)?;
    let is_shortest = match octets {
        [] => false,
        [0, next, ..] => *next >= 0x80,
        [first, ..] => *first < 0x80,
    };
    is_shortest.then(|| BigUint::from_bytes_be(octets))
}
