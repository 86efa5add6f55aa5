//! Backends that compute wrongly: their results must never become signatures.

use batch_modexp::backend::{Parallel, Serial};
use batch_modexp::rsa::backend::{Items, ModulusRef, RsaBackend, SecretPowers};
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::sha2::Sha256;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use batch_modexp::{BatchModExp, Error, ModExp, rsa};
use crypto_bigint::{BoxedUint, Limb};

use super::keys;

/// Flips the lowest bit of one power of every call.
struct OneBadItem(usize);

impl RsaBackend for OneBadItem {
    fn exponentiate(&self, mut powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers.reborrow())?;
        powers.out[self.0 * powers.limbs()] ^= Limb::ONE;
        Ok(())
    }
}

/// Fails in every exponentiation.
struct BreaksDown;

impl RsaBackend for BreaksDown {
    fn exponentiate(&self, _: SecretPowers<'_>) -> Result<(), Error> {
        Err(Error::ThreadPool { threads: 7 })
    }
}

#[test]
fn a_bad_item_fails_alone() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let messages = ["a", "b", "c", "d"];
    for blinding in [true, false] {
        let sign = |backend: &dyn RsaBackend| {
            let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            signer.sign(&mut keys::rng(), &handle, &messages).unwrap()
        };
        let sound = sign(&Serial);
        // Each item has two half-width powers.
        for bad in 0..2 * messages.len() {
            let signatures = sign(&OneBadItem(bad));
            for (item, (signature, sound)) in signatures.iter().zip(&sound).enumerate() {
                if item == bad % messages.len() {
                    let fault = rsa::Error::Fault { index: item };
                    assert_eq!(signature, Err(fault));
                } else {
                    assert_eq!(signature, sound);
                }
            }
        }
    }
}

#[test]
fn a_backend_that_breaks_down_fails_the_batch() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(BreaksDown, Pkcs1v15::<Sha256>::new());
    let error = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap_err();
    assert_eq!(error, Error::ThreadPool { threads: 7 }.into());
}

/// The fault that turns correct powers of the backend into wrong ones.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Nothing,
    FlippedBit,
    /// As if numbers were wider or narrower.
    Shifted,
    /// Two items are exchanged.
    Swapped,
    /// The power of another item is repeated.
    Repeated,
    /// The place of a power holds zeros.
    Zeros,
    /// The power is not reduced.
    Ones,
    /// No power is written.
    Unwritten,
    /// Nothing is computed.
    Forgotten,
}

struct Wrapper(Wrong);

impl RsaBackend for Wrapper {
    fn exponentiate(&self, mut powers: SecretPowers<'_>) -> Result<(), Error> {
        if let Wrong::Unwritten = self.0 {
            return Ok(());
        }
        Serial.exponentiate(powers.reborrow())?;
        let limbs = powers.limbs();
        let (first, others) = powers.out.split_at_mut(limbs);
        match self.0 {
            Wrong::Nothing | Wrong::Unwritten | Wrong::Forgotten => {}
            Wrong::FlippedBit => first[3] ^= Limb::ONE,
            Wrong::Shifted => first.rotate_right(1),
            Wrong::Swapped => first.swap_with_slice(&mut others[..limbs]),
            Wrong::Repeated => first.copy_from_slice(&others[..limbs]),
            Wrong::Zeros => first.fill(Limb::ZERO),
            Wrong::Ones => first.fill(Limb::MAX),
        }
        Ok(())
    }

    fn compute(&self, items: Items<'_>) -> Result<(), rsa::Error> {
        match self.0 {
            Wrong::Forgotten => Ok(()),
            _ => items.compute_on(self),
        }
    }
}

