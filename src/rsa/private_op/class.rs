//! Sorts the items of a batch by public properties of their keys.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::monty::{ModulusRef, low_64_bits};
use crypto_bigint::{BoxedUint, Limb};

use crate::rsa::key::{Crt, KeyHandle, KeyParts, Private, PublicKey};

/// Public properties that the keys of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) struct KeyClass {
    /// The width of n in bits.
    pub(in crate::rsa) n_width: u32,
    /// The length of e in bits.
    pub(in crate::rsa) e_bits: u32,
    /// The low 64 bits of e: all of it if `e_bits` is at most 64.
    pub(in crate::rsa) e_low: u64,
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

impl KeyClass {
    pub(in crate::rsa) fn of(key: &KeyParts) -> Self {
        let prime = match &key.private {
            Private::Crt(crt) => Some(PrimeClass {
                width: crt.p().bits(),
                bits: crt.prime_bits,
            }),
            Private::Plain { .. } => None,
        };
        Self {
            prime,
            ..Self::public(key.n(), &key.e)
        }
    }

    /// The class of a public key.
    pub(in crate::rsa) fn public(n: ModulusRef<'_>, e: &BoxedUint) -> Self {
        Self {
            n_width: n.bits(),
            e_bits: e.bit_width_vartime(),
            e_low: low_64_bits(e.as_limbs()),
            prime: None,
        }
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

/// The caller's positions of sorted items.
pub(in crate::rsa) enum Positions {
    /// Items are in the caller's order: there is one key.
    Same,
    /// The same list twice, so that a fault in one cannot give a result to another item's caller.
    Sorted([Vec<usize>; 2]),
}

impl Positions {
    /// The caller's position of an item, unless the two lists differ.
    pub(in crate::rsa) fn of(&self, item: usize) -> Option<usize> {
        match self {
            Self::Same => Some(item),
            Self::Sorted([positions, copy]) => {
                let position = positions[item];
                (position == copy[item]).then_some(position)
            }
        }
    }
}

/// A private or public key by which items are sorted.
pub(in crate::rsa) trait Key {
    fn class(&self) -> KeyClass;

    /// The modulus n.
    fn modulus(&self) -> ModulusRef<'_>;

    /// The public exponent e.
    fn exponent(&self) -> &BoxedUint;

    /// The identity of the key: clones have the same address.
    fn address(&self) -> *const ();

    /// The length of the modulus in bits.
    fn bits(&self) -> u32;

    /// The length of the modulus in octets.
    fn size(&self) -> usize {
        self.bits().div_ceil(8) as usize
    }
}

impl Key for KeyHandle {
    fn class(&self) -> KeyClass {
        KeyClass::of(self.parts())
    }

    fn modulus(&self) -> ModulusRef<'_> {
        self.parts().n()
    }

    fn exponent(&self) -> &BoxedUint {
        &self.parts().e
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self.parts()).cast()
    }

    fn bits(&self) -> u32 {
        self.bits()
    }
}

impl Key for PublicKey {
    fn class(&self) -> KeyClass {
        KeyClass::public(self.modulus(), self.exponent())
    }

    fn modulus(&self) -> ModulusRef<'_> {
        self.modulus()
    }

    fn exponent(&self) -> &BoxedUint {
        self.exponent()
    }

    fn address(&self) -> *const () {
        self.address()
    }

    fn bits(&self) -> u32 {
        self.bits()
    }
}

/// Sorts items by key: returns their positions, and the range of each class. Keys whose exponents
/// are longer than 64 bits and differ are separated here, although their class is equal.
///
/// Items of one key are adjacent, because a backend prepares each modulus once for a run.
pub(in crate::rsa) fn sort<K: Key>(keys: &[&K]) -> (Positions, Vec<(KeyClass, Range<usize>)>) {
    // Sorts runs of items with one key, of which there are often few.
    let mut start = 0;
    let mut runs: Vec<_> = keys
        .chunk_by(|a, b| a.address() == b.address())
        .map(|run| {
            start += run.len();
            let group = (run[0].class(), run[0].exponent().as_limbs());
            (group, run[0].address(), start - run.len(), run.len())
        })
        .collect();
    if let [run] = &runs[..] {
        return (Positions::Same, Vec::from([(run.0.0, 0..run.3)]));
    }
    runs.sort_unstable();

    let mut positions = Vec::with_capacity(keys.len());
    let mut classes = Vec::new();
    for runs in runs.chunk_by(|a, b| a.0 == b.0) {
        let first = positions.len();
        positions.extend(runs.iter().flat_map(|run| run.2..run.2 + run.3));
        classes.push((runs[0].0.0, first..positions.len()));
    }
    let copy = positions.clone();
    (Positions::Sorted([positions, copy]), classes)
}

/// Splits items of one class into runs of one key; all items of a key must be adjacent.
#[cfg(feature = "cuda")]
pub(in crate::rsa) fn runs<'s, 'a, K: Key>(keys: &'s [&'a K]) -> impl Iterator<Item = &'s [&'a K]> {
    let mut rest = keys;
    core::iter::from_fn(move || {
        let first = rest.first()?.address();
        let is_same = |key: &&K| key.address() == first;
        // Galloping search: runs are often long, and reading each item of a large batch would take
        // as long as thousands of them on a device.
        let mut bound = 1;
        while rest.get(bound).is_some_and(is_same) {
            bound *= 2;
        }
        let len = rest[..bound.min(rest.len())].partition_point(is_same);
        let (run, others) = rest.split_at(len);
        rest = others;
        Some(run)
    })
}

/// The modulus n of each key.
pub(in crate::rsa) fn moduli<'a, K: Key>(keys: &[&'a K]) -> Vec<ModulusRef<'a>> {
    keys.iter().map(|key| key.modulus()).collect()
}

/// The CRT values of an item, in a batch whose class has primes.
pub(in crate::rsa) fn crt<'a>(key: &&'a KeyHandle) -> &'a Crt {
    match &key.parts().private {
        Private::Crt(crt) => crt,
        Private::Plain { .. } => unreachable!("the class of the batch has primes"),
    }
}

/// The private exponent of an item less 1, in a batch whose class has no primes.
pub(in crate::rsa) fn d_less_1(key: &KeyHandle) -> &[Limb] {
    match &key.parts().private {
        Private::Plain { d_less_1 } => d_less_1.as_limbs(),
        Private::Crt(_) => unreachable!("the class of the batch has no primes"),
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn runs_are_as_long_as_they_are() {
        let pems = [
            include_str!("../../../tests/keys/rsa1024.pem"),
            include_str!("../../../tests/keys/rsa1025.pem"),
            include_str!("../../../tests/keys/rsa1024-other.pem"),
        ];
        let keys = pems.map(|pem| KeyHandle::from_pkcs1_pem(pem).unwrap());
        assert_eq!(runs::<KeyHandle>(&[]).count(), 0);
        for first in 0..20 {
            for second in 0..20 {
                let lens = [first, second, 3];
                let items = keys.iter().zip(lens).map(|(key, len)| vec![key; len]);
                let items = items.collect::<Vec<_>>().concat();
                let found = runs(&items).map(|run| (run[0].address(), run.len()));
                let there = keys.iter().map(Key::address).zip(lens);
                assert!(found.eq(there.filter(|(_, len)| *len > 0)));
            }
        }
    }
}
