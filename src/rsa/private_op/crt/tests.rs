//! Against num-bigint, with primes of equal and of unequal length.

use alloc::vec::Vec;

use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{Odd, Resize};
use num_bigint::BigUint;

use super::*;

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_be(&number.to_be_bytes())
}

/// CRT values of p and q as wide as `width`; only what [`split`] and [`combine`] look at.
fn key(p: &BoxedUint, q: &BoxedUint, width: u32) -> Crt {
    let [p, q] = [p, q].map(|prime| prime.clone().resize_unchecked(width));
    let qinv = big(&q).modinv(&big(&p)).unwrap().to_bytes_be();
    let qinv = BoxedUint::from_be_slice(&qinv, width).unwrap();
    let params = |prime| {
        let params = BoxedMontyParams::new(Odd::new(prime).unwrap());
        Secret::new(AsRef::<MontyParams<BoxedUint>>::as_ref(&params).clone())
    };
    Crt {
        p: params(p),
        q: params(q),
        dp_less_1: Secret::new(qinv.clone()),
        dq_less_1: Secret::new(qinv.clone()),
        qinv: Secret::new(qinv),
        prime_bits: width,
    }
}

#[test]
fn splits_and_combines_as_num_bigint_does() {
    // Mersenne primes: of 127 and 521 bits, and one of 89.
    let mersenne =
        |bits: u32| BoxedUint::max(bits.next_multiple_of(64)).shr(bits.next_multiple_of(64) - bits);
    for (p_bits, q_bits, width) in [
        (521, 607, 640),
        (607, 521, 640),
        (127, 521, 576),
        (521, 89, 1088),
    ] {
        let (p, q) = (mersenne(p_bits), mersenne(q_bits));
        let keys = [key(&p, &q, width), key(&q, &p, width)];
        let n = big(&p) * big(&q);
        let n_width = 2 * width;
        let values: Vec<BoxedUint> = [1u8, 2, 0x80, 0xff]
            .map(|byte| {
                let octets = [byte; 2].repeat(n_width as usize / 16);
                let value = BigUint::from_bytes_be(&octets) % &n;
                BoxedUint::from_be_slice(&value.to_bytes_be(), n_width).unwrap()
            })
            .into();
        let lanes = [&keys[0], &keys[0], &keys[1], &keys[0]];
        let limbs = (n_width / Limb::BITS) as usize;
        let flat: Vec<_> = values.iter().flat_map(|v| v.as_limbs().to_vec()).collect();
        let residues = split(&lanes, &flat, limbs);
        for (i, (key, value)) in lanes.iter().zip(&values).enumerate() {
            let expected = [&key.p, &key.q].map(|prime| big(value) % big(prime.modulus().as_ref()));
            assert_eq!([big(&residues[i]), big(&residues[i + 4])], expected);
            assert_eq!(residues[i].bits_precision(), width);
        }
        let (mod_p, mod_q) = residues.split_at(lanes.len());
        assert_eq!(*combine(&lanes, mod_p, mod_q, limbs), flat);
    }
}
