//! Remainders of every engine, compared with num-bigint.

use super::*;

/// Numbers as long as two moduli, one modulus, or less; below and above short and long moduli.
#[test]
fn remainders() {
    let mut random = Random(3);
    for (count, (half, zeros)) in (1..=17).zip([(4, 1), (8, 0), (16, 63), (17, 40)].iter().cycle())
    {
        let moduli = [(); 2].map(|()| random.modulus(*half, *zeros));
        let moduli = lanes(count, &moduli);
        for size in [2 * half, 2 * half - 1, half + 1, *half, half - 1] {
            let mut numbers = random.limbs(count * size);
            // Edge cases in turn: 0, 1, all ones, and numbers around the largest multiple of the
            // modulus.
            for (i, number) in numbers.chunks_exact_mut(size).enumerate() {
                let all = (BigUint::from(1u8) << (size as u32 * Limb::BITS)) - 1u8;
                let multiple = &all - &all % modulus_of(moduli[i]);
                let edge = match (i + size) % 7 {
                    0 => BigUint::ZERO,
                    1 => 1u8.into(),
                    2 => all,
                    3 => multiple,
                    4 if multiple > BigUint::ZERO => multiple - 1u8,
                    5 => (multiple + 1u8).min(all),
                    _ => continue,
                };
                set_value(number, &edge);
            }
            for_each_engine(|name, engine| {
                let out = engine.remainders(&moduli, &numbers);
                let pairs = numbers.chunks_exact(size).zip(out.chunks_exact(*half));
                for (lane, (number, remainder)) in pairs.enumerate() {
                    let expected = value(number) % modulus_of(moduli[lane]);
                    assert_eq!(
                        value(remainder),
                        expected,
                        "{name}, {size} limbs by {half}, lane {lane} of {count}"
                    );
                }
            });
        }
    }
    for_each_engine(|_, engine| {
        assert!(engine.remainders(&[], &[]).is_empty());
    });
}
