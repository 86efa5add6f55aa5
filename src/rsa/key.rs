//! Private keys, prepared once for any number of calls.

// Unit tests take their keys from the `rsa` crate, with any features.
#[cfg(any(feature = "rsa-compat", test))]
mod adapter;
mod check;
mod components;
#[cfg(feature = "encrypted")]
mod encrypted;
#[cfg(feature = "encrypted")]
mod encryption;
pub(super) mod fault;
mod format;
mod pem;
mod public;
mod public_format;
pub(super) mod restriction;

use alloc::sync::Arc;
use core::fmt;

use batch_modexp_core::monty::{Modulus, ModulusRef};
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, CtEq, Limb};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

pub use self::components::RsaComponents;
pub use self::fault::KeyFault;
pub use self::pem::{PemBlock, decode_pem};
pub use self::public::PublicKey;
pub use self::restriction::Restriction;
#[cfg(feature = "encrypted")]
pub use self::{encrypted::decrypt_pkcs8, encryption::EncryptionAlgorithm};
use super::encryption::pkcs1_v15::hash_of_exponent;
use crate::rsa::Error;

/// A private key with its precomputed values.
///
/// It comes from PKCS#8, PKCS#1, numbers, or a key of the `rsa` crate. Its modulus has any length
/// from 1024 to 8192 bits. Clones share the key; its secrets are wiped when the last handle is
/// dropped. `Debug` shows only the length of the modulus.
///
/// ```
/// use batch_modexp::rsa::KeyHandle;
///
/// let pem = std::fs::read("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pem(&pem)?;
/// assert_eq!((key.bits(), key.e()), (2048, vec![1, 0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What an import checks
///
/// * The modulus n is odd and has 1024 to 8192 bits. The public exponent e is odd, above 1 and
///   below n. The private exponent d is above 0 and below n.
/// * The primes p and q are odd, above 1 and different, and n = p q. Their lengths may differ. The
///   smaller may come first.
/// * The CRT values are dP = d mod p - 1, dQ = d mod q - 1 and qInv q = 1 mod p (RFC 8017, section
///   3.2). Missing values are computed.
/// * The exponents satisfy d e = 1 modulo p - 1 and modulo q - 1. In addition, d modulo lcm(p - 1,
///   q - 1) is at least `2^(bits / 2)` (FIPS 186-5, appendix A.1.1).
///
/// Without primes, an import checks instead that d is odd, that `2^(e d) = 2 mod n`, that n is no
/// power of a prime, that d itself is at least `2^(bits / 2)`, and that `2^e` is not 2.
///
/// It does not check that p and q are prime: a key with a composite factor does not sign, because
/// every result is checked.
///
/// The key keeps a digest of its numbers and of all constants made from them. If its memory has
/// changed since, no result is returned.
///
/// The import is constant-time in d, p, q, dP, dQ and qInv, except for two facts. One is which
/// relation does not hold. The other is whether p and q fit into half the length of n, or else how
/// many limbs the longer one needs.
#[derive(Clone)]
pub struct KeyHandle(Arc<KeyParts>);

/// The numbers of a private or public key. Clones of a key share them.
pub(super) struct KeyParts {
    /// The modulus n with its Montgomery constants; public.
    pub(super) n: BoxedMontyParams,
    /// The length of n in bits.
    pub(super) n_bits: u32,
    /// The public exponent, as wide as its value needs.
    pub(super) e: BoxedUint,
    /// The schemes that the key may be used for.
    pub(super) restriction: Restriction,
    /// `None` for a public key.
    pub(super) private: Option<PrivateParts>,
}

/// The parts of a private key beside its public ones.
pub(super) struct PrivateParts {
    pub(super) numbers: Private,
    /// SHA-256 of d, from which implicit rejection derives its messages.
    pub(super) d_hash: Secret<[u8; 32]>,
    /// SHA-256 of all parts of the key, made by the import.
    seal: Secret<[u8; 32]>,
    /// The key's records on GPUs, until it is dropped.
    #[cfg(feature = "cuda")]
    pub(super) on_devices: crate::backend::cuda::Residence,
}

