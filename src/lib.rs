//! Constant-time batches of modular exponentiations and RSA operations, on CPUs with SIMD and on NVIDIA GPUs.
//!
//! A *batch* is a slice of independent instances or items. A *backend* computes batches; take [`backend::Auto`]
//! unless you want a particular one.
//!
//! # Which type for which job
//!
//! | job | type or trait |
//! |---|---|
//! | `base^exp mod m`, all exponents of one length | [`BatchModExp`] |
//! | the same, with a length for each exponent | [`BatchModExpEach`] |
//! | powers of one base, from a precomputed table | [`BatchFixedBaseExp`] |
//! | the same, with public exponents | [`BatchFixedBaseExpVartime`] |
//! | products of powers, such as `g^x h^y mod m` | [`BatchMultiExp`] |
//! | a product of many powers with public exponents | [`MultiExpVartime`] |
//! | powers with one public exponent | [`BatchModExpVartime`] |
//! | products `a b mod m`, also in Montgomery form | [`BatchModMul`] |
//! | RSA signatures: PKCS#1 v1.5, PSS | [`rsa::BatchSigner`] with an [`rsa::KeyHandle`] |
//! | RSA decryption: OAEP, PKCS#1 v1.5 with implicit rejection | [`rsa::BatchDecryptor`] |
//! | RSA verification and encryption | [`rsa::BatchVerifier`], [`rsa::BatchEncryptor`] with an [`rsa::PublicKey`] |
//! | RSA key generation by FIPS 186-5 | [`rsa::KeyGenerator`] |
//! | blind signatures by RFC 9474 | [`rsa::blind`] |
//! | single signatures from many threads or tasks | `queue::BatchQueue` |
//! | signatures through the traits of the crate `signature` | `queue::QueueKey`, `queue::AsyncQueueKey` |
//! | raw private operations | `rsa::hazmat` |
//!
//! ```
//! use batch_modexp::backend::Auto;
//! use batch_modexp::rsa::{BatchSigner, KeyHandle, Pss, sha2::Sha256};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
//! let key = KeyHandle::from_pem(&pem)?; // clones share the key; the last one wipes it
//! let signer = BatchSigner::new(Auto::new()?, Pss::<Sha256>::new());
//!
//! for signature in signer.sign(&mut getrandom::SysRng, &key, &["one", "two"])? {
//!     println!("{:x}", signature?); // an item that fails has its own error
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Backends
//!
//! [`backend::Auto::new`] selects the fastest instructions of the processor: AVX-512 IFMA or AVX-IFMA, else fused
//! multiply-add in double precision (AVX2 or NEON), else portable code. It never uses a GPU. The module [`backend`]
//! lists all backends, and `Auto::with` takes a particular one.
//!
//! `Auto::with_gpus` allows GPUs and sends each batch to the side that it expects to finish first. Keys and operands
//! then reach the memory of the devices, which is wiped after each call.
//!
//! The driver compiles a kernel before its first use, which takes seconds, and usually caches it on disk. Services
//! call `Cuda::prepare` and `Cuda::prepare_private_op` at start, and give the devices to `Auto::with_cuda`.
//! Kernels are chosen by times measured on an H200. `Cuda::calibrate` and `Auto::calibrate` measure your machine
//! instead, in some seconds, and the result can be stored.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `std` | yes | threads, SIMD backends with run-time detection, [`backend::Auto`] |
//! | `rsa` | yes | the module [`rsa`] |
//! | `queue` | no | the module `queue`; enables `std` and `rsa` |
//! | `encrypted` | no | import of encrypted PKCS#8 keys; enables `rsa` |
//! | `hazmat` | no | `rsa::hazmat`; enables `rsa` |
//! | `signature` | no | the traits of `signature` 3.0 for signatures and, with `queue`, for keys; enables `rsa` |
//! | `rsa-compat` | no | conversion of keys and signatures of the crate `rsa` 0.10; enables `rsa` |
//! | `cuda` | no | `backend::Cuda`; needs no CUDA toolkit to build and no GPU to run; enables `std` |
//! | `cuda-version` | no | builds cudarc, which calls the driver, for CUDA 12.0 |
//!
//! Without features the crate is `no_std` and needs only `alloc`. The feature `cuda` does not build on `wasm32`,
//! where cudarc's `libloading` finds no dynamic libraries.
//!
//! Exactly one CUDA version of cudarc must be chosen in a dependency tree: two give hundreds of compiler errors inside
//! cudarc. In a tree that names one, leave `cuda-version` out:
//!
//! ```toml
//! batch-modexp = { version = "0.1", features = ["cuda"] }
//! cudarc = { version = "0.19", features = ["cuda-12080"] } # or another version, or cuda-version-from-build-system
//! ```
//!
//! cudarc's features `dynamic-linking`, `static-linking` and `fallback-latest` also work with this crate. A
//! program built for CUDA 13 needs a driver that supports 13.0.
//!
//! Unoptimised builds take up to 100 times as long and may leave secrets on the stack. Set `opt-level = 3` for
//! `batch-modexp`, `batch-modexp-core` and `batch-modexp-cpu` in `[profile.dev.package]`.
//!
//! # Constant time
//!
//! No branch, address, loop count or allocation depends on a base, exponent, factor, modulus or private key.
//! Running times depend on public values only. These are the number of instances, the width of each number,
//! `exponent_bits`, and which instances share a reference to their modulus. Of an RSA key, the length of n, the public
//! exponent and the presence of primes are public.
//!
//! Functions and traits with `vartime` in their name also depend on the inputs that their documentation calls public.
//! Verification depends on keys, messages and signatures, all of them public. Buffers that held a secret are wiped,
//! also on errors and panics. `SECURITY.md` has the adversary, the limits, and the tests behind each defence.
//!
//! # Errors
//!
//! | error | comes from |
//! |---|---|
//! | [`Error`] | arithmetic and devices: a width or length out of range, no threads, a failed GPU |
//! | [`rsa::Error`] | keys, messages, ciphertexts and signatures; wraps [`Error`] as `Backend` |
//! | [`rsa::KeyFault`] | why a key was refused; inside [`rsa::Error::Key`] and [`rsa::Error::PublicKey`] |
//! | `queue::QueueError` | the queue: full, shut down, timed out; wraps [`rsa::Error`] as `Sign` |
//!
//! If an exponentiation or a product returns an error, all results of its batch are zero. In an RSA batch an item
//! that is wrong fails alone. Its error takes the place of its result, and [`rsa::Error::index`] gives its position.
//! The error [`rsa::Error::Fault`] means that a result did not pass its check. Suspect the hardware, the backend or the
//! key. No error carries a secret. A call panics if its batch and its output differ in length.
//!
//! [`rsa`]: crate::rsa
//! [`rsa::BatchDecryptor`]: crate::rsa::BatchDecryptor
//! [`rsa::BatchEncryptor`]: crate::rsa::BatchEncryptor
//! [`rsa::BatchSigner`]: crate::rsa::BatchSigner
//! [`rsa::BatchVerifier`]: crate::rsa::BatchVerifier
//! [`rsa::Error`]: crate::rsa::Error
//! [`rsa::Error::Fault`]: crate::rsa::Error::Fault
//! [`rsa::Error::Key`]: crate::rsa::Error::Key
//! [`rsa::Error::PublicKey`]: crate::rsa::Error::PublicKey
//! [`rsa::Error::index`]: crate::rsa::Error::index
//! [`rsa::KeyFault`]: crate::rsa::KeyFault
//! [`rsa::KeyGenerator`]: crate::rsa::KeyGenerator
//! [`rsa::KeyHandle`]: crate::rsa::KeyHandle
//! [`rsa::PublicKey`]: crate::rsa::PublicKey
//! [`rsa::blind`]: crate::rsa::blind

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(
    unreachable_pub,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod backend;
#[cfg(all(
    test,
    feature = "std",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        feature = "cuda",
        feature = "rsa"
    )
))]
#[path = "../tests/common/need.rs"]
mod need;
#[cfg(feature = "queue")]
#[cfg_attr(docsrs, doc(cfg(feature = "queue")))]
pub mod queue;
#[cfg(feature = "rsa")]
pub mod rsa;
#[cfg(all(test, feature = "rsa", feature = "std", target_arch = "x86_64"))]
#[path = "../tests/common/simd.rs"]
mod simd;
#[cfg(all(test, feature = "rsa", feature = "std", target_arch = "x86_64"))]
#[path = "../tests/common/valgrind.rs"]
mod valgrind;

#[doc(inline)]
pub use batch_modexp_core::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModExpEach, BatchModExpVartime,
    BatchModMul, BatchMultiExp, Error, FixedBase, FixedBaseVartime, ModExp, ModMul, ModMultiExp,
    MultiExpVartime, PublicExponent, secret,
};

/// The root folder of the workspace.
#[cfg(all(test, feature = "rsa", feature = "std", target_arch = "x86_64"))]
const WORKSPACE: &str = env!("CARGO_MANIFEST_DIR");

/// The programs of the README.
#[cfg(all(doctest, feature = "queue"))]
#[doc = include_str!("../README.md")]
struct Readme;
