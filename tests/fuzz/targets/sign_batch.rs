//! The input files of the program `sign_batch`: keys, lines, and pairs of messages and signatures.

use std::io::Write;
use std::path::Path;

use batch_modexp::backend::Auto;
use batch_modexp::rsa::{BatchVerifier, KeyHandle, Restriction};
use data_encoding::{BASE64, HEXLOWER, HEXUPPER};
use num_bigint::BigUint;
use rsa::sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use self::program::args::Passphrase;
use self::program::key::{load_private, load_public};
use self::program::lines::{Content, Lines};
use self::program::options::{Encoding, HashName, SchemeName, SchemeOptions};
use self::program::{schemes, verify};
use super::input::Input;
use super::keys::{TestKey, keys, padded};

#[allow(dead_code)]
#[path = "../../../examples/sign_batch/main.rs"]
mod program;

const NO_PASSPHRASE: Passphrase = Passphrase {
    passphrase_file: None,
};

pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let hash = [HashName::Sha256, HashName::Sha384, HashName::Sha512][usize::from(kind >> 4) % 3];
    match kind % 6 {
        0 => key(data, SchemeName::Pkcs1v15, hash),
        1 => key(data, SchemeName::Pss, hash),
        2 => lines(data, Content::Bytes),
        3 => lines(data, Content::Digests(hash)),
        4 => signatures(data, Encoding::Hex),
        _ => signatures(data, Encoding::Base64),
    }
}

/// Whether the program accepts an encrypted key.
#[allow(dead_code, reason = "libFuzzer has no use for it")]
pub fn loads_encrypted(key: &Path, passphrase: &Path) -> bool {
    let passphrase = Passphrase {
        passphrase_file: Some(passphrase.into()),
    };
    let scheme = SchemeOptions {
        scheme: SchemeName::Pss,
        hash: HashName::Sha256,
    };
    load_private(key, &passphrase, scheme).is_ok()
}

fn file(octets: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(octets).unwrap();
    file
}

/// Checks that the program finds keys in files with other content. It must find the same as the
/// library in the DER alone.
fn key(data: &[u8], scheme: SchemeName, hash: HashName) {
    let (file, scheme) = (file(data), SchemeOptions { scheme, hash });
    let private = load_private(file.path(), &NO_PASSPHRASE, scheme);
    let public = load_public(file.path(), &NO_PASSPHRASE, scheme);
    let in_der = |der: &[u8]| KeyHandle::from_pkcs8_der(der).or(KeyHandle::from_pkcs1_der(der));
    match &private {
        Ok(key) => {
            let found = in_pem(data).map_or_else(|| in_der(data), |der| in_der(&der));
            assert_eq!(key.public_key(), found.unwrap().public_key());
        }
        Err(failure) => {
            assert!(!failure.to_string().is_empty() && failure.status() == 2);
            // Blocks of PEM may be inside DER, where only the program looks for them.
            let is_refused = data.windows(11).any(|text| text == b"-----BEGIN ")
                || in_der(data).map_or(true, |key| key.restriction() != Restriction::None);
            assert!(is_refused, "{failure}");
        }
    }
    let has_public_block = data.windows(10).any(|text| text == b"PUBLIC KEY");
    if let (Ok(private), Ok(public), false) = (private, public, has_public_block) {
        assert_eq!(public, private.public_key());
    }
}

/// The DER in the only private-key block, if there is one.
fn in_pem(data: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(data);
    let mut blocks = text.split("-----BEGIN ").skip(1).filter_map(|block| {
        let (label, rest) = block.split_once("-----")?;
        let (body, _) = rest.split_once("-----END ")?;
        label.ends_with("PRIVATE KEY").then_some(body)
    });
    let body: Vec<u8> = blocks
        .next()?
        .bytes()
        .filter(|octet| !octet.is_ascii_whitespace())
        .collect();
    BASE64.decode(&body).ok()
}

fn lines(data: &[u8], content: Content) {
    let file = file(data);
    let mut lines = Lines::open(file.path(), content).unwrap();
    for (number, line) in split(data).into_iter().enumerate() {
        let expected = match content {
            Content::Bytes => Some(line.to_vec()),
            Content::Digests(hash) => {
                from_hex(text(line)).filter(|digest| digest.len() == hash.hash().digest_len())
            }
        };
        match (lines.next(), expected) {
            (Ok(line), expected) => assert_eq!(line, expected, "line {number}"),
            (Err(failure), None) => {
                let text = failure.to_string();
                assert!(
                    text.starts_with(&format!("line {} of ", number + 1)),
                    "{text}"
                );
                return;
            }
            (Err(failure), Some(_)) => panic!("line {number}: {failure}"),
        }
    }
    assert_eq!(lines.next().unwrap(), None);
}