/// How the private operation is computed.
pub(super) enum Private {
    /// Two primes, by the Chinese remainder theorem (RFC 8017, section 3.2, second form).
    Crt(Crt),
    /// The private exponent d less 1, at the width of n, for any other key.
    Plain { d_less_1: Secret<BoxedUint> },
}

/// The quintuple of RFC 8017, section 3.2, for two primes, with exponents less 1 (see
/// `private_op.rs`). `p` and `q` are equally wide.
pub(super) struct Crt {
    pub(super) p: Modulus,
    pub(super) q: Modulus,
    pub(super) dp_less_1: Secret<BoxedUint>,
    pub(super) dq_less_1: Secret<BoxedUint>,
    /// As wide as p.
    pub(super) qinv: Secret<BoxedUint>,
    /// A public bound on the lengths of both primes, and so of dP and dQ, in bits.
    pub(super) prime_bits: u32,
}

impl KeyHandle {
    /// Prepares a key from its `components`.
    ///
    /// With two primes it uses the Chinese remainder theorem. Without primes, such as for a key
    /// with more than two, it uses the private exponent d, which takes about four times as long.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] if the modulus is too short or too long, otherwise [`Error::Key`] with
    /// the fault.
    pub fn from_components(components: &RsaComponents<'_>) -> Result<Self, Error> {
        Self::restricted(components, Restriction::None)
    }

    fn restricted(components: &RsaComponents<'_>, restriction: Restriction) -> Result<Self, Error> {
        let checked = check::check(components)?;
        let size = checked.n_bits.div_ceil(8) as usize;
        let mut parts = KeyParts {
            n: checked.n,
            n_bits: checked.n_bits,
            e: checked.e,
            restriction,
            private: Some(PrivateParts {
                numbers: checked.private,
                d_hash: hash_of_exponent(components.d, size),
                seal: Secret::new([0; 32]),
                #[cfg(feature = "cuda")]
                on_devices: Default::default(),
            }),
        };
        parts.seal();
        Ok(Self(Arc::new(parts)))
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.n_bits
    }

    /// The length of the modulus and of a signature, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.n_octets()
    }

    /// Whether private operations use the Chinese remainder theorem.
    #[must_use]
    pub fn has_crt(&self) -> bool {
        matches!(self.0.private().numbers, Private::Crt(_))
    }

    /// The schemes that the key may sign by.
    #[must_use]
    pub fn restriction(&self) -> Restriction {
        self.0.restriction
    }

    /// Wipes the records of the key on all GPUs, for all clones of the handle, and returns when it
    /// is done.
    ///
    /// Otherwise a device keeps the key's record, with its primes and CRT values, until the last
    /// handle or the backend is dropped. Without a record on any device this does nothing. It waits
    /// for calls under way on the devices. The handle stays usable: the next call on a GPU uploads
    /// the key again.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`](batch_modexp_core::Error::Cuda) if a device could not wipe its record. All
    /// devices are tried, and the record is never read again.
    ///
    /// [`Error::Forked`](batch_modexp_core::Error::Forked) in a forked child if the key was on a
    /// device: the parent's devices keep it.
    #[cfg(feature = "cuda")]
    pub fn evict(&self) -> Result<(), batch_modexp_core::Error> {
        self.0.private().on_devices.evict()
    }

    pub(super) fn parts(&self) -> &KeyParts {
        &self.0
    }
}

