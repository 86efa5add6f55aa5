//! Batches of modular exponentiations.

use batch_modexp::{BatchModExp, ModExp};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use zeroize::Zeroize;

use crate::border::{
    ARGUMENT, Failure, OK, argument, elements, elements_mut, failed, guard, object,
};
use crate::engine::Engine;

/// Numbers that are wiped.
struct Wiped(Vec<BoxedUint>);

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn bme_pow(
    engine: *const Engine,
    count: usize,
    width: usize,
    exponent_width: usize,
    bases: *const u8,
    exponents: *const u8,
    moduli: *const u8,
    powers: *mut u8,
    statuses: *mut i32,
) -> i32 {
    guard(|| {
        if count == 0 {
            return Ok(());
        }
        let (bits, exponent_bits) = (bits(width)?, bits(exponent_width)?);
        let lens = (count.checked_mul(width), count.checked_mul(exponent_width));
        let (Some(len), Some(exponents_len)) = lens else {
            return Err(argument("a length is too large"));
        };
        // SAFETY: the caller vouches for the engine and for all ranges.
        let (engine, bases, exponents, moduli) = unsafe {
            (
                object(engine)?,
                elements(bases, len)?,
                elements(exponents, exponents_len)?,
                elements(moduli, len)?,
            )
        };
        // SAFETY: the caller vouches for both ranges, which nobody else uses.
        let (powers, statuses) =
            unsafe { (elements_mut(powers, len)?, elements_mut(statuses, count)?) };
        statuses.fill(ARGUMENT);
        let number = |octets: &[u8], bits| {
            BoxedUint::from_be_slice(octets, bits).map_err(|_| argument("a number is too wide"))
        };
        let (mut places, mut params) = (Vec::new(), Vec::<BoxedMontyParams>::new());
        let mut last = None;
        let (mut base_numbers, mut exponent_numbers) = (Wiped(Vec::new()), Wiped(Vec::new()));
        let each = bases
            .chunks_exact(width)
            .zip(exponents.chunks_exact(exponent_width));
        let each = each.zip(moduli.chunks_exact(width));
        for (((base, exponent), modulus), place) in
            each.zip(powers.chunks_exact_mut(width).zip(statuses))
        {
            // Neighbours with one modulus share its constants.
            let shared = params.last().filter(|_| last == Some(modulus)).cloned();
            let Some(of_modulus) = (match shared {
                Some(shared) => Some(shared),
                None => Odd::new(number(modulus, bits)?)
                    .into_option()
                    .map(BoxedMontyParams::new),
            }) else {
                continue;
            };
            last = Some(modulus);
            params.push(of_modulus);
            base_numbers.0.push(number(base, bits)?);
            exponent_numbers.0.push(number(exponent, exponent_bits)?);
            places.push(place);
        }
        let numbers = base_numbers.0.iter().zip(&exponent_numbers.0);
        let batch: Vec<_> = numbers
            .zip(&params)
            .map(|((base, exponent), params)| ModExp::new(base, exponent, params.as_ref()))
            .collect();
        let mut results = Wiped(vec![BoxedUint::zero_with_precision(bits); batch.len()]);
        engine
            .batch_mod_exp(&batch, exponent_bits, &mut results.0)
            .map_err(failed)?;
        for (result, (power, status)) in results.0.iter().zip(places) {
            let mut octets = result.to_be_bytes();
            let above = octets.len() - power.len();
            power.copy_from_slice(&octets[above..]);
            octets.zeroize();
            *status = OK;
        }
        Ok(())
    })
}

/// The bits of so many octets, in whole limbs of any size.
fn bits(octets: usize) -> Result<u32, Failure> {
    /// The widest numbers of any backend, in octets.
    const MOST: usize = 2048;
    match octets {
        1..=MOST => Ok(octets.next_multiple_of(8) as u32 * 8),
        _ => Err(argument("a width is not in 1 to 2048 octets")),
    }
}
