//! Fused multiply-add of doubles: four instances at a time in radix 2^51.
//!
//! # Exact products from rounded ones
//!
//! Limbs are integers of up to 51 bits held in doubles. Let `a` and `b` be limbs of at most 2^51;
//! one may be doubled if the product stays below 2^103. Then
//!
//! ```text
//! high = fma(a, b, 2^103)                       = 2^103 + H * 2^51
//! low  = fma(a, b, (2^103 + 1.5 * 2^52) - high) = 1.5 * 2^52 + L
//! ```
//!
//! with `a * b = H * 2^51 + L` and `|L| <= 2^50`. Doubles from 2^103 to 2^104 are 2^51 apart, so
//! the first line rounds `a * b` to the nearest multiple of 2^51. The difference in the second line
//! is exact: it is a multiple of 2^51 below 2^104. Its result is exact too, an integer between 2^52
//! and 2^53. Rounding is to nearest throughout, as always in Rust. Limbs of 52 bits would need
//! another rounding mode, which Rust does not allow.
//!
//! The bit patterns of both are `0x466 << 52 | H` and `0x433 << 52 | 2^51 + L`, and can be added as
//! 64-bit integers, column by column. The number of products of each column is known, so their
//! constant parts are subtracted beforehand: see [`bias`].
//!
//! Source: N. Emmart, J. Luitjens, C. Weems, C. Woolley, "Optimizing Modular Multiplication for
//! NVIDIA's Maxwell GPUs", ARITH 2016, and N. Emmart, F. Zheng, C. Weems, "Faster Modular
//! Exponentiation using Double Precision Floating Point Arithmetic on the GPU", ARITH 2018, who use
//! 52 bits and rounding toward zero.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod band;
mod bias;
mod fma51;
mod lanes4;
mod look_up;
#[cfg(target_arch = "aarch64")]
mod neon;
mod product;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
use self::avx2::Token;
use self::lanes4::Lanes4;
#[cfg(target_arch = "aarch64")]
use self::neon::Token;
#[cfg(target_arch = "x86_64")]
use super::adx::{self, Words};
use super::lanes::products::{NEVER, ProductCounts, fewest};
use super::lanes::{LaneEngine, Profile, SimdEngine, backend};

/// For instances that would leave lanes empty.
#[cfg(target_arch = "x86_64")]
type Last = Words<adx::Token>;

/// Nothing else than lanes.
#[cfg(target_arch = "aarch64")]
type Last = Lanes4<Token>;

/// Computes a batch on the calling thread with fused multiply-add of doubles, four instances at a
/// time.
///
/// Runs on x86-64 with AVX2 and FMA (Intel since Haswell, AMD since Zen) and on any 64-bit Arm. The
/// processor is asked at run time; no build settings are needed.
///
/// Each instance has its own lane of the vector registers. Up to three instances may remain after
/// groups of four. They cost as much as a group of four, or are computed one by one in words of 64
/// bits where that takes less time. The latter applies to one or two instances of most widths, on
/// x86-64 with BMI2 and ADX (Intel since Broadwell, AMD since Zen).
///
/// Moduli of up to 16,384 bits are served; wider ones fail with
/// [`Error::ModulusWidth`](batch_modexp_core::Error::ModulusWidth). An instance costs the same
/// whatever its neighbours are, so different moduli may stand side by side.
/// Instances of equal width should stand together: each change of width starts new vectors.
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Fma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 4];
///
/// if let Some(fma) = Fma::new() {
///     let mut out = [U256::ZERO; 4];
///     fma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 4]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fma(LaneEngine<Lanes4<Token>, Last>);

impl Fma {
    /// The number of instances that are computed at the same time.
    pub const LANES: usize = 4;

    /// The backend, if the processor has the instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let last = adx::Token::detect().map(Words);
        #[cfg(target_arch = "aarch64")]
        let last = None;
        Self::with_last(last)
    }

    fn with_last(last: Option<Last>) -> Option<Self> {
        let lanes = Lanes4(Token::detect()?);
        Some(Self(LaneEngine::new(lanes, last, PROFILE)))
    }

    /// With words under valgrind, which has the instructions.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn with_words_under_valgrind() -> Option<Self> {
        Self::with_last(Some(Words(adx::Token::under_valgrind())))
    }

    /// The engine of this processor.
    #[inline(never)]
    pub(crate) fn simd(&self) -> &dyn SimdEngine {
        &self.0
    }
}

backend!(pub Fma);

/// `Fma`, then one by one in words.
pub(crate) const PROFILE: Profile = Profile {
    name: "fma",
    lanes: 4,
    last_cost: |bits, count| {
        let (_, one) = IN_WORDS.iter().find(|(largest, _)| bits <= *largest)?;
        Some((*one)? * count as u64)
    },
    has_pairs: false,
    single_on_serial: 960,
    products: &PRODUCTS,
    fewest_for_buckets: |_| 128,
    trial_division_bound: 1 << 16,
};

/// `(largest width in bits, cost of one instance in words)`. Measured on a Zen 5 with exponents as
/// long as the moduli. Words come in tiles of 512 bits, so the relative cost falls with the width
/// within one number of tiles. Where there is no cost, lanes or
/// [`Serial`](batch_modexp_core::Serial) are faster.
const IN_WORDS: [(u32, Option<u64>); 22] = [
    (320, None),
    (384, Some(520)),
    (448, Some(420)),
    (512, Some(310)),
    (640, None),
    (704, Some(740)),
    (768, Some(670)),
    (832, Some(600)),
    (896, Some(540)),
    (960, Some(480)),
    (1024, Some(420)),
    (1088, Some(790)),
    (1152, Some(710)),
    (1280, Some(600)),
    (1408, Some(550)),
    (1536, Some(440)),
    (1664, Some(700)),
    (1792, Some(600)),
    (1920, Some(550)),
    (2048, Some(480)),
    (2304, Some(580)),
    (16_384, Some(500)),
];

const PRODUCTS: [ProductCounts; 4] = [
    fewest(512, [256, NEVER], [NEVER, NEVER]),
    fewest(1024, [12, 24], [NEVER, NEVER]),
    fewest(2048, [4, 8], [8, 8]),
    fewest(4096, [3, 3], [4, 4]),
];
