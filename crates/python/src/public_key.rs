//! Public keys: verification and encryption.

use batch_modexp::rsa::{self, BatchEncryptor, BatchVerifier};
use getrandom::SysRng;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::messages::Octets;
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
    /// of a digest, a number, or "any". With `raise_invalid` the first signature that is not valid
    /// is an Error.
    #[pyo3(signature = (messages, signatures, padding="pss", hash="sha256", *, salt_length=None, prehashed=false, raise_invalid=false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn verify_list<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        signatures: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        salt_length: Option<&Bound<'py, PyAny>>,
        prehashed: bool,
        raise_invalid: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let any_salt = salt_length.is_some_and(|length| length.eq("any").unwrap_or(false));
        if any_salt && padding != "pss" {
            return Err(error::plain("only padding \"pss\" has a salt_length"));
        }
        let salt_length = salt_length.filter(|_| !any_salt);
        let salt_length = salt_length.map(|length| length.extract()).transpose()?;
        let scheme = schemes::signature(padding, hash, salt_length)?;
        let messages = messages::list("messages", messages)?;
        let signatures = messages::list("signatures", signatures)?;
        let lengths = [messages.len(), signatures.len()];
        messages::check_lengths(["messages", "signatures"], lengths)?;
        let signed: Vec<(Octets, Octets)> = messages.into_iter().zip(signatures).collect();
        let verifier = BatchVerifier::new(machine::shared(py)?, scheme).any_salt_len(any_salt);
        let compute = |range: std::ops::Range<usize>| match prehashed {
            true => verifier.verify_prehash(&self.0, &signed[range]),
            false => verifier.verify(&self.0, &signed[range]),
        };
        let list = PyList::empty(py);
        let work = messages::public_work(self.0.size());
        machine::in_pieces(py, signed.len(), work, compute, |start, verdicts| {
            let verdicts = verdicts.map_err(|error| error::of_rsa(py, error, start))?;
            for verdict in verdicts.iter() {
                match verdict {
                    Err(error) if raise_invalid => return Err(error::of_rsa(py, error, start)),
                    verdict => list.append(verdict.is_ok())?,
                }
            }
            Ok(())
        })?;
        Ok(list)
    }

    /// Encrypts messages.
    #[pyo3(signature = (messages, padding="oaep", hash="sha256", *, label=None, return_exceptions=false))]
    fn encrypt_list<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        label: Option<&Bound<'py, PyAny>>,
        return_exceptions: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let label = label
            .map(|label| messages::octets("label", label))
            .transpose()?;
        let label = label.as_deref().unwrap_or_default();
        let scheme = schemes::encryption(padding, hash, label)?;
        let messages = messages::list("messages", messages)?;
        let backend = machine::shared(py)?;
        let compute = |range: std::ops::Range<usize>| {
            let part = &messages[range];
            BatchEncryptor::new(&backend, scheme).encrypt(&mut SysRng, &self.0, part)
        };
        let list = PyList::empty(py);
        let work = messages::public_work(self.0.size());
        machine::in_pieces(py, messages.len(), work, compute, |start, ciphertexts| {
            let ciphertexts = ciphertexts.map_err(|error| error::of_rsa(py, error, start))?;
            messages::append(&list, start, ciphertexts.iter(), return_exceptions)
        })?;
        Ok(list)
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
