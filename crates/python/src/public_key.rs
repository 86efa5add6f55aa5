//! Public keys: verification and encryption.

use std::ops::Range;

use batch_modexp::rsa::{self, AnyEncryptionScheme, AnyScheme, BatchEncryptor, BatchVerifier};
use getrandom::SysRng;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::messages::Keys;
use crate::{error, machine, messages, schemes};

/// A public key. It can be pickled.
#[pyclass(frozen, eq, hash, module = "batch_modexp")]
#[derive(PartialEq)]
pub(crate) struct PublicKey(rsa::PublicKey);

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_der().hash(state);
    }
}

impl PublicKey {
    pub(crate) fn new(key: rsa::PublicKey) -> Self {
        Self(key)
    }
}

#[pymethods]
impl PublicKey {
    /// Reads the first public key of a PEM file: SubjectPublicKeyInfo, PKCS#1, or that of a
    /// certificate, which is not verified.
    #[staticmethod]
    fn from_pem(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let key = match data.extract::<&str>() {
            Ok(text) => rsa::PublicKey::from_pem(text),
            Err(_) => rsa::PublicKey::from_pem(messages::octets("data", data)?),
        };
        key.map(Self).map_err(error::plain)
    }

    /// Reads SubjectPublicKeyInfo or PKCS#1 in DER.
    #[staticmethod]
    fn from_der(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let data = messages::octets("data", data)?;
        let key = rsa::PublicKey::from_spki_der(&data)
            .or_else(|error| rsa::PublicKey::from_pkcs1_der(&data).map_err(|_| error));
        key.map(Self).map_err(error::plain)
    }

    /// Prepares the key with modulus n and public exponent e.
    #[staticmethod]
    fn from_numbers(n: &Bound<'_, PyAny>, e: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (n, e) = (octets_of(n)?, octets_of(e)?);
        let key = rsa::PublicKey::from_numbers(n.as_bytes(), e.as_bytes());
        key.map(Self).map_err(error::plain)
    }

    /// Takes a key of the package cryptography: anything with `public_bytes`.
    #[staticmethod]
    fn from_cryptography(key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let formats = key
            .py()
            .import("cryptography.hazmat.primitives.serialization")?;
        let arguments = (
            formats.getattr("Encoding")?.getattr("DER")?,
            formats
                .getattr("PublicFormat")?
                .getattr("SubjectPublicKeyInfo")?,
        );
        Self::from_der(&key.call_method1("public_bytes", arguments)?)
    }

    /// The length of the modulus in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// The length of the modulus, and of a signature, in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    /// The modulus.
    #[getter]
    fn n<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        integer(py, &self.0.n())
    }

    /// The public exponent.
    #[getter]
    fn e<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        integer(py, &self.0.e())
    }

    /// SubjectPublicKeyInfo in DER.
    fn to_der<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.as_der())
    }

    /// SubjectPublicKeyInfo in PEM.
    fn to_pem(&self) -> String {
        self.0.to_pem()
    }

    /// Verifies messages, each with its signature: a list of bools. Of PSS, `salt_length` is that
    /// of a digest, a number, or "any". A key that is unfit for the scheme, or a digest of wrong
    /// length, is an Error. With `raise_invalid` so is the first signature that is not valid.
    #[pyo3(signature = (messages, signatures, padding="pss", hash="sha256", *, salt_length=None, prehashed=false, raise_invalid=false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn verify_list<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        signatures: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        salt_length: Option<&Bound<'py, PyAny>>,
        prehashed: bool,
        raise_invalid: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let scheme = schemes::to_verify(padding, hash, salt_length)?;
        let key = Keys::One(&self.0);
        verify(key, messages, signatures, scheme, prehashed, raise_invalid)
    }

    /// Encrypts messages.
    #[pyo3(signature = (messages, padding="oaep", hash="sha256", *, mgf_hash=None, label=None, return_exceptions=false))]
    fn encrypt_list<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        mgf_hash: Option<&str>,
        label: Option<&Bound<'py, PyAny>>,
        return_exceptions: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let label = schemes::label(label)?;
        let scheme = schemes::encryption(padding, hash, mgf_hash, &label)?;
        encrypt(Keys::One(&self.0), messages, scheme, return_exceptions)
    }

    fn __repr__(&self) -> String {
        format!("<PublicKey of {} bits>", self.0.bits())
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_der = py.get_type::<Self>().getattr("from_der")?;
        Ok((from_der, (self.to_der(py),)))
    }
}

