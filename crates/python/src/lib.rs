//! The Python module `batch_modexp`: batches of modular exponentiations and RSA operations.
//!
//! `python/batch_modexp` has the types that Python sees; this crate is its `_native`. Calls release
//! the interpreter's lock while they compute.

mod answers;
mod buffers;
mod error;
mod generate;
mod machine;
mod messages;
mod numbers;
mod operands;
mod private_key;
mod public_key;
mod queue;
mod schemes;

/// The functions and classes that `batch_modexp/__init__.py` imports.
#[pyo3::pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::generate::{GeneratedKey, generate_keys};
    #[pymodule_export]
    use crate::machine::{backend, set_gpus, set_threads};
    #[pymodule_export]
    use crate::numbers::{mulmod_list, powmod_base_list, powmod_exp_list, powmod_list};
    #[pymodule_export]
    use crate::private_key::{PrivateKey, decrypt_list, sign_list};
    #[pymodule_export]
    use crate::public_key::{PublicKey, encrypt_list, verify_list};
    #[pymodule_export]
    use crate::queue::SigningQueue;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // An error that concerns no item.
        module
            .getattr("Error")?
            .setattr("index", module.py().None())
    }
}
