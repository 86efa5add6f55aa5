//! Loading and generating keys.

mod container;
mod numbers;
mod restriction;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use batch_modexp::rsa::{KeyHandle, PublicKey, decrypt_pkcs8};
use batch_modexp::secret::Secret;
use getrandom::SysRng;
use indicatif::ProgressBar;
use rsa::PrivateKey;
use rsa::rand_core::UnwrapErr;

use super::args::{Passphrase, is_dash};
use super::failure::Failure;
use super::options::SchemeOptions;
use container::{Document, Kind};

/// The longest key file in bytes. A private key of 8192 bits has 6,400 in PEM; certificates may
/// come with it. The buffer for any file is as long, and wiped.
const MAX_FILE: usize = 256 << 10;

/// Reads the private key in the file at `path`, `-` for standard input, and checks that it may be
/// used for `scheme`.
pub fn load_private(
    path: &Path,
    passphrase: &Passphrase,
    scheme: SchemeOptions,
) -> Result<KeyHandle, Failure> {
    let document = private_document(path, passphrase)?;
    let bad_key = |what: String| Failure::bad_file(path, &what);
    numbers::private_key(&document, scheme).map_err(bad_key)
}

/// Reads the private key, and converts it for the `rsa` crate too.
pub fn load_for_comparison(
    path: &Path,
    passphrase: &Passphrase,
    scheme: SchemeOptions,
) -> Result<(KeyHandle, PrivateKey), Failure> {
    let document = private_document(path, passphrase)?;
    let bad_key = |what: String| Failure::bad_file(path, &what);
    let handle = numbers::private_key(&document, scheme).map_err(bad_key)?;
    Ok((handle, numbers::of_rsa(&document).map_err(bad_key)?))
}

/// The public key for the `rsa` crate, or why that crate refuses it.
pub fn public_half(key: &KeyHandle) -> Result<rsa::PublicKey, String> {
    numbers::public_half(key)
}

fn private_document(path: &Path, passphrase: &Passphrase) -> Result<Document, Failure> {
    let bytes = read(path)?;
    let bad_key = |what: String| Failure::bad_file(path, &what);
    let document = container::private_key(&bytes).map_err(bad_key)?;
    decrypted(document, path, passphrase)
}

/// Reads the public key in the file at `path`, also from a certificate or a private key.
pub fn load_public(
    path: &Path,
    passphrase: &Passphrase,
    scheme: SchemeOptions,
) -> Result<PublicKey, Failure> {
    let bytes = read(path)?;
    let bad_key = |what: String| Failure::bad_file(path, &what);
    let document = container::public_or_private_key(&bytes).map_err(bad_key)?;
    let document = decrypted(document, path, passphrase)?;
    numbers::public_key(&document, scheme).map_err(bad_key)
}

/// Generates a key of `bits` bits.
pub fn generate(bits: u32, quiet: bool) -> Result<(KeyHandle, PrivateKey), Failure> {
    let progress = if quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    progress.set_message(format!("generating a {bits}-bit key"));
    progress.enable_steady_tick(Duration::from_millis(100));
    let key = PrivateKey::new(&mut UnwrapErr(SysRng), bits as usize);
    progress.finish_and_clear();
    let key = key.map_err(|error| Failure::Work(format!("cannot generate a key: {error}")))?;
    Ok((KeyHandle::new(&key)?, key))
}

/// Decrypts `document` from the file at `path`, if it is encrypted.
fn decrypted(
    document: Document,
    path: &Path,
    passphrase: &Passphrase,
) -> Result<Document, Failure> {
    let bad_key = |what: &str| Failure::bad_file(path, what);
    match (document.kind, &passphrase.passphrase_file) {
        (Kind::Encrypted, Some(file)) => {
            let text = read(file)?;
            let first_line = first_line(&text);
            if first_line.is_empty() {
                return Err(Failure::bad_file(file, "there is no passphrase in it"));
            }
            let der = decrypt_pkcs8(&document.der, first_line);
            Ok(Document {
                kind: Kind::Pkcs8,
                der: der.map_err(|error| bad_key(&error.to_string()))?,
            })
        }
        (Kind::Encrypted, None) => Err(bad_key(
            "the key is encrypted; name a file with its passphrase by --passphrase-file",
        )),
        (_, Some(_)) => Err(bad_key(
            "the key is not encrypted; leave out --passphrase-file",
        )),
        (_, None) => Ok(document),
    }
}

/// The passphrase in a file, as `openssl -passin file:` reads it.
fn first_line(text: &[u8]) -> &[u8] {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or(text);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads a file into memory that is wiped.
fn read(path: &Path) -> Result<Secret<Vec<u8>>, Failure> {
    let unreadable = |error| Failure::unreadable(path, &error);
    let file: Box<dyn Read> = if is_dash(path) {
        standard_input().map_err(unreadable)?
    } else {
        Box::new(File::open(path).map_err(unreadable)?)
    };
    // Allocated at its full size: a vector that grows leaves copies behind.
    let mut bytes = Secret::new(Vec::with_capacity(MAX_FILE + 1));
    file.take(MAX_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_FILE {
        return Err(Failure::bad_file(path, "is longer than 256 KiB"));
    }
    Ok(bytes)
}

/// Standard input without the buffer of [`io::stdin`], which is not wiped.
#[cfg(unix)]
fn standard_input() -> io::Result<Box<dyn Read>> {
    let descriptor = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    Ok(Box::new(File::from(descriptor)))
}

#[cfg(not(unix))]
fn standard_input() -> io::Result<Box<dyn Read>> {
    Ok(Box::new(io::stdin()))
}