/// Whatever a backend returns, the check catches it.
#[test]
fn no_wrong_power_gets_through() {
    use Wrong::*;
    let handle = KeyHandle::new(&keys::rsa2048()).unwrap();
    let messages = ["a", "b", "c"];
    for (wrong, bad_items) in [
        (Nothing, &[][..]),
        (FlippedBit, &[0]),
        (Shifted, &[0]),
        (Swapped, &[0, 1]),
        (Repeated, &[0]),
        (Zeros, &[0]),
        (Ones, &[0]),
        (Unwritten, &[0, 1, 2]),
        (Forgotten, &[0, 1, 2]),
    ] {
        let is_bad = |index| bad_items.contains(&index);
        let expected: Vec<_> = (0..messages.len())
            .map(|index| is_bad(index).then_some(rsa::Error::Fault { index }))
            .collect();
        let backend = Wrapper(wrong);
        for blinding in [true, false] {
            let signer = BatchSigner::new(&backend, Pkcs1v15::<Sha256>::new()).blinding(blinding);
            let signatures = signer.sign(&mut keys::rng(), &handle, &messages).unwrap();
            let errors = signatures.iter().map(Result::err);
            assert!(errors.eq(expected.iter().cloned()), "{wrong:?}");
        }
        let blocks = [1, 2, 3].map(|octet| (&handle, vec![octet; handle.size()]));
        let results = rsasp1(&backend, Some(&mut keys::rng()), &blocks).unwrap();
        let errors = results.iter().map(Result::err);
        assert!(errors.eq(expected.iter().cloned()), "{wrong:?}");
    }
}

/// Computes in parts, in reverse order, and some of them twice.
struct OutOfOrder;

impl RsaBackend for OutOfOrder {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, mut items: Items<'_>) -> Result<(), rsa::Error> {
        assert!(!items.is_empty());
        Serial.compute(items.reborrow())?;
        let middle = items.len() / 2;
        let (head, tail) = items.split_at(middle);
        for half in [tail, head] {
            for item in half.chunks(1) {
                assert_eq!(item.len(), 1);
                Serial.compute(item)?;
            }
        }
        Ok(())
    }
}

#[test]
fn parts_may_come_in_any_order() {
    let handles = [keys::rsa1024(), keys::rsa2048()].map(|key| KeyHandle::new(&key).unwrap());
    let order = [0, 1, 1, 0, 1];
    let batch: Vec<_> = (0..order.len())
        .map(|item| (&handles[order[item]], [item as u8; 9]))
        .collect();
    let sign = |backend: &dyn RsaBackend| {
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
        signer.sign_each(&mut keys::rng(), &batch).unwrap()
    };
    assert_eq!(sign(&OutOfOrder), sign(&Serial));
}

/// Serves moduli of up to 1024 bits.
struct Narrow;

impl RsaBackend for Narrow {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        let is_wide = |modulus: &ModulusRef<'_>| modulus.width() > 1024;
        match powers.moduli.iter().position(is_wide) {
            Some(index) => Err(Error::ModulusWidth {
                index,
                bits: powers.moduli[index].width(),
                max_bits: 1024,
            }),
            None => Serial.exponentiate(powers),
        }
    }
}

/// `Parallel` asks for its times.
impl BatchModExp<BoxedUint> for Narrow {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        _: &[ModExp<'_, BoxedUint>],
        _: u32,
        _: &mut [BoxedUint],
    ) -> Result<(), Error> {
        unreachable!("RSA computes with flat numbers")
    }
}

/// A width that the backend does not serve is an error of the items that have it, at the caller's
/// positions.
#[test]
fn an_error_of_one_key_stays_in_its_items() {
    let (narrow, wide) = (keys::rsa1024(), keys::all_sizes().remove(7));
    let (narrow, wide) = (
        KeyHandle::new(&narrow).unwrap(),
        KeyHandle::new(&wide).unwrap(),
    );
    // The digest of the first item is too short, so it never reaches the backend.
    let batch = [
        (&narrow, &[0; 31][..]),
        (&narrow, &[1; 32]),
        (&wide, &[2; 32]),
        (&narrow, &[3; 32]),
        (&wide, &[4; 32]),
    ];
    let parallel = Parallel::with_threads(Narrow, 2.try_into().unwrap()).unwrap();
    for backend in [&Narrow as &dyn RsaBackend, &parallel] {
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new()).blinding(false);
        let signatures = signer.sign_prehash_each(&mut keys::rng(), &batch).unwrap();
        for (item, signature) in signatures.iter().enumerate() {
            let expected = match item {
                0 => Some(rsa::Error::DigestLength {
                    index: 0,
                    len: 31,
                    expected: 32,
                }),
                2 | 4 => Some(rsa::Error::Backend(Error::ModulusWidth {
                    index: item,
                    bits: 2048,
                    max_bits: 1024,
                })),
                _ => None,
            };
            assert_eq!(signature.err(), expected);
        }
    }
}