/// Splits into lines. A newline at the end begins no further line.
fn split(data: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = data.split(|octet| *octet == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Removes the line ending of Windows.
fn text(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn from_hex(line: &[u8]) -> Option<Vec<u8>> {
    let digit = |octet: u8| char::from(octet).to_digit(16).map(|digit| digit as u8);
    let octet = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    line.chunks(2).map(octet).collect()
}

/// Checks messages with signatures that are valid, invalid or malformed, by PKCS#1 v1.5 with
/// SHA-256.
fn signatures(data: &[u8], encoding: Encoding) {
    let mut input = Input::new(data);
    let key = &keys()[input.below(2)];
    let (mut messages, mut signatures) = (Vec::new(), Vec::new());
    for _ in 0..input.below(6) {
        let kind = input.octet();
        let message = [kind & 3, input.octet()];
        let mut signature = signed(key, &message[..1]);
        let (place, change) = (usize::from(input.octet()), input.octet());
        match kind >> 2 & 7 {
            0 => signature[place % key.handle.size()] ^= change,
            1 => signature.truncate(place),
            2 => signature.push(change),
            3 => signature = (BigUint::from_bytes_be(&signature) + &key.n).to_bytes_be(),
            _ => {}
        }
        let mut line = match encoding {
            Encoding::Hex if kind & 0x40 == 0 => HEXLOWER.encode(&signature),
            Encoding::Hex => HEXUPPER.encode(&signature),
            Encoding::Base64 => BASE64.encode(&signature),
        }
        .into_bytes();
        if kind & 0x80 != 0 {
            line.extend(input.octets(usize::from(change) % 4));
        }
        messages.extend([message[0], b'\n']);
        signatures.extend(line);
        signatures.push(b'\n');
    }
    // The rest is the end of either file.
    let rest = input.octets(usize::MAX);
    match rest.first() {
        Some(first) if first & 1 == 0 => messages.extend(rest),
        _ => signatures.extend(rest),
    }
    compare(key, &messages, &signatures, encoding);
}

fn compare(key: &TestKey, messages: &[u8], signatures: &[u8], encoding: Encoding) {
    let files = [file(messages), file(signatures)];
    let [mut read_messages, mut read_signatures] = files
        .each_ref()
        .map(|file| Lines::open(file.path(), Content::Bytes).unwrap());
    let pairs = verify::next_pairs(&mut read_messages, &mut read_signatures).unwrap();
    let scheme = SchemeOptions {
        scheme: SchemeName::Pkcs1v15,
        hash: HashName::Sha256,
    };
    let checker = verify::Checker {
        verifier: BatchVerifier::new(Auto::new().unwrap(), schemes::any_scheme(scheme)),
        key: key.handle.public_key(),
        prehashed: false,
        encoding,
    };
    let faults = checker.faults(&pairs).unwrap();

    let (messages, signatures) = (split(messages), split(signatures));
    assert_eq!(faults.len(), messages.len().max(signatures.len()));
    for (i, fault) in faults.iter().enumerate() {
        let expected = match (messages.get(i), signatures.get(i)) {
            (None, _) => Some("there is no message".to_owned()),
            (_, None) => Some("there is no signature".to_owned()),
            (Some(message), Some(line)) => {
                let line = text(line);
                let octets = match encoding {
                    Encoding::Hex => from_hex(line).ok_or("the signature is not in hexadecimal"),
                    Encoding::Base64 => BASE64
                        .decode(line)
                        .map_err(|_| "the signature is not in base64"),
                };
                match octets {
                    Err(fault) => Some(fault.to_owned()),
                    Ok(octets) if octets == signed(key, message) => None,
                    Ok(octets) if octets.len() != key.handle.size() => Some(format!(
                        "the signature has {} bytes, and the key's have {}",
                        octets.len(),
                        key.handle.size()
                    )),
                    Ok(octets) if BigUint::from_bytes_be(&octets) >= key.n => {
                        Some("the signature is not below the modulus of the key".into())
                    }
                    Ok(_) => Some("the signature is not valid".into()),
                }
            }
        };
        assert_eq!(*fault, expected, "line {i}");
    }
}

/// RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2) in num-bigint: the only valid signature.
fn signed(key: &TestKey, message: &[u8]) -> Vec<u8> {
    const SHA256: [u8; 19] = [
        0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01,
        0x05, 0x00, 0x04, 0x20,
    ];
    let size = key.handle.size();
    let mut block = vec![0xff; size];
    (block[0], block[1], block[size - 52]) = (0, 1, 0);
    block[size - 51..size - 32].copy_from_slice(&SHA256);
    block[size - 32..].copy_from_slice(&Sha256::digest(message));
    let power = BigUint::from_bytes_be(&block).modpow(&key.d, &key.n);
    padded(&power, size)
}
