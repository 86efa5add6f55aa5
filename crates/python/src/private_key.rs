//! Private keys: signatures and decryption.

use std::ops::Range;

use batch_modexp::rsa::{AnyEncryptionScheme, AnyScheme, BatchDecryptor, BatchSigner, KeyHandle};
use batch_modexp::secret::Secret;
use getrandom::SysRng;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::messages::Keys;
use crate::public_key::PublicKey;
use crate::{error, machine, messages, schemes};

/// A private key. It is wiped when the last object that uses it goes.
#[pyclass(frozen, subclass, module = "batch_modexp")]
pub(crate) struct PrivateKey(KeyHandle);

impl PrivateKey {
    pub(crate) fn new(key: KeyHandle) -> Self {
        Self(key)
    }

    pub(crate) fn handle(&self) -> &KeyHandle {
        &self.0
    }
}

#[pymethods]
impl PrivateKey {
    /// Reads the first private key of a PEM file: PKCS#8, which may be encrypted, or PKCS#1.
    #[staticmethod]
    #[pyo3(signature = (data, password=None))]
    fn from_pem(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        password: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let data = secret_octets("data", data)?;
        let password = password
            .map(|password| secret_octets("password", password))
            .transpose()?;
        let key = py.detach(|| match password {
            None => KeyHandle::from_pem(&*data),
            Some(password) => KeyHandle::from_pkcs8_encrypted_pem(&*data, &*password),
        });
        key.map(Self).map_err(error::plain)
    }

    /// Reads PKCS#8 in DER, which is encrypted if there is a password, or PKCS#1.
    #[staticmethod]
    #[pyo3(signature = (data, password=None))]
    fn from_der(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        password: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let data = secret_octets("data", data)?;
        let password = password
            .map(|password| secret_octets("password", password))
            .transpose()?;
        let key = py.detach(|| match password {
            Some(password) => KeyHandle::from_pkcs8_encrypted_der(&data, &*password),
            None => {
                // If neither fits, the error is that of PKCS#8, the usual format.
                let pkcs8 = KeyHandle::from_pkcs8_der(&data);
                pkcs8.or_else(|error| KeyHandle::from_pkcs1_der(&data).map_err(|_| error))
            }
        });
        key.map(Self).map_err(error::plain)
    }

    /// Takes a key of the package cryptography: anything with `private_bytes`.
    #[staticmethod]
    fn from_cryptography(key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = key.py();
        let formats = py.import("cryptography.hazmat.primitives.serialization")?;
        let arguments = (
            formats.getattr("Encoding")?.getattr("DER")?,
            formats.getattr("PrivateFormat")?.getattr("PKCS8")?,
            formats.call_method0("NoEncryption")?,
        );
        let der = key.call_method1("private_bytes", arguments)?;
        let der = der.cast_into::<PyBytes>()?;
        let key = KeyHandle::from_pkcs8_der(der.as_bytes());
        key.map(Self).map_err(error::plain)
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

    /// The public key.
    fn public_key(&self) -> PublicKey {
        PublicKey::new(self.0.public_key())
    }

    /// Signs messages. Without `salt_length` a salt of PSS is as long as a digest.
    #[pyo3(signature = (messages, padding="pss", hash="sha256", *, salt_length=None, prehashed=false, return_exceptions=false))]
    fn sign_list<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        salt_length: Option<usize>,
        prehashed: bool,
        return_exceptions: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let scheme = schemes::signature(padding, hash, salt_length)?;
        let key = Keys::One(&self.0);
        sign(key, messages, scheme, prehashed, return_exceptions)
    }

    /// Decrypts ciphertexts.
    #[pyo3(signature = (ciphertexts, padding="oaep", hash="sha256", *, mgf_hash=None, label=None, return_exceptions=false))]
    fn decrypt_list<'py>(
        &self,
        ciphertexts: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        mgf_hash: Option<&str>,
        label: Option<&Bound<'py, PyAny>>,
        return_exceptions: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let label = schemes::label(label)?;
        let scheme = schemes::encryption(padding, hash, mgf_hash, &label)?;
        decrypt(Keys::One(&self.0), ciphertexts, scheme, return_exceptions)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?.to_string();
        Ok(format!("<{name} of {} bits>", slf.get().0.bits()))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a private key is not pickled; send its document, and read it there",
        ))
    }
}

