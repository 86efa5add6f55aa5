//! The check of every result on the host: the only path from a candidate to a signature.

use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::{Comparison, Engine};
use batch_modexp_core::secret::reveal;
use crypto_bigint::{Choice, CtEq, Limb, Word};

use crate::rsa::KeyHandle;
use crate::rsa::batch::{Batch, crt_values, moduli};
use crate::rsa::key::Crt;

/// Whether each candidate is below its modulus and its power of e equals the encoded message of its
/// item.
///
/// `ems` are those that the source made, not copies that a backend may have touched. The power is
/// computed on the calling thread by an engine of this crate, not by the backend.
///
/// It uses numbers of the key's record, so no candidate passes under a record that differs from the
/// imported one. With SIMD lanes and keys with primes, the power is computed modulo p and q, which
/// takes less time than modulo n. Blinded items have `masks`: see [`Comparison`].
pub(super) fn verdicts(
    engine: &dyn Engine,
    batch: &Batch<'_, KeyHandle>,
    ems: &[Limb],
    candidates: &[Limb],
    masks: Option<&[u16]>,
) -> Vec<bool> {
    let (keys, limbs) = (batch.keys, batch.class.limbs());
    let crts: Vec<&Crt> = match batch.class.prime {
        Some(_) => keys.iter().map(crt_values).collect(),
        None => Vec::new(),
    };
    let [p, q] =
        [Crt::p, Crt::q].map(|factor| crts.iter().map(|key| factor(key)).collect::<Vec<_>>());
    let agree = engine.powers_agree(
        &moduli(keys),
        &Comparison {
            factors: [&p, &q],
            exponent: batch.class.exponent(),
            bases: candidates,
            expected: ems,
            masks,
        },
    );
    let mut items = candidates.chunks_exact(limbs).zip(agree);
    let mut verdicts = Vec::with_capacity(keys.len());
    for run in keys.chunk_by(|a, b| ptr::eq(a.parts(), b.parts())) {
        let key = run[0].parts();
        let n = key.n().limbs;
        let items = items.by_ref().take(run.len());
        let passed = items.map(|(candidate, agree)| reveal(agree & is_below(candidate, n)));
        let first = verdicts.len();
        verdicts.extend(passed);
        // Last, so that it covers the computation above.
        if !key.is_intact() {
            verdicts[first..].fill(false);
        }
    }
    verdicts
}

/// Whether `a` is below `b`, of equal length, in constant time.
pub(super) fn is_below(a: &[Limb], b: &[Limb]) -> Choice {
    // With crypto-bigint's borrows, which are 0 or all ones, it takes twice as long.
    let borrow = a.iter().zip(b).fold(0, |borrow, (a, b)| {
        let (difference, is_below) = a.0.overflowing_sub(b.0);
        let (_, is_below_with_borrow) = difference.overflowing_sub(borrow);
        Word::from(is_below | is_below_with_borrow)
    });
    Limb(borrow).ct_eq(&Limb::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_modexp_core::engine::ct_eq;

    #[test]
    fn comparisons() {
        const MAX: Word = Word::MAX;
        let numbers = [
            [0, 0],
            [1, 0],
            [7, 0],
            [MAX, 0],
            [0, 1],
            [7, 1],
            [7, 2],
            [0, MAX],
            [MAX, MAX],
        ];
        let numbers = numbers.map(|limbs| limbs.map(Limb));
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(ct_eq(a, b).to_bool(), i == j);
                assert_eq!(is_below(a, b).to_bool(), i < j);
            }
        }
    }
}
