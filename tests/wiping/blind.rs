//! Freed blocks and the stack of an ended thread hold no link from a blinded message to its
//! signature.

use core::convert::Infallible;

use batch_modexp::backend::Serial;
use batch_modexp::rsa::blind::{BlindSigner, Variant};
use batch_modexp::rsa::{KeyHandle, PublicKey};
use crypto_bigint::{Odd, U2048};
use num_bigint::BigUint;
use rsa::rand_core::{TryCryptoRng, TryRng};

use super::freed::Watch;
use super::needles::{Known, Needle};
use super::stack::{left_on, stack_after};

/// Has no salt and no prefix, so that the only random number is r.
const VARIANT: Variant = Variant::PssZeroDeterministic;

/// A generator that always returns the same octets, and keeps no other copies of them.
struct Constant([u8; 256]);

impl TryRng for &Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        octets.copy_from_slice(&self.0[..octets.len()]);
        Ok(())
    }
}

impl TryCryptoRng for &Constant {}

/// A client with all values of the protocol and the answer of the issuer.
struct Case {
    key: PublicKey,
    message: [u8; 64],
    r: Constant,
    blind_signature: Vec<u8>,
    needles: Vec<Needle>,
}

impl Case {
    fn new() -> Self {
        let key = KeyHandle::from_pkcs1_pem(include_str!("../keys/rsa2048.pem")).unwrap();
        let message = core::array::from_fn(|i| 0x80 + i as u8);
        let mut octets = [0; 256];
        let Ok(()) = Known::default().try_fill_bytes(&mut octets);
        octets[0] = 0;
        let r = Constant(octets);
        let blind = VARIANT.blind(&mut &r, &key.public_key(), message);
        let (blinded, state) = blind.unwrap();
        let answer = BlindSigner::new(Serial).sign(&mut Known::default(), &key, &[blinded]);
        let blind_signature = answer.unwrap().into_vec().unwrap();
        let signature = state.finalize(&blind_signature).unwrap();

        let [n, e, s, r_number] =
            [&key.n(), &key.e(), signature.as_ref(), &r.0].map(BigUint::from_bytes_be);
        let encoded = s.modpow(&e, &n);
        let inverse = r_number.modinv(&n).unwrap();
        let form = |number: &BigUint| (number << 2048) % &n;
        let octets = |number: &BigUint| BigUint::from_bytes_le(&number.to_bytes_be());
        let needles = vec![
            Needle {
                name: "message",
                bytes: message[24..40].try_into().unwrap(),
            },
            Needle::new("encoded message", &encoded),
            Needle::new("octets of the encoded message", &octets(&encoded)),
            Needle::new("encoded message in Montgomery form", &form(&encoded)),
            Needle::new("r", &r_number),
            Needle::new("octets of r", &BigUint::from_bytes_le(&r.0)),
            Needle::new("r in Montgomery form", &form(&r_number)),
            Needle::new("r^e", &r_number.modpow(&e, &n)),
            Needle::new("r^e in Montgomery form", &form(&r_number.modpow(&e, &n))),
            Needle::new("m r", &(&encoded * &r_number % &n)),
            Needle::new("(m r)^-1", &(&encoded * &r_number).modinv(&n).unwrap()),
            Needle::new("r^-1", &inverse),
            Needle::new("r^-1 in Montgomery form", &form(&inverse)),
        ];
        Self {
            key: key.public_key(),
            message,
            r,
            blind_signature,
            needles,
        }
    }

    /// Runs from the message to its signature, which belongs to the caller, and to a refusal. With
    /// `leak`, a copy of the message remains.
    fn run(&self, leak: bool) {
        let prepared = VARIANT.prepare(&mut &self.r, &self.message[..]).unwrap();
        let blind = VARIANT.blind(&mut &self.r, &self.key, &*prepared);
        let (_, state) = blind.unwrap();
        core::mem::forget(state.finalize(&self.blind_signature).unwrap());
        assert!(state.finalize([1; 256]).is_err());
        if leak {
            drop(prepared.to_vec());
        }
    }
}

#[test]
fn heap() {
    let watch = Watch::begin();
    let case = Case::new();
    let found = |leak| watch.found_in_freed_blocks(&case.needles, || case.run(leak));
    assert_eq!(found(false), [""; 0]);
    // A control: without its wrapper the message remains.
    assert_eq!(found(true), ["message"]);
}

#[test]
fn stack() {
    let _watch = Watch::begin();
    let case: &_ = Box::leak(Box::new(Case::new()));
    let stack = stack_after(Box::new(move || case.run(false)));
    let left = left_on(&stack, &case.needles);
    assert!(left.is_empty(), "left on the stack: {left:?}");
    // A control: the inversion alone leaves its operands.
    let stack = stack_after(Box::new(move || {
        let [n, r] = [case.key.n().as_slice(), &case.r.0].map(U2048::from_be_slice);
        core::hint::black_box(r.invert_odd_mod(&Odd::new(n).unwrap()));
    }));
    assert!(left_on(&stack, &case.needles).contains(&"r^-1"));
}