/// Signs messages, each with its own key.
#[pyfunction]
#[pyo3(signature = (keys, messages, padding="pss", hash="sha256", *, salt_length=None, prehashed=false, return_exceptions=false))]
pub(crate) fn sign_list<'py>(
    keys: &Bound<'py, PyAny>,
    messages: &Bound<'py, PyAny>,
    padding: &str,
    hash: &str,
    salt_length: Option<usize>,
    prehashed: bool,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let scheme = schemes::signature(padding, hash, salt_length)?;
    let keys = messages::keys(keys)?;
    sign(each(&keys), messages, scheme, prehashed, return_exceptions)
}

/// Decrypts ciphertexts, each with its own key.
#[pyfunction]
#[pyo3(signature = (keys, ciphertexts, padding="oaep", hash="sha256", *, mgf_hash=None, label=None, return_exceptions=false))]
pub(crate) fn decrypt_list<'py>(
    keys: &Bound<'py, PyAny>,
    ciphertexts: &Bound<'py, PyAny>,
    padding: &str,
    hash: &str,
    mgf_hash: Option<&str>,
    label: Option<&Bound<'py, PyAny>>,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let label = schemes::label(label)?;
    let scheme = schemes::encryption(padding, hash, mgf_hash, &label)?;
    let keys = messages::keys(keys)?;
    decrypt(each(&keys), ciphertexts, scheme, return_exceptions)
}

fn each<'a>(keys: &'a [Bound<'_, PrivateKey>]) -> Keys<'a, KeyHandle> {
    Keys::Each(keys.iter().map(|key| &key.get().0).collect())
}

fn sign<'py>(
    keys: Keys<'_, KeyHandle>,
    messages: &Bound<'py, PyAny>,
    scheme: AnyScheme,
    prehashed: bool,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let messages = messages::list("messages", messages)?;
    let keys = keys.of_items("messages", messages.len())?;
    let signer = BatchSigner::new(machine::shared(py)?, scheme);
    let compute = |range: Range<usize>| {
        let part: Vec<_> = range.map(|i| (keys[i], &messages[i])).collect();
        match prehashed {
            true => signer.sign_prehash_each(&mut SysRng, &part),
            false => signer.sign_each(&mut SysRng, &part),
        }
    };
    let list = PyList::empty(py);
    let work = |i: usize| messages::private_work(keys[i]);
    machine::in_pieces(py, messages.len(), work, compute, |start, signatures| {
        let signatures = signatures.map_err(|error| error::of_rsa(py, error, start))?;
        messages::append(&list, start, signatures.iter(), return_exceptions)
    })?;
    Ok(list)
}

fn decrypt<'py>(
    keys: Keys<'_, KeyHandle>,
    ciphertexts: &Bound<'py, PyAny>,
    scheme: AnyEncryptionScheme<'_>,
    return_exceptions: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = ciphertexts.py();
    let ciphertexts = messages::list("ciphertexts", ciphertexts)?;
    let keys = keys.of_items("ciphertexts", ciphertexts.len())?;
    let decryptor = BatchDecryptor::new(machine::shared(py)?, scheme);
    let compute = |range: Range<usize>| {
        let part: Vec<_> = range.map(|i| (keys[i], &ciphertexts[i])).collect();
        decryptor.decrypt_each(&mut SysRng, &part)
    };
    let list = PyList::empty(py);
    let work = |i: usize| messages::private_work(keys[i]);
    machine::in_pieces(py, ciphertexts.len(), work, compute, |start, decrypted| {
        let decrypted = decrypted.map_err(|error| error::of_rsa(py, error, start))?;
        messages::append(&list, start, decrypted.iter(), return_exceptions)
    })?;
    Ok(list)
}

/// The octets of a `str` or a bytes-like object. This is the only copy of a `bytearray`, and it is
/// wiped.
fn secret_octets(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Secret<Vec<u8>>> {
    let octets = match object.extract::<&str>() {
        Ok(text) => text.as_bytes().to_vec(),
        Err(_) => messages::buffer(name, object)?.to_vec(object.py())?,
    };
    Ok(Secret::new(octets))
}
