//! Comparisons of CRT with num-bigint, with primes of equal and unequal length.

use batch_modexp_core::Serial;
use batch_modexp_core::monty::Modulus;
use crypto_bigint::{BoxedUint, Resize};
use num_bigint::BigUint;

use super::super::*;

fn big(number: &BoxedUint) -> BigUint {
    BigUint::from_bytes_be(&number.to_be_bytes())
}

/// CRT values of p and q at `width`; only those that [`reduce`] and [`recombine`] read.
fn key(p: &BoxedUint, q: &BoxedUint, width: u32) -> Crt {
    let [p, q] = [p, q].map(|prime| prime.clone().resize_unchecked(width));
    let qinv = big(&q).modinv(&big(&p)).unwrap().to_bytes_be();
    let qinv = BoxedUint::from_be_slice(&qinv, width).unwrap();
    Crt {
        p: Modulus::new(p.as_limbs(), 0),
        q: Modulus::new(q.as_limbs(), 0),
        dp_less_1: Secret::new(qinv.clone()),
        dq_less_1: Secret::new(qinv.clone()),
        qinv: Secret::new(qinv),
        prime_bits: width,
    }
}

/// A flat buffer of numbers, `size` limbs each.
fn flat(numbers: impl Iterator<Item = BigUint>, size: usize) -> Vec<Limb> {
    let width = size as u32 * Limb::BITS;
    numbers
        .flat_map(|number| {
            let number = BoxedUint::from_be_slice(&number.to_bytes_be(), width).unwrap();
            number.as_limbs().to_vec()
        })
        .collect()
}

/// The numbers in a flat buffer, `size` limbs each.
fn numbers(flat: &[Limb], size: usize) -> Vec<BigUint> {
    let value = |limbs: &[Limb]| big(&BoxedUint::from_words(limbs.iter().map(|limb| limb.0)));
    flat.chunks_exact(size).map(value).collect()
}

/// Two keys each, with primes of equal and unequal length, in either order.
fn pairs_of_keys() -> impl Iterator<Item = [Crt; 2]> {
    // Mersenne primes: 2^bits - 1.
    let mersenne =
        |bits: u32| BoxedUint::max(bits.next_multiple_of(64)).shr(bits.next_multiple_of(64) - bits);
    let lengths = [
        (521, 607, 640),
        (607, 521, 640),
        (127, 521, 576),
        (521, 89, 1088),
        (1279, 2203, 2240),
    ];
    lengths.into_iter().map(move |(p_bits, q_bits, width)| {
        let (p, q) = (mersenne(p_bits), mersenne(q_bits));
        [key(&p, &q, width), key(&q, &p, width)]
    })
}

fn primes(key: &Crt) -> [BigUint; 2] {
    [key.p(), key.q()].map(|prime| numbers(prime.limbs, prime.limbs.len()).remove(0))
}

/// Single items, and up to more than twice as many as there are lanes.
#[test]
fn splits_and_combines_as_num_bigint_does() {
    for keys in pairs_of_keys() {
        let width = keys[0].p().width();
        let size = 2 * width as usize / Limb::BITS as usize;
        for count in 1..=17 {
            // Runs of each key, and items whose keys alternate.
            let mixed = |i: usize| {
                if count > 12 {
                    i % 2
                } else {
                    usize::from(i > 5)
                }
            };
            let items: Vec<_> = (0..count).map(|i| &keys[mixed(i)]).collect();
            let values: Vec<BigUint> = (0..count)
                .map(|i| {
                    let [p, q] = primes(items[i]);
                    let octets = [i as u8 ^ 0xa5; 2].repeat(size * Limb::BYTES / 2);
                    let edges = [
                        BigUint::from_bytes_be(&octets) % (&p * &q),
                        &p * &q - 1u8,
                        BigUint::ZERO,
                        1u8.into(),
                        &p - 1u8,
                        &p * (&q - 1u8),
                        q.clone(),
                        &q * (&p - 1u8),
                        &p + &q - 1u8,
                    ];
                    edges[(i + count) % edges.len()].clone()
                })
                .collect();
            let flat = flat(values.iter().cloned(), size);
            let residues = reduce(
                &Serial,
                &for_p_then_q(&items, |key| [key.p(), key.q()]),
                &flat,
            );
            let numbers = numbers(&residues, size / 2);
            assert_eq!(numbers.len(), 2 * count);
            for (i, (key, value)) in items.iter().zip(&values).enumerate() {
                let expected = primes(key).map(|prime| value % prime);
                assert_eq!([&numbers[i], &numbers[i + count]], expected.each_ref());
            }
            assert_eq!(*recombine(&Serial, &items, &residues, size), flat);
        }
    }
}

/// Numbers as long as n but not below it, which do not occur in practice.
#[test]
fn splits_what_is_not_below_n() {
    for keys in pairs_of_keys() {
        let size = 2 * keys[0].p().width() as usize / Limb::BITS as usize;
        let (largest, items) = (vec![Limb::MAX; 2 * size], [&keys[0], &keys[1]]);
        let value = (BigUint::from(1u8) << (size as u32 * Limb::BITS)) - 1u8;
        let expected = items
            .map(primes)
            .map(|primes| primes.map(|prime| &value % prime));
        let residues = reduce(
            &Serial,
            &for_p_then_q(&items, |key| [key.p(), key.q()]),
            &largest,
        );
        let residues = numbers(&residues, size / 2);
        let [[p, q], [other_p, other_q]] = expected;
        assert_eq!(residues, [p, other_p, q, other_q]);
    }
}
