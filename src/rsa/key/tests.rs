//! Keys with inconsistent numbers, as faults in memory make them.

use alloc::sync::Arc;

use batch_modexp_core::secret::Secret;

use super::parts::PrivateParts;
use super::*;

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
