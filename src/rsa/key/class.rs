//! Public properties of keys, by which the items of a batch are sorted.

use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::Exponent;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::Limb;

use super::{Crt, KeyHandle, KeyParts, Private, PublicKey};

/// Public properties that the keys of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) struct KeyClass<'a> {
    /// The width of n in bits.
    pub(in crate::rsa) n_width: u32,
    /// The public exponent, as short as possible.
    pub(in crate::rsa) e: &'a [Limb],
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
    pub(in crate::rsa) fn of(key: &'a KeyParts) -> Self {
        let prime = match &key.private {
            Private::Crt(crt) => Some(PrimeClass {
                width: crt.p().bits(),
                bits: crt.prime_bits,
            }),
            Private::Plain { .. } => None,
        };
        Self {
            prime,
            ..Self::public(key.n(), key.e.as_limbs())
        }
    }

    /// The class of a public key.
    pub(in crate::rsa) fn public(n: ModulusRef<'_>, e: &'a [Limb]) -> Self {
        Self {
            n_width: n.bits(),
            e,
            prime: None,
        }
    }

    /// The public exponent.
    pub(in crate::rsa) fn exponent(&self) -> Exponent<'a> {
        Exponent::new(self.e)
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

/// A private or public key by which items are sorted.
pub(in crate::rsa) trait Key {
    fn class(&self) -> KeyClass<'_>;

    /// The modulus n.
    fn modulus(&self) -> ModulusRef<'_>;

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
    fn class(&self) -> KeyClass<'_> {
        KeyClass::of(self.parts())
    }

    fn modulus(&self) -> ModulusRef<'_> {
        self.parts().n()
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self.parts()).cast()
    }

    fn bits(&self) -> u32 {
        self.bits()
    }
}

impl Key for PublicKey {
    fn class(&self) -> KeyClass<'_> {
        KeyClass::public(self.modulus(), self.exponent().as_limbs())
    }

    fn modulus(&self) -> ModulusRef<'_> {
        self.modulus()
    }

    fn address(&self) -> *const () {
        self.address()
    }

    fn bits(&self) -> u32 {
        self.bits()
    }
}

/// The modulus n of each key.
pub(in crate::rsa) fn moduli<'a, K: Key>(keys: &[&'a K]) -> Vec<ModulusRef<'a>> {
    keys.iter().map(|key| key.modulus()).collect()
}

/// The CRT values of an item, in a batch whose class has primes.
pub(in crate::rsa) fn crt_values<'a>(key: &&'a KeyHandle) -> &'a Crt {
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
