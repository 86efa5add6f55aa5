//! Sorts the lanes of a batch by what is public about their keys, once for all who compute on them.

use alloc::vec::Vec;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb};

use super::op::PrivateOp;
use crate::rsa::key::{Crt, KeyParts, Private};
use crate::secret::Secret;
use crate::{BatchModExp, Error, ModExp};

/// The values of one stage of a group, one for each lane or two, wiped on drop.
pub(super) type Values = Secret<Vec<BoxedUint>>;

/// What all keys of a group have in common; public.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct KeyClass {
    /// The width of n in bits.
    pub(super) n_width: u32,
    /// The length of e in bits.
    pub(super) e_bits: u32,
    /// The low 64 bits of e, all of it if `e_bits` is at most 64.
    pub(super) e_low: u64,
    /// `None` for keys without CRT values.
    pub(super) prime: Option<PrimeClass>,
}

/// What all primes of a group have in common; public.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PrimeClass {
    /// The width of both primes in bits.
    pub(super) width: u32,
    /// A bound for the length of both primes, and so of dP and dQ, in bits.
    pub(super) bits: u32,
}

impl KeyClass {
    pub(super) fn of(key: &KeyParts) -> Self {
        let prime = match &key.private {
            Private::Crt(crt) => Some(PrimeClass {
                width: crt.p().modulus().bits_precision(),
                bits: crt.prime_bits,
            }),
            Private::Plain { .. } => None,
        };
        Self {
            n_width: key.n.bits_precision(),
            e_bits: key.e_bits,
            e_low: low_64_bits(&key.e),
            prime,
        }
    }
}

/// The value modulo `2^64`.
// A limb has 32 bits on some targets.
#[allow(clippy::unnecessary_cast)]
fn low_64_bits(value: &BoxedUint) -> u64 {
    let limbs = value.as_limbs().iter();
    let limbs = limbs.zip((0..u64::BITS).step_by(Limb::BITS as usize));
    limbs.fold(0, |bits, (limb, position)| {
        bits | (limb.0 as u64) << position
    })
}

/// Lanes whose keys are of one class, those of one key next to each other, because backends prepare a modulus
/// once for each run of equal references.
pub(super) struct Group<'a> {
    pub(super) class: KeyClass,
    /// Whether its lanes are blinded: all or none.
    pub(super) is_blinded: bool,
    pub(super) ops: Vec<PrivateOp<'a>>,
    /// The position of each lane in the batch.
    pub(super) indices: Vec<usize>,
}

/// What comes of each lane of a batch, or the reason why the whole batch failed.
type Lanes<T> = Result<Vec<Result<T, Error>>, Error>;

