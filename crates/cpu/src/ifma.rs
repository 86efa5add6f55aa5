//! AVX-512 IFMA and AVX-IFMA in radix 2^52: eight instances at a time, or four; two where there are
//! few.

mod avx512;
mod avx_ifma;
#[cfg(all(test, target_os = "linux"))]
mod emulator;
mod halves;
mod kernel;
mod lanes52;
mod look_up;
mod madd52;
mod pair;
#[cfg(test)]
mod portable;
mod powers;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tiles;

use self::lanes52::Lanes52;
use self::madd52::{Limb4, Madd52};
use self::pair::{Across, Pairs};
use super::adx::{self, Words};
use super::lanes::{LaneEngine, SimdEngine, backend};
use super::profile;

/// Computes a batch on the calling thread with 52-bit multiply-adds of vectors.
///
/// Uses AVX-512 IFMA, eight instances at a time (x86-64: Intel's servers since Ice Lake, AMD since
/// Zen 4), or AVX-IFMA, four at a time (Intel's clients since Meteor Lake, Sierra Forest). The
/// processor is asked at run time; no build settings are needed.
///
/// In a group of eight each instance has its own 64-bit lane of the vector registers. The rest of a
/// batch is computed in pairs where that takes less time, each instance across four lanes. This
/// applies at most widths from 384 to 4,096 bits, to up to two instances, and to four from 1,024
/// bits on. Two instances take from nine to four tenths of the time of a group. A larger rest
/// costs as much as a group.
///
/// With four lanes there are no pairs. A single instance whose width is a multiple of 512 bits is
/// computed in words of 64 bits; two or three instances cost as much as four.
///
/// Moduli of up to 16,384 bits are served; wider ones fail with
/// [`Error::ModulusWidth`](batch_modexp_core::Error::ModulusWidth). An instance costs the same
/// whatever its neighbours are, so different moduli may stand side by side.
/// Instances of equal width should stand together: each change of width starts new vectors.
///
/// Source for groups: S. Gueron and V. Krasnov, "Accelerating Big Integer Arithmetic Using Intel
/// IFMA Extensions", ARITH 2016. Here each lane has its own instance, so that no data moves across
/// lanes. Source for pairs: the same authors, "Software Implementation of Modular Exponentiation,
/// Using Advanced Vector Instructions Architectures", WAIFI 2012.
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Ifma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 8];
///
/// if let Some(ifma) = Ifma::new() {
///     let mut out = [U256::ZERO; 8];
///     ifma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 8]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Engines);

/// The engine for the instructions of this processor.
#[derive(Clone, Copy, Debug)]
enum Engines {
    Eight(Eight<avx512::Token>),
    Four(Four<avx_ifma::Token<EVEX>>),
}

/// Eight lanes, and pairs for the last instances of a batch.
type Eight<T> = LaneEngine<Lanes52<T>, Pairs<T>>;

/// Four lanes, and words for the last instance of a batch.
type Four<T> = LaneEngine<Lanes52<T>, Words<adx::Token>>;

/// Forces four lanes in the AVX-512 encoding, for tests and measurements on processors without
/// AVX-IFMA. Set by `RUSTFLAGS='--cfg batch_modexp_ifma_evex256'`.
const EVEX: bool = cfg!(batch_modexp_ifma_evex256);

impl Ifma {
    /// The most instances that are computed at the same time: half as many with AVX-IFMA. See
    /// [`granularity`](batch_modexp_core::BatchModExp::granularity).
    pub const LANES: usize = 8;

    /// The backend, if the processor and the operating system support AVX-512 F and IFMA, or
    /// AVX-IFMA.
    #[must_use]
    pub fn new() -> Option<Self> {
        let of_eight = || avx512::Token::detect().map(|token| Engines::Eight(eight(token)));
        let of_four = || {
            let words = adx::Token::detect().map(Words);
            avx_ifma::Token::<EVEX>::detect().map(|token| Engines::Four(four(token, words)))
        };
        let engines = match EVEX {
            true => of_four(),
            false => of_eight().or_else(of_four),
        };
        engines.map(Self)
    }

    /// The engine of this processor.
    #[inline(never)]
    pub(crate) fn simd(&self) -> &dyn SimdEngine {
        match &self.0 {
            Engines::Eight(engine) => engine,
            Engines::Four(engine) => engine,
        }
    }
}

backend!(pub Ifma);

fn eight<T: Across>(unit: T) -> Eight<T> {
    LaneEngine::new(Lanes52(unit), Some(Pairs(unit)), profile::IFMA)
}

fn four<T: Madd52<Limb = Limb4>>(unit: T, words: Option<Words<adx::Token>>) -> Four<T> {
    LaneEngine::new(Lanes52(unit), words, profile::IFMA_FOUR)
}