/// Verifies messages, each with its own key and its signature.
#[pyfunction]
#[pyo3(signature = (keys, messages, signatures, padding="pss", hash="sha256", *, salt_length=None, prehashed=false, raise_invalid=false))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn verify_list<'py>(
    keys: &Bound<'py, PyAny>,
    messages: &Bound<'py, PyAny>,
    signatures: &Bound<'py, PyAny>,
    padding: &str,
    hash: &str,
    salt_length: Option<&Bound<'py, PyAny>>,
    prehashed: bool,
    raise_invalid: bool,
) -> PyResult<Bound<'py, PyList>> {
    let scheme = schemes::to_verify(padding, hash, salt_length)?;
    let keys = messages::keys(keys)?;
    let keys = each(&keys);
    verify(keys, messages, signatures, scheme, prehashed, raise_invalid)
}

/// Encrypts messages, each under its own key.
#[pyfunction]
#[pyo3(signature = (keys, messages, padding="oaep", hash="sha256", *, mgf_hash=None, label=None, return_exceptions=false))]
pub(crate) fn encrypt_list<'py>(
    keys: &Bound<'py, PyAny>,
    messages: &Bound<'py, PyAny>,
    padding: &str,
    hash: &str,
    mgf_hash: Option<&str>,
    label: Option<&Bound<'py, PyAny>>,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let label = schemes::label(label)?;
    let scheme = schemes::encryption(padding, hash, mgf_hash, &label)?;
    let keys = messages::keys(keys)?;
    encrypt(each(&keys), messages, scheme, return_exceptions)
}

fn each<'a>(keys: &'a [Bound<'_, PublicKey>]) -> Keys<'a, rsa::PublicKey> {
    Keys::Each(keys.iter().map(|key| &key.get().0).collect())
}

fn verify<'py>(
    keys: Keys<'_, rsa::PublicKey>,
    messages: &Bound<'py, PyAny>,
    signatures: &Bound<'py, PyAny>,
    (scheme, any_salt): (AnyScheme, bool),
    prehashed: bool,
    raise_invalid: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let messages = messages::list("messages", messages)?;
    let signatures = messages::list("signatures", signatures)?;
    let keys = keys.of_items("messages", messages.len())?;
    let lengths = [messages.len(), signatures.len()];
    messages::check_lengths(["messages", "signatures"], lengths)?;
    let verifier = BatchVerifier::new(machine::shared(py)?, scheme).any_salt_len(any_salt);
    let compute = |range: Range<usize>| {
        let part: Vec<_> = range
            .map(|i| (keys[i], &messages[i], &signatures[i]))
            .collect();
        match prehashed {
            true => verifier.verify_prehash_each(&part),
            false => verifier.verify_each(&part),
        }
    };
    let list = PyList::empty(py);
    let works = messages::public_work(&keys);
    let work = |i: usize| works[i];
    machine::in_pieces(py, messages.len(), work, compute, |start, verdicts| {
        let verdicts = verdicts.map_err(|error| error::of_rsa(py, error, start))?;
        for verdict in verdicts.iter() {
            use rsa::Error::{BlockOutOfRange, Verification};
            match verdict {
                Ok(()) => list.append(true)?,
                Err(Verification { .. } | BlockOutOfRange { .. }) if !raise_invalid => {
                    list.append(false)?;
                }
                Err(error) => return Err(error::of_rsa(py, error, start)),
            }
        }
        Ok(())
    })?;
    Ok(list)
}

fn encrypt<'py>(
    keys: Keys<'_, rsa::PublicKey>,
    messages: &Bound<'py, PyAny>,
    scheme: AnyEncryptionScheme<'_>,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let messages = messages::list("messages", messages)?;
    let keys = keys.of_items("messages", messages.len())?;
    let encryptor = BatchEncryptor::new(machine::shared(py)?, scheme);
    let compute = |range: Range<usize>| {
        let part: Vec<_> = range.map(|i| (keys[i], &messages[i])).collect();
        encryptor.encrypt_each(&mut SysRng, &part)
    };
    let list = PyList::empty(py);
    let works = messages::public_work(&keys);
    let work = |i: usize| works[i];
    machine::in_pieces(py, messages.len(), work, compute, |start, ciphertexts| {
        let ciphertexts = ciphertexts.map_err(|error| error::of_rsa(py, error, start))?;
        messages::append(&list, start, ciphertexts.iter(), return_exceptions)
    })?;
    Ok(list)
}

/// The octets of an integer, big-endian.
fn octets_of<'py>(integer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = integer.py();
    let integer = py.import("operator")?.getattr("index")?.call1((integer,))?;
    if integer.lt(0)? {
        return Err(error::plain("n and e are positive"));
    }
    let bits: u32 = integer.call_method0("bit_length")?.extract()?;
    let octets = integer.call_method1("to_bytes", (bits.div_ceil(8).max(1), "big"))?;
    Ok(octets.cast_into::<PyBytes>()?)
}

fn integer<'py>(py: Python<'py>, octets: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let from_bytes = py.get_type::<PyInt>().getattr("from_bytes")?;
    from_bytes.call1((PyBytes::new(py, octets), "big"))
}