/// Runs `f` on each group of `batch` and returns the results in the order of `batch`.
///
/// All numbers of a group are equally wide, so a width or a length that the backend does not serve is an
/// error of every lane of the group, each with its own position; it does not touch the others.
///
/// # Panics
///
/// If a representative or a blind is not as wide as its modulus.
pub(super) fn in_groups<'a, T>(
    batch: &[PrivateOp<'a>],
    mut f: impl FnMut(&Group<'a>) -> Lanes<T>,
) -> Lanes<T> {
    check_widths(batch);
    // Neighbours with one key stay together: what is sorted are runs of them, of which there are often few.
    let is_run = |a: &PrivateOp<'_>, b: &PrivateOp<'_>| {
        address(a) == address(b) && a.blind.is_some() == b.blind.is_some()
    };
    let mut start = 0;
    let mut runs: Vec<_> = batch
        .chunk_by(is_run)
        .map(|run| {
            let group = (KeyClass::of(run[0].key.parts()), run[0].blind.is_some());
            start += run.len();
            (group, address(&run[0]), start - run.len(), run.len())
        })
        .collect();
    runs.sort_unstable();

    let mut results: Vec<_> = batch.iter().map(|_| Err(Error::Fault)).collect();
    for runs in runs.chunk_by(|a, b| a.0 == b.0) {
        let (class, is_blinded) = runs[0].0;
        let lanes = runs.iter().flat_map(|run| run.2..run.2 + run.3);
        let indices: Vec<_> = lanes.collect();
        let group = Group {
            class,
            is_blinded,
            ops: indices.iter().map(|&index| batch[index]).collect(),
            indices,
        };
        match f(&group) {
            Ok(of_group) => {
                for (&index, result) in group.indices.iter().zip(of_group) {
                    results[index] = result;
                }
            }
            Err(error) => {
                for &index in &group.indices {
                    results[index] = Err(error.of_instance(index).ok_or_else(|| error.clone())?);
                }
            }
        }
    }
    Ok(results)
}

/// Gives each error that names a position the position of its lane.
pub(super) fn number_errors<T>(results: &mut [Result<T, Error>]) {
    for (index, result) in results.iter_mut().enumerate() {
        if let Err(error) = result
            && let Some(numbered) = error.of_instance(index)
        {
            *error = numbered;
        }
    }
}

/// Panics unless representatives and blinds are as wide as their moduli.
fn check_widths(batch: &[PrivateOp<'_>]) {
    for op in batch {
        let width = op.key.parts().n.bits_precision();
        assert_eq!(
            op.representative.bits_precision(),
            width,
            "a representative must be as wide as its modulus"
        );
        if let Some(blind) = op.blind {
            assert_eq!(
                blind.bits_precision(),
                width,
                "a blind must be as wide as its modulus"
            );
        }
    }
}

/// Tells keys apart.
fn address(op: &PrivateOp<'_>) -> *const KeyParts {
    op.key.parts()
}

/// Lanes of one class in runs of one key.
pub(super) fn runs<'s, 'a>(ops: &'s [PrivateOp<'a>]) -> impl Iterator<Item = &'s [PrivateOp<'a>]> {
    ops.chunk_by(|a, b| address(a) == address(b))
}

impl<'a> Group<'a> {
    /// The random number of each lane, if the lanes are blinded.
    pub(super) fn blinds(&self) -> impl Iterator<Item = &'a BoxedUint> {
        self.ops.iter().filter_map(|op| op.blind)
    }

    /// `value ^ e mod n` for the value of each lane, on `backend`.
    pub(super) fn public_power<'v, B>(
        &self,
        backend: &B,
        values: impl Iterator<Item = &'v BoxedUint>,
    ) -> Result<Values, Error>
    where
        B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    {
        let batch: Vec<_> = self
            .ops
            .iter()
            .zip(values)
            .map(|(op, base)| ModExp {
                base,
                exponent: &op.key.parts().e,
                params: modulus(op),
            })
            .collect();
        let mut out = zeros(batch.len(), self.class.n_width);
        backend.batch_mod_exp(&batch, self.class.e_bits, &mut out)?;
        Ok(out)
    }
}

/// Room for `count` results of `width` bits.
pub(super) fn zeros(count: usize, width: u32) -> Values {
    let zero = |_| BoxedUint::zero_with_precision(width);
    Secret::new((0..count).map(zero).collect())
}

/// The modulus n of a lane.
pub(super) fn modulus<'a>(op: &PrivateOp<'a>) -> &'a MontyParams<BoxedUint> {
    op.key.parts().n.as_ref()
}

/// The CRT values of a lane, in a group whose class has primes.
pub(super) fn crt<'a>(op: &PrivateOp<'a>) -> &'a Crt {
    match &op.key.parts().private {
        Private::Crt(crt) => crt,
        Private::Plain { .. } => unreachable!("the class of the group has primes"),
    }
}

/// The private exponent of a lane, in a group whose class has no primes.
pub(super) fn private_exponent<'a>(op: &PrivateOp<'a>) -> &'a BoxedUint {
    match &op.key.parts().private {
        Private::Plain { d } => d,
        Private::Crt(_) => unreachable!("the class of the group has no primes"),
    }
}
