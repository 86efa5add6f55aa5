//! A digest of a key's record, which detects faults in its memory.
//!
//! The check of a result computes with the key's own numbers. A fault in one of them may affect
//! computation and check alike: with `R^2 mod p` set to 0, both work on zeros modulo p. So a result
//! is only returned if the record is unchanged since the import.

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::{Secret, reveal};
use batch_modexp_core::width::scrubbed;
use crypto_bigint::{CtEq, Limb};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::{Crt, KeyParts, Private, Restriction};

impl KeyParts {
    /// Seals a record that has just been checked.
    pub(super) fn seal(&mut self) {
        let digest = self.digest();
        if let Some(private) = &mut self.private {
            private.seal = digest;
        }
    }

    /// Whether the record is unchanged since it was sealed. Constant-time in the record; the
    /// verdict is public.
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

/// Keys with inconsistent numbers, as faults in memory make them.
#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::rsa::key::{KeyHandle, PrivateParts};

    impl KeyHandle {
        /// The key with some numbers changed in memory, and the seal of its import.
        pub(in crate::rsa) fn altered(&self, change: impl FnOnce(&mut KeyParts)) -> Self {
            let parts = self.parts();
            let private = parts.private();
            let numbers = match &private.numbers {
                Private::Crt(crt) => Private::Crt(Crt {
                    p: crt.p().into(),
                    q: crt.q().into(),
                    dp_less_1: Secret::new(crt.dp_less_1.clone()),
                    dq_less_1: Secret::new(crt.dq_less_1.clone()),
                    qinv: Secret::new(crt.qinv.clone()),
                    prime_bits: crt.prime_bits,
                }),
                Private::Plain { d_less_1 } => Private::Plain {
                    d_less_1: Secret::new((**d_less_1).clone()),
                },
            };
            let mut copy = KeyParts {
                n: parts.n.clone(),
                n_bits: parts.n_bits,
                e: parts.e.clone(),
                restriction: parts.restriction,
                private: Some(PrivateParts {
                    numbers,
                    d_hash: Secret::new(*private.d_hash),
                    seal: Secret::new(*private.seal),
                    #[cfg(feature = "cuda")]
                    on_devices: Default::default(),
                }),
            };
            change(&mut copy);
            Self(Arc::new(copy))
        }

        /// The key with some of its CRT values changed.
        pub(in crate::rsa) fn with_crt(&self, change: impl FnOnce(&mut Crt)) -> Self {
            self.altered(|parts| match &mut parts.private {
                Some(PrivateParts {
                    numbers: Private::Crt(crt),
                    ..
                }) => change(crt),
                _ => panic!("the key has no CRT values"),
            })
        }
    }
}
