//! Inputs of exponentiations, and the pairs of classes that are compared.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Odd, Random, Uint};

/// The number of moduli of a run. Computing the constants of a modulus takes longer than an
/// exponentiation.
const MODULI: usize = 256;

/// One instance.
#[derive(Clone)]
pub(crate) struct Input<const LIMBS: usize> {
    pub(crate) base: Uint<LIMBS>,
    pub(crate) exponent: Uint<LIMBS>,
    pub(crate) params: MontyParams<Uint<LIMBS>>,
}

/// Changes a random input to one of a class.
type Change<const LIMBS: usize> = fn(&mut Input<LIMBS>, &Chosen<LIMBS>);

/// The number of steps by which the control leaks an input.
type Leak<const LIMBS: usize> = fn(&Input<LIMBS>, &Chosen<LIMBS>) -> u32;

/// Two classes of inputs.
pub(crate) struct Classes<const LIMBS: usize> {
    pub(crate) name: &'static str,
    pub(crate) change: [Change<LIMBS>; 2],
    /// `None` if the classes do not differ.
    pub(crate) leaked: Option<Leak<LIMBS>>,
}

/// Bits of the exponents. A leak shows with short ones as well, and more measurements fit into the
/// time.
pub(crate) const EXPONENT_BITS: u32 = 32;

/// The random choices of a run.
pub(crate) struct Chosen<const LIMBS: usize> {
    moduli: Vec<MontyParams<Uint<LIMBS>>>,
    /// Two keys: an exponent and a modulus each.
    keys: [(Uint<LIMBS>, MontyParams<Uint<LIMBS>>); 2],
    base: Uint<LIMBS>,
    tiny: MontyParams<Uint<LIMBS>>,
}

impl<const LIMBS: usize> Chosen<LIMBS> {
    pub(crate) fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut params = || {
            let modulus = Uint::random_from_rng(&mut rng) | Uint::ONE;
            // Of full length, as those of keys are.
            let modulus = modulus | (Uint::ONE << (Uint::<LIMBS>::BITS - 1));
            MontyParams::new(Odd::new(modulus).expect("an odd number"))
        };
        Self {
            moduli: (0..MODULI).map(|_| params()).collect(),
            keys: [
                (Uint::from_u64(0x4210_8421), params()),
                (Uint::from_u64(0xdead_beef), params()),
            ],
            base: Uint::MAX >> 1,
            tiny: MontyParams::new(Odd::new(Uint::from_u64(3)).expect("an odd number")),
        }
    }

    /// A random instance.
    pub(crate) fn random(&self, rng: &mut ChaCha20Rng) -> Input<LIMBS> {
        let which = rng.next_u32() as usize % MODULI;
        Input {
            base: Uint::random_from_rng(rng),
            exponent: Uint::random_from_rng(rng),
            params: self.moduli[which],
        }
    }
}

/// All pairs.
pub(crate) fn all<const LIMBS: usize>() -> Vec<Classes<LIMBS>> {
    let weight: Leak<LIMBS> = |x, _| low(&x.exponent).count_ones();
    let size: Leak<LIMBS> = |x, _| x.base.leading_zeros_vartime().min(100);
    let key: Leak<LIMBS> =
        |x, chosen| 20 * u32::from(x.params.modulus() == chosen.keys[0].1.modulus());
    let random: Change<LIMBS> = |_, _| ();
    let pair = |name, change, leaked| Classes {
        name,
        change,
        leaked: Some(leaked),
    };
    vec![
        // Any difference found here comes from the measurement.
        Classes {
            name: "nothing: random, random",
            change: [random, random],
            leaked: None,
        },
        pair(
            "exponent: 0, random",
            [|x, _| x.exponent = Uint::ZERO, random],
            weight,
        ),
        pair(
            "exponent: all ones, random",
            [|x, _| x.exponent = Uint::MAX, random],
            weight,
        ),
        pair(
            "exponent: a quarter ones, three quarters",
            [
                |x, _| x.exponent = x.exponent & (x.exponent >> 64),
                |x, _| x.exponent = x.exponent | (x.exponent >> 64),
            ],
            weight,
        ),
        pair(
            "exponent: one bit set, random",
            [
                |x, _| x.exponent = Uint::ONE << (low(&x.exponent) % EXPONENT_BITS),
                random,
            ],
            weight,
        ),
        pair(
            "exponent: below 16, top bit set",
            [
                |x, _| x.exponent = Uint::from_u64(u64::from(low(&x.exponent) % 16)),
                |x, _| x.exponent |= Uint::ONE << (EXPONENT_BITS - 1),
            ],
            weight,
        ),
        pair(
            "base: 0, random",
            [|x, _| x.base = Uint::ZERO, random],
            size,
        ),
        pair(
            "base: below 2^16, random",
            [
                |x, _| x.base = Uint::from_u64(u64::from(low(&x.base) % (1 << 16))),
                random,
            ],
            size,
        ),
        pair(
            "base: the same, random",
            [|x, chosen| x.base = chosen.base, random],
            |x, chosen| 20 * u32::from(x.base == chosen.base),
        ),
        pair(
            "base: modulus - 1, random",
            [
                |x, _| x.base = x.params.modulus().as_ref().wrapping_sub(&Uint::ONE),
                random,
            ],
            |x, _| 20 * u32::from(x.base == x.params.modulus().as_ref().wrapping_sub(&Uint::ONE)),
        ),
        pair(
            "modulus: 3, random",
            [|x, chosen| x.params = chosen.tiny, random],
            |x, _| 20 * u32::from(x.params.modulus().as_ref() == &Uint::from_u64(3)),
        ),
        pair(
            "modulus: the same, random",
            [|x, chosen| x.params = chosen.keys[0].1, random],
            key,
        ),
        pair(
            "key: one, another",
            [
                |x, chosen| (x.exponent, x.params) = chosen.keys[0],
                |x, chosen| (x.exponent, x.params) = chosen.keys[1],
            ],
            key,
        ),
    ]
}

/// The lowest 32 bits.
fn low<const LIMBS: usize>(number: &Uint<LIMBS>) -> u32 {
    number.as_words()[0] as u32
}
