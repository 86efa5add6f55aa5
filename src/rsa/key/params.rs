//! Montgomery constants of secret moduli, in heap memory that is wiped.
//!
//! crypto-bigint makes `MontyParams<BoxedUint>` only inside a reference-counted `BoxedMontyParams`,
//! which cannot be wiped; only a clone can be taken out. So the constants are computed on
//! `Uint<LIMBS>`. After the clone is made, the memory of the original is allocated again and
//! overwritten.
//!
//! `MontyParams::new` is constant-time except for one instruction on some processors, which counts
//! the leading zeros of the modulus. The length of a prime is public here: half that of n, or the
//! length in which the caller gave it.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::{WithLimbs, load, scrubbed_for, with_limbs};
use crypto_bigint::modular::{BoxedMontyParams, FixedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Limb, Odd};

/// Makes the constants of the odd `modulus`, at its own width up to 64 limbs, above that at the
/// next width of `with_limbs`.
pub(in crate::rsa) fn secret(modulus: &BoxedUint) -> Secret<MontyParams<BoxedUint>> {
    fn exact<const LIMBS: usize>(params: Params<'_>) -> Secret<MontyParams<BoxedUint>> {
        scrubbed_for::<LIMBS, _>(|| params.run::<LIMBS>())
    }
    let params = Params { modulus };
    // `with_limbs` would round these widths up and slow down every exponentiation with such a key.
    match modulus.as_limbs().len() {
        9 => exact::<9>(params),
        11 => exact::<11>(params),
        13 => exact::<13>(params),
        15 => exact::<15>(params),
        17 => exact::<17>(params),
        18 => exact::<18>(params),
        19 => exact::<19>(params),
        21 => exact::<21>(params),
        22 => exact::<22>(params),
        23 => exact::<23>(params),
        25 => exact::<25>(params),
        26 => exact::<26>(params),
        27 => exact::<27>(params),
        29 => exact::<29>(params),
        30 => exact::<30>(params),
        31 => exact::<31>(params),
        33 => exact::<33>(params),
        34 => exact::<34>(params),
        35 => exact::<35>(params),
        36 => exact::<36>(params),
        37 => exact::<37>(params),
        38 => exact::<38>(params),
        39 => exact::<39>(params),
        41 => exact::<41>(params),
        42 => exact::<42>(params),
        43 => exact::<43>(params),
        44 => exact::<44>(params),
        45 => exact::<45>(params),
        46 => exact::<46>(params),
        47 => exact::<47>(params),
        49 => exact::<49>(params),
        50 => exact::<50>(params),
        51 => exact::<51>(params),
        52 => exact::<52>(params),
        53 => exact::<53>(params),
        54 => exact::<54>(params),
        55 => exact::<55>(params),
        57 => exact::<57>(params),
        58 => exact::<58>(params),
        59 => exact::<59>(params),
        60 => exact::<60>(params),
        61 => exact::<61>(params),
        62 => exact::<62>(params),
        63 => exact::<63>(params),
        limbs => with_limbs(limbs, params),
    }
}

struct Params<'a> {
    modulus: &'a BoxedUint,
}

impl WithLimbs for Params<'_> {
    type Output = Secret<MontyParams<BoxedUint>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        let modulus = Secret::new(load::<LIMBS>(self.modulus));
        let fixed = Odd::new(*modulus).expect("an odd modulus");
        let fixed = Secret::new(FixedMontyParams::new(fixed));
        let original = BoxedMontyParams::from(&*fixed);
        let params: &MontyParams<BoxedUint> = original.as_ref();
        let copy = Secret::new(params.clone());
        let numbers = [params.modulus().as_ref(), params.one(), params.r2()];
        let numbers = numbers.map(|number| number.as_limbs().as_ptr().addr());
        // The numbers lie in an `Arc`, behind its two counts.
        let counts = 2 * size_of::<usize>();
        let shared = (params as *const MontyParams<BoxedUint>).addr() - counts;
        drop(original);
        overwrite_freed(&numbers, LIMBS * Limb::BYTES);
        overwrite_freed(&[shared], counts + size_of::<MontyParams<BoxedUint>>());
        copy
    }
}

/// Overwrites freed allocations of `bytes` bytes at `addresses`: allocates that size until all of
/// them are covered. This is best effort: an allocator need not return them, and another thread may
/// get them first, which then overwrites them itself.
fn overwrite_freed(addresses: &[usize], bytes: usize) {
    const TRIES: usize = 64;
    let mut taken = Vec::with_capacity(TRIES);
    let covered = |taken: &[Secret<Vec<usize>>]| {
        let within = |byte: usize| {
            let block =
                |block: &Secret<Vec<usize>>| byte.wrapping_sub(block.as_ptr().addr()) < bytes;
            taken.iter().any(block)
        };
        // Allocations that were merged when freed come back with other bounds.
        let mut ends = addresses
            .iter()
            .flat_map(|&address| [address, address + bytes - 1]);
        ends.all(within)
    };
    while !covered(&taken) && taken.len() < TRIES {
        // Not zeros: `vec!` of zeros requests zeroed memory, and then glibc before 2.41 skips the
        // allocations that the thread freed last. They are zeroed when wiped.
        taken.push(Secret::new(vec![usize::MAX; bytes / size_of::<usize>()]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_constants_of_crypto_bigint_at_the_same_width() {
        for limbs in 1..=66u32 {
            let mut modulus = BoxedUint::max(limbs * Limb::BITS);
            modulus.as_mut_limbs()[limbs as usize - 1].0 >>= limbs % Limb::BITS;
            let params = secret(&modulus);
            let width = params.modulus().bits_precision();
            assert!(width == limbs * Limb::BITS || limbs > 64);
            let mut wide = BoxedUint::zero_with_precision(width);
            wide.as_mut_limbs()[..limbs as usize].copy_from_slice(modulus.as_limbs());
            let expected = BoxedMontyParams::new(Odd::new(wide).unwrap());
            assert!(*params == *expected.as_ref());
        }
    }
}
