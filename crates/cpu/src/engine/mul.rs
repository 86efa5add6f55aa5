//! Products: which of them are faster in lanes.

use core::ptr;

use batch_modexp_core::checks::{Form, check_products};
use batch_modexp_core::width::{MAX_BITS, clear, width};
use batch_modexp_core::{BatchModMul, Error, ModMul, Serial};
use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use super::AnyEngine;
#[cfg(target_arch = "x86_64")]
use crate::Ifma;

impl<U: Unsigned> BatchModMul<U> for AnyEngine {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Montgomery, batch, out)
    }
}

type Backend<'a, U> = &'a dyn BatchModMul<U, Error = Error>;

/// Computes runs of equally wide moduli in lanes if they are long enough, else on [`Serial`].
fn run<U: Unsigned>(
    engine: &AnyEngine,
    form: Form,
    batch: &[ModMul<'_, U>],
    out: &mut [U],
) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let (in_lanes, table): (Backend<'_, U>, &[Fewest]) = match engine {
        AnyEngine::Serial => (&Serial, &[]),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        AnyEngine::Fma(fma) => (fma, &FMA),
        #[cfg(target_arch = "x86_64")]
        AnyEngine::Ifma(ifma) if ifma.lanes() == Ifma::LANES => (ifma, &IFMA),
        // Four lanes of `Ifma` are at least as fast as those of doubles.
        #[cfg(target_arch = "x86_64")]
        AnyEngine::Ifma(ifma) => (ifma, &FMA),
    };
    let mut start = 0;
    for run in batch.chunk_by(|a, b| modulus_bits(a.params) == modulus_bits(b.params)) {
        let moduli = run.iter().map(|instance| instance.params);
        let backend = match is_faster(table, form, moduli) {
            true => in_lanes,
            false => &Serial,
        };
        let places = &mut out[start..][..run.len()];
        let computed = match form {
            Form::Ordinary => backend.batch_mod_mul(run, places),
            Form::Montgomery => backend.batch_monty_mul(run, places),
        };
        computed
            .map_err(|error| error.in_batch_at(start))
            .inspect_err(|_| clear(out))?;
        start += run.len();
    }
    Ok(())
}

/// The smallest numbers of products for which a vector unit is faster than [`Serial`]. Measured on
/// a Zen 5, with widths in bits and numbers that grow by about a half from one to the next. A width
/// in between counts as the next smaller one.
struct Fewest {
    /// The narrowest moduli that this row is for, in bits.
    bits: u32,
    /// If most instances have the modulus of the one before: for ordinary products, then for those
    /// in Montgomery form.
    shared: [usize; 2],
    /// If most do not.
    mixed: [usize; 2],
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn fewest(bits: u32, shared: [usize; 2], mixed: [usize; 2]) -> Fewest {
    Fewest {
        bits,
        shared,
        mixed,
    }
}

/// [`Serial`] is always faster.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const NEVER: usize = usize::MAX;

#[cfg(target_arch = "x86_64")]
const IFMA: [Fewest; 8] = [
    fewest(128, [512, NEVER], [NEVER, NEVER]),
    fewest(192, [96, NEVER], [NEVER, NEVER]),
    fewest(256, [48, 1024], [96, NEVER]),
    fewest(384, [24, 64], [32, 128]),
    fewest(512, [16, 32], [16, 32]),
    fewest(1024, [6, 8], [6, 8]),
    fewest(2048, [3, 4], [3, 4]),
    fewest(4096, [2, 2], [2, 2]),
];

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const FMA: [Fewest; 4] = [
    fewest(512, [256, NEVER], [NEVER, NEVER]),
    fewest(1024, [12, 24], [NEVER, NEVER]),
    fewest(2048, [4, 8], [8, 8]),
    fewest(4096, [3, 3], [4, 4]),
];

/// Whether these products modulo equally wide moduli are faster in lanes.
fn is_faster<'a, U: Unsigned>(
    table: &[Fewest],
    form: Form,
    moduli: impl ExactSizeIterator<Item = &'a MontyParams<U>> + Clone,
) -> bool {
    let (count, others) = (moduli.len(), moduli.clone().skip(1));
    let bits = moduli.clone().next().map_or(0, modulus_bits);
    let Some(fewest) = table.iter().rev().find(|fewest| fewest.bits <= bits) else {
        return false;
    };
    // A group of lanes is prepared for its moduli: at most twice for each change.
    let changes = moduli.zip(others).filter(|(a, b)| !ptr::eq(*a, *b)).count();
    let [ordinary, montgomery] = match 16 * changes > count {
        true => fewest.mixed,
        false => fewest.shared,
    };
    count
        >= match form {
            Form::Ordinary => ordinary,
            Form::Montgomery => montgomery,
        }
}

/// The width of a modulus in bits.
fn modulus_bits<U: Unsigned>(modulus: &MontyParams<U>) -> u32 {
    width(modulus.modulus().as_ref())
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use crypto_bigint::BoxedUint;
    use crypto_bigint::Odd;
    use crypto_bigint::modular::BoxedMontyParams;

    /// Whether this many instances use lanes, by the table `FMA`.
    fn goes_to_lanes(bits: u32, count: usize, form: Form, moduli: usize) -> bool {
        let modulus = BoxedUint::max(bits);
        let params = || BoxedMontyParams::new(Odd::new(modulus.clone()).unwrap());
        let params: Vec<_> = (0..moduli).map(|_| params()).collect();
        let batch: Vec<_> = (0..count)
            .map(|i| ModMul::new(&modulus, &modulus, params[i * moduli / count].as_ref()))
            .collect();
        is_faster(&FMA, form, batch.iter().map(|instance| instance.params))
    }

    #[test]
    fn the_choice_follows_from_public_numbers() {
        use Form::{Montgomery, Ordinary};
        for (bits, count, form, moduli, expected) in [
            (448, 1000, Ordinary, 1, false),
            (512, 255, Ordinary, 1, false),
            (512, 256, Ordinary, 1, true),
            (512, 256, Montgomery, 1, false),
            (960, 256, Ordinary, 16, true),
            (960, 256, Ordinary, 256, false),
            (2048, 4, Ordinary, 1, true),
            (2048, 7, Ordinary, 7, false),
            (2048, 8, Montgomery, 8, true),
            (16_384, 3, Ordinary, 1, true),
        ] {
            let actual = goes_to_lanes(bits, count, form, moduli);
            assert_eq!(
                actual, expected,
                "{count} of {bits} bits, {form:?}, {moduli}"
            );
        }
    }

    #[test]
    fn wider_moduli_and_ordinary_products_need_no_more() {
        let mut tables = vec![&FMA[..]];
        #[cfg(target_arch = "x86_64")]
        tables.push(&IFMA);
        for table in tables {
            for pair in table.windows(2) {
                assert!(pair[0].bits < pair[1].bits);
                let [narrow, wide] = [&pair[0], &pair[1]];
                for (narrow, wide) in [(narrow.shared, wide.shared), (narrow.mixed, wide.mixed)] {
                    assert!(wide[0] <= narrow[0] && wide[1] <= narrow[1]);
                    assert!(wide[0] <= wide[1] && narrow[0] <= narrow[1]);
                }
            }
        }
    }
}
