//! The step that blinds and unblinds, alone and around the other three.

use num_bigint::BigUint;

use super::batch::{Batch, PUBLIC_EXPONENT, RsaEntries, one};
use super::{below_moduli, key_with_primes};

/// Factors and bases of every kind together, with short and long public exponents. Exponent 1 unblinds. The longest
/// takes as many products as seven others, and is tried with one shape only.
#[test]
fn products_with_public_powers() {
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
        let factors = operands(&|pair| pair % kinds);
        let bases = operands(&|pair| pair / kinds);
        let exponents = [1, 3, PUBLIC_EXPONENT, u64::MAX];
        let of_this_class = exponents.len() - usize::from(class.bits != 1536);
        for &exponent in &exponents[..of_this_class] {
            let mut batch = Batch::new(class, &keys, count);
            let inputs = [&factors, &bases];
            let [factors_at, bases_at] =
                inputs.map(|numbers| batch.secrets(numbers.iter().cloned(), bytes));
            let out = batch.blind(factors_at, bases_at, exponent);
            assert!(batch.global.buffer(out).holds_secrets());
            let found = batch.numbers(out, bytes);
            for i in 0..count {
                let n = keys[i % keys.len()].n();
                let expected = &factors[i] * bases[i].modpow(&exponent.into(), &n) % n;
                let name = &class.blind.name;
                assert_eq!(found[i], expected, "{name}, exponent {exponent}, {i}");
            }
        }
    }
}

/// From messages to signatures in five launches: `m^d = (m r^e)^d r^-1`.
#[test]
fn whole_blinded_private_operations() {
    let class = &RsaEntries::of_1024_bits();
    let (key, d) = key_with_primes(class);
    let (n, keys, bytes) = (key.n(), [key], class.bits as usize / 8);
    let messages = below_moduli(&keys, 12);
    // No multiples of p or q, so that each has an inverse.
    let randoms: Vec<_> = (0..messages.len())
        .map(|i| BigUint::from(0xd1b5_4a32_d192_ed03 + i as u64).pow(31) % &n)
        .collect();
    let inverses = randoms.iter().map(|r| r.modinv(&n).expect("an inverse"));

    let mut batch = Batch::new(class, &keys, messages.len());
    let messages_at = batch.secrets(messages.iter().cloned(), bytes);
    let randoms_at = batch.secrets(randoms.iter().cloned(), bytes);
    let inverses_at = batch.secrets(inverses, bytes);
    let blinded = batch.blind(messages_at, randoms_at, PUBLIC_EXPONENT);
    batch.global.set_read_only(blinded);
    let halves = batch.exp_on_device(&class.exp[1], blinded, class.prime_bits());
    let powers = batch.recombine(halves);
    let out = batch.blind(powers, inverses_at, 1);
    let signatures = batch.numbers(out, bytes);
    let powers = batch.numbers(powers, bytes);
    for (i, message) in messages.iter().enumerate() {
        let blinded_message = message * randoms[i].modpow(&PUBLIC_EXPONENT.into(), &n) % &n;
        assert_eq!(powers[i], blinded_message.modpow(&d, &n), "{i}");
        let expected = message.modpow(&d, &n);
        assert_eq!(signatures[i], expected, "{i}");
    }
}
