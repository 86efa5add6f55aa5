//! The numbers of a key, the seal over them, and the class of keys that are computed together.

use alloc::vec::Vec;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::monty::{Modulus, ModulusRef};
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, CtEq, Limb};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::Restriction;

/// The numbers of a private or public key. Clones of a key share them.
pub(in crate::rsa) struct KeyParts {
    /// The modulus n with its Montgomery constants; public.
    pub(in crate::rsa) n: BoxedMontyParams,
    /// The length of n in bits.
    pub(in crate::rsa) n_bits: u32,
    /// The public exponent, as wide as its value needs.
    pub(in crate::rsa) e: BoxedUint,
    /// The schemes that the key may be used for.
    pub(in crate::rsa) restriction: Restriction,
    /// `None` for a public key.
    pub(in crate::rsa) private: Option<PrivateParts>,
}

/// The parts of a private key beside its public ones.
pub(in crate::rsa) struct PrivateParts {
    pub(in crate::rsa) numbers: Private,
    /// SHA-256 of d, from which implicit rejection derives its messages.
    pub(in crate::rsa) d_hash: Secret<[u8; 32]>,
    /// SHA-256 of all parts of the key, made by the import.
    pub(super) seal: Secret<[u8; 32]>,
}

/// How the private operation is computed.
pub(in crate::rsa) enum Private {
    /// Two primes, by the Chinese remainder theorem (RFC 8017, section 3.2, second form).
    Crt(Crt),
    /// The private exponent d less 1, at the width of n, for any other key.
    Plain { d_less_1: Secret<BoxedUint> },
}

/// The quintuple of RFC 8017, section 3.2, for two primes, with exponents less 1 (see
/// `private_op.rs`). `p` and `q` are equally wide.
pub(in crate::rsa) struct Crt {
    pub(in crate::rsa) p: Modulus,
    pub(in crate::rsa) q: Modulus,
    pub(in crate::rsa) dp_less_1: Secret<BoxedUint>,
    pub(in crate::rsa) dq_less_1: Secret<BoxedUint>,
    /// As wide as p.
    pub(in crate::rsa) qinv: Secret<BoxedUint>,
    /// A public bound on the lengths of both primes, and so of dP and dQ, in bits.
    pub(in crate::rsa) prime_bits: u32,
}

impl KeyParts {
    /// The modulus n.
    pub(in crate::rsa) fn n(&self) -> ModulusRef<'_> {
        ModulusRef::of(self.n.as_ref())
    }

    /// The length of the modulus in octets.
    pub(in crate::rsa) fn n_octets(&self) -> usize {
        self.n_bits.div_ceil(8) as usize
    }

    /// The private parts, for operations that only get private keys.
    pub(in crate::rsa) fn private(&self) -> &PrivateParts {
        match &self.private {
            Some(private) => private,
            None => unreachable!("a public key in a private operation"),
        }
    }

    /// The CRT values, for computations that only get keys with primes.
    pub(in crate::rsa) fn crt(&self) -> &Crt {
        match &self.private().numbers {
            Private::Crt(crt) => crt,
            Private::Plain { .. } => unreachable!("a key without primes among keys with primes"),
        }
    }

    /// The private exponent less 1, for computations that only get keys without primes.
    pub(in crate::rsa) fn d_less_1(&self) -> &[Limb] {
        match &self.private().numbers {
            Private::Plain { d_less_1 } => d_less_1.as_limbs(),
            Private::Crt(_) => unreachable!("a key with primes among keys without primes"),
        }
    }

    /// Seals a record that has just been checked.
    pub(super) fn seal(&mut self) {
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

impl Crt {
    pub(in crate::rsa) fn p(&self) -> ModulusRef<'_> {
        self.p.by_ref()
    }

    pub(in crate::rsa) fn q(&self) -> ModulusRef<'_> {
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

/// Public properties that the keys of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) struct KeyClass<'a> {
    /// The width of n in bits.
    pub(in crate::rsa) n_width: u32,
    /// The public exponent, as short as possible.
    pub(in crate::rsa) e: &'a [Limb],
    /// Whether they are private keys: for private operations.
    pub(in crate::rsa) is_private: bool,
    /// `None` for public keys, and for private ones without CRT values.
    pub(in crate::rsa) prime: Option<PrimeClass>,
}

/// Public properties that the primes of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) struct PrimeClass {
    /// The width of both primes in bits.
    pub(in crate::rsa) width: u32,
    /// A bound on the lengths of both primes, and so of dP and dQ, in bits.
    pub(in crate::rsa) bits: u32,
}

impl<'a> KeyClass<'a> {
    /// The class of a key.
    pub(in crate::rsa) fn of(key: &'a KeyParts) -> Self {
        let numbers = key.private.as_ref().map(|private| &private.numbers);
        Self {
            n_width: key.n().width(),
            e: key.e.as_limbs(),
            is_private: numbers.is_some(),
            prime: match numbers {
                Some(Private::Crt(crt)) => Some(PrimeClass {
                    width: crt.p().width(),
                    bits: crt.prime_bits,
                }),
                Some(Private::Plain { .. }) | None => None,
            },
        }
    }

    /// The public exponent.
    pub(in crate::rsa) fn exponent(&self) -> PublicExponent {
        PublicExponent::of_limbs(self.e)
    }

    /// The public exponent less 1.
    pub(in crate::rsa) fn exponent_less_1(&self) -> PublicExponent {
        PublicExponent::one_less(self.e)
    }

    /// The number of exponentiations in a private operation.
    pub(in crate::rsa) fn exponentiations(&self) -> usize {
        match self.prime {
            Some(_) => 2,
            None => 1,
        }
    }

    /// Limbs in n.
    pub(in crate::rsa) fn limbs(&self) -> usize {
        (self.n_width / Limb::BITS) as usize
    }
}

/// The modulus n of each key.
pub(in crate::rsa) fn moduli<'a>(keys: &[&'a KeyParts]) -> Vec<ModulusRef<'a>> {
    keys.iter().map(|key| key.n()).collect()
}
