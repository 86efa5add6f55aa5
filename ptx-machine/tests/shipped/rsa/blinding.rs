//! Tests of the blinding launch, alone and before the other three.

use num_bigint::BigUint;

use super::batch::{Batch, PUBLIC_EXPONENT, RsaEntries, one};
use super::{below_moduli, key_with_primes};

/// All combinations of messages and random numbers, with short and long public exponents.
///
/// The longest exponent takes as many products as seven others, so it is tested with one shape
/// only.
#[test]
fn factors_and_bases() {
    for class in &RsaEntries::all() {
        let (keys, bytes) = (class.keys(), class.bits as usize / 8);
        // 0, 1, n - 1 and a number between them, for each of the keys in turn.
        let kinds = 4;
        let count = kinds * kinds * keys.len();
        let operands = |kind: &dyn Fn(usize) -> usize| -> Vec<BigUint> {
            let operand = |i: usize| {
                let n = keys[i % keys.len()].n();
                match kind(i / keys.len()) {
                    0 => BigUint::ZERO,
                    1 => one(),
                    2 => n - 1u32,
                    _ => BigUint::from(0x9e37_79b9_7f4a_7c15 + i as u64).pow(70) % n,
                }
            };
            (0..count).map(operand).collect()
        };
        let messages = operands(&|pair| pair % kinds);
        let randoms = operands(&|pair| pair / kinds);
        let exponents = [2, 5, PUBLIC_EXPONENT - 1, u64::MAX - 1];
        let of_this_class = exponents.len() - usize::from(class.bits != 1536);
        for &exponent in &exponents[..of_this_class] {
            let mut batch = Batch::new(class, &keys, count);
            let inputs = [&messages, &randoms];
            let [messages_at, randoms_at] =
                inputs.map(|numbers| batch.secrets(numbers.iter().cloned(), bytes));
            let outs = batch.blind(messages_at, randoms_at, exponent);
            for out in outs {
                assert!(batch.global.buffer(out).holds_secrets());
            }
            let [factors, bases] = outs.map(|out| batch.numbers(out, bytes));
            for i in 0..factors.len() {
                // Lanes past the end repeat the last one.
                let j = i.min(count - 1);
                let n = keys[j % keys.len()].n();
                let factor = &messages[j] * randoms[j].modpow(&exponent.into(), &n) % &n;
                let base = &factor * &randoms[j] % n;
                let name = &class.blind.name;
                assert_eq!(factors[i], factor, "{name}, exponent {exponent}, {i}");
                assert_eq!(bases[i], base, "{name}, exponent {exponent}, {i}");
            }
        }
    }
}

/// From messages to signatures in four launches: `m^d = f b^(d - 1)` with `f = m r^(e - 1)` and
/// `b = f r`.
#[test]
fn whole_blinded_private_operations() {
    let class = &RsaEntries::of_1024_bits();
    let (key, d) = key_with_primes(class);
    let (n, keys, bytes) = (key.n(), [key], class.bits as usize / 8);
    let messages = below_moduli(&keys, 12);
    // Multiples of p or q are excluded, because they hide nothing.
    let randoms: Vec<_> = (0..messages.len())
        .map(|i| BigUint::from(0xd1b5_4a32_d192_ed03 + i as u64).pow(31) % &n)
        .collect();

    let mut batch = Batch::new(class, &keys, messages.len());
    let [messages_at, randoms_at] =
        [&messages, &randoms].map(|numbers| batch.secrets(numbers.iter().cloned(), bytes));
    let [factors, bases] = batch.blind(messages_at, randoms_at, PUBLIC_EXPONENT - 1);
    for operands in [factors, bases] {
        batch.global.set_read_only(operands);
    }
    let halves = batch.exp(&class.exp[1], bases, class.prime_bits());
    let out = batch.recombine(halves, factors);
    let (signatures, bases) = (batch.numbers(out, bytes), batch.numbers(bases, bytes));
    for (i, message) in messages.iter().enumerate() {
        let base = message * randoms[i].modpow(&PUBLIC_EXPONENT.into(), &n) % &n;
        assert_eq!(bases[i], base, "{i}");
        assert_eq!(signatures[i], message.modpow(&d, &n), "{i}");
    }
}
