//! PEM (RFC 7468), read leniently: lines of any length, white space anywhere, any text around the
//! block.

use alloc::vec;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{Choice, CtEq};

use super::KeyFault;
use crate::rsa::Error;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// The label of a PEM block, and its DER.
pub type PemBlock<'l> = (&'l str, Secret<Vec<u8>>);

/// Decodes the first PEM block with one of `labels`; returns its label and its DER, or `None` if
/// there is no such block.
///
/// Blocks with other labels and text around blocks are skipped; they need not be UTF-8. A block
/// begins at the beginning of a line; only blanks, tabs or a byte order mark may precede it. White
/// space in its base64 is ignored: lines have any length, and blanks or empty lines may lie between
/// them.
///
/// Constant-time in the base64 digits; the places of white space are public. Copies are wiped. The
/// time is linear in the length of `pem`.
///
/// ```
/// use batch_modexp::rsa::decode_pem;
///
/// let pem = "-----BEGIN PUBLIC KEY-----\nMAMC\nAQU=\n-----END PUBLIC KEY-----\n";
/// let (label, der) = decode_pem(pem, &["RSA PUBLIC KEY", "PUBLIC KEY"])?.expect("a public key");
/// assert_eq!((label, &der[..]), ("PUBLIC KEY", &[0x30, 3, 2, 1, 5][..]));
/// # Ok::<(), batch_modexp::rsa::Error>(())
/// ```
///
/// # Errors
///
/// In [`Error::Key`]: [`KeyFault::Pem`] if the block has no end or is no base64;
/// [`KeyFault::Encrypted`] if it is encrypted as in RFC 1421, the format before PKCS#8;
/// [`KeyFault::EscapedNewlines`].
pub fn decode_pem<'l>(
    pem: impl AsRef<[u8]>,
    labels: &[&'l str],
) -> Result<Option<PemBlock<'l>>, Error> {
    let text = pem.as_ref();
    let decoded = match find_block(text, labels) {
        None => Ok(None),
        Some((label, body)) => decode_body(label, body).map(|der| Some((label, der))),
    };
    match decoded {
        Ok(None) | Err(KeyFault::Pem) if has_escaped_newlines(text) => {
            Err(Error::Key(KeyFault::EscapedNewlines))
        }
        decoded => decoded.map_err(Error::Key),
    }
}

/// Whether anything in `text` looks like the beginning of a block.
pub(super) fn has_block(text: &[u8]) -> bool {
    contains(text, BEGIN)
}

/// The label of the first block with one of `labels`, and the text after that label.
fn find_block<'a, 'l>(text: &'a [u8], labels: &[&'l str]) -> Option<(&'l str, &'a [u8])> {
    let mut rest = text;
    loop {
        if let Some(header) = trim_start(rest).strip_prefix(BEGIN) {
            let body = |label: &str| header.strip_prefix(label.as_bytes())?.strip_prefix(DASHES);
            let found = labels.iter().find_map(|label| Some((*label, body(label)?)));
            if found.is_some() {
                return found;
            }
        }
        let end = rest.iter().position(|octet| b"\r\n".contains(octet))?;
        rest = &rest[end + 1..];
    }
}

/// `line` without the characters that may precede a block.
fn trim_start(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let blanks = line.iter().take_while(|octet| b" \t".contains(octet));
    &line[blanks.count()..]
}

/// Decodes the base64 at the beginning of `body`, up to the end of the block.
fn decode_body(label: &str, body: &[u8]) -> Result<Secret<Vec<u8>>, KeyFault> {
    // Base64 has no hyphens, so the first one begins the last line, if the block has an end. Of the
    // other octets it is only revealed that they are no hyphens.
    let len = body
        .iter()
        .position(|octet| reveal(octet.ct_eq(&b'-')))
        .ok_or(KeyFault::Pem)?;
    let (base64, end) = body.split_at(len);
    let is_end = end
        .strip_prefix(END)
        .and_then(|end| end.strip_prefix(label.as_bytes()))
        .is_some_and(|end| end.starts_with(DASHES));
    if !is_end {
        // Such headers end with the name of a cipher, and most of these names have a hyphen.
        let is_encrypted = contains(base64, b"Proc-Type: 4,ENCRYPTED")
            || contains(&body[..body.len().min(64)], b"Proc-Type: 4,ENCRYPTED");
        return Err(if is_encrypted {
            KeyFault::Encrypted
        } else {
            KeyFault::Pem
        });
    }
    let mut digits = Secret::new(Vec::with_capacity(len));
    digits.extend(base64.iter().filter(|octet| !is_white(**octet)));
    // In a buffer of this crate, which is wiped on every path.
    let mut der = Secret::new(vec![0; digits.len() / 4 * 3]);
    let decoded = Base64::decode(&*digits, &mut der).map_err(|_| KeyFault::Pem)?;
    let len = decoded.len();
    der.truncate(len);
    Ok(der)
}

/// Whether an octet is white space. Only the answer is revealed.
fn is_white(octet: u8) -> bool {
    let white = b" \t\r\n\x0b\x0c".iter();
    reveal(white.fold(Choice::FALSE, |found, other| found | octet.ct_eq(other)))
}

/// Whether `text` has an escaped newline where the first line of a block should end.
fn has_escaped_newlines(text: &[u8]) -> bool {
    contains(text, br"-----\n") || contains(text, br"-----\r\n")
}

fn contains(text: &[u8], pattern: &[u8]) -> bool {
    text.windows(pattern.len()).any(|window| window == pattern)
}