impl KeyParts {
    /// The modulus n.
    pub(super) fn n(&self) -> ModulusRef<'_> {
        ModulusRef::of(self.n.as_ref())
    }

    /// The length of the modulus in octets.
    pub(super) fn n_octets(&self) -> usize {
        self.n_bits.div_ceil(8) as usize
    }

    /// The private parts, for operations that only get private keys.
    pub(super) fn private(&self) -> &PrivateParts {
        match &self.private {
            Some(private) => private,
            None => unreachable!("a public key in a private operation"),
        }
    }

    /// The CRT values, for computations that only get keys with primes.
    pub(super) fn crt(&self) -> &Crt {
        match &self.private().numbers {
            Private::Crt(crt) => crt,
            Private::Plain { .. } => unreachable!("a key without primes among keys with primes"),
        }
    }

    /// The private exponent less 1, for computations that only get keys without primes.
    pub(super) fn d_less_1(&self) -> &[Limb] {
        match &self.private().numbers {
            Private::Plain { d_less_1 } => d_less_1.as_limbs(),
            Private::Crt(_) => unreachable!("a key with primes among keys without primes"),
        }
    }

    /// Seals a record that has just been checked.
    fn seal(&mut self) {
        let digest = self.digest();
        if let Some(private) = &mut self.private {
            private.seal = digest;
        }
    }

    /// Whether the record is unchanged since it was sealed. Constant-time in the record; the
    /// verdict is public.
    ///
    /// The check of a result computes with the key's own numbers. A fault in one of them may affect
    /// computation and check alike: with `R^2 mod p` set to 0, both work on zeros modulo p. So a
    /// result is only returned if the record is unchanged since the import.
    pub(in crate::rsa) fn is_intact(&self) -> bool {
        reveal(self.digest().ct_eq(&*self.private().seal))
    }

    /// Digest of everything that a private operation, its check and the encoding of messages read.
    fn digest(&self) -> Secret<[u8; 32]> {
        // Enough to wipe what the hash function leaves on the stack.
        scrubbed(|| {
            let mut record = Record::default();
            record.modulus(self.n());
            record.number(self.e.as_limbs());
            record.lengths(&[self.n_bits]);
            match &self.private().numbers {
                Private::Crt(Crt {
                    p,
                    q,
                    dp_less_1,
                    dq_less_1,
                    qinv,
                    prime_bits,
                }) => {
                    record.modulus(p.by_ref());
                    record.modulus(q.by_ref());
                    for number in [dp_less_1, dq_less_1, qinv] {
                        record.number(number.as_limbs());
                    }
                    record.lengths(&[*prime_bits]);
                }
                Private::Plain { d_less_1 } => record.number(d_less_1.as_limbs()),
            }
            record.0.update(*self.private().d_hash);
            record.restriction(self.restriction);
            Secret::new(record.0.finalize().into())
        })
    }
}

impl fmt::Debug for KeyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHandle")
            .field("bits", &self.bits())
            .finish_non_exhaustive()
    }
}

impl Crt {
    pub(super) fn p(&self) -> ModulusRef<'_> {
        self.p.by_ref()
    }

    pub(super) fn q(&self) -> ModulusRef<'_> {
        self.q.by_ref()
    }
}

/// The hash of a record. Its format is public: lengths precede numbers.
#[derive(Default)]
struct Record(Sha256);

impl Record {
    fn modulus(&mut self, modulus: ModulusRef<'_>) {
        self.number(modulus.limbs);
        self.number(modulus.r2);
        self.limbs(modulus.mod_inv.as_limbs());
    }

    fn number(&mut self, number: &[Limb]) {
        self.lengths(&[number.len() as u32]);
        self.limbs(number);
    }

    fn limbs(&mut self, limbs: &[Limb]) {
        const LIMBS_AT_A_TIME: usize = 32;
        let mut octets = [0; LIMBS_AT_A_TIME * Limb::BYTES];
        for limbs in limbs.chunks(LIMBS_AT_A_TIME) {
            for (octets, limb) in octets.chunks_exact_mut(Limb::BYTES).zip(limbs) {
                octets.copy_from_slice(&limb.0.to_le_bytes());
            }
            self.0.update(&octets[..limbs.len() * Limb::BYTES]);
        }
        octets.zeroize();
    }

    fn lengths(&mut self, lengths: &[u32]) {
        lengths
            .iter()
            .for_each(|length| self.0.update(length.to_le_bytes()));
    }

    fn restriction(&mut self, restriction: Restriction) {
        let (kind, hash, min_salt_len) = match restriction {
            Restriction::None => (0, 0, 0),
            Restriction::Pss => (1, 0, 0),
            Restriction::PssWith { hash, min_salt_len } => (2, hash as u8, min_salt_len),
        };
        self.0.update([kind, hash]);
        self.0.update((min_salt_len as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
