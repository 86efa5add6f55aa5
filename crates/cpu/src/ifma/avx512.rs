//! The proof that the processor has AVX-512 IFMA, and the instructions behind it.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __cpuid, __m512i, __mmask8, _mm_cvtsi64_si128, _mm512_add_epi64, _mm512_and_si512,
    _mm512_cmpeq_epi64_mask, _mm512_cvtepu8_epi64, _mm512_load_si512, _mm512_loadu_si512,
    _mm512_mask_load_epi64, _mm512_mask_permutexvar_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_srli_epi64, _mm512_store_si512, CpuidResult,
};
use std::sync::OnceLock;

use super::madd52::{Kernel, Limb8, Madd52, Processor, RADIX_BITS, multiply_add};
use crate::lanes::MAX_LANES;

/// Proof that AVX-512 F and IFMA can be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    processor: Processor,
}

impl Token {
    /// Asks the processor and the operating system.
    pub(super) fn detect() -> Option<Self> {
        Self::detect_with_code_for(detect_processor())
    }

    /// Like [`detect`](Self::detect), with the code for another processor.
    pub(super) fn detect_with_code_for(processor: Processor) -> Option<Self> {
        let usable =
            std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512ifma");
        usable.then_some(Self { processor })
    }
}

/// The processor, as it names itself.
fn detect_processor() -> Processor {
    /// Asked once: under a hypervisor each of these instructions exits to the host, which takes
    /// microseconds.
    static PROCESSOR: OnceLock<Processor> = OnceLock::new();
    *PROCESSOR.get_or_init(|| {
        let [vendor, signature] = [0, 1].map(cpuid);
        let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        let signature = signature.eax;
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        match (name.as_flattened(), family) {
            // No other processor of family 19h has AVX-512.
            (b"AuthenticAMD", 0x19) => Processor::Zen4,
            (b"GenuineIntel", _) => Processor::Intel,
            _ => Processor::Other,
        }
    })
}

/// The processor's answer for `leaf`. Rust before 1.94 calls the intrinsic unsafe.
#[allow(unused_unsafe)]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, which reads and writes no memory.
    unsafe { __cpuid(leaf) }
}

/// Every method is `#[inline(always)]` and compiled into [`with_features`], where each is one
/// instruction.
impl Madd52 for Token {
    const MAX_TILE: usize = 20;
    const MERGES_INTO_ZERO: bool = false;
    const CAN_SAVE_PRODUCTS: bool = true;

    type Limb = Limb8;
    type Vector = __m512i;
    type Mask = __mmask8;

    #[inline(always)]
    fn processor(self) -> Processor {
        self.processor
    }

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, limb: &Limb8) -> __m512i {
        // SAFETY: the token proves AVX-512 F; a `Limb8` is 64 bytes, aligned to 64.
        unsafe { _mm512_load_si512(limb.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, limb: &mut Limb8, vector: __m512i) {
        // SAFETY: the token proves AVX-512 F; a `Limb8` is 64 bytes, aligned to 64.
        unsafe { _mm512_store_si512(limb.0.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn madd_lo(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 IFMA.
        unsafe { madd_lo(sum, a, b) }
    }

    #[inline(always)]
    fn madd_hi(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 IFMA.
        unsafe { madd_hi(sum, a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn carry(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_srli_epi64::<RADIX_BITS>(a) }
    }

    #[inline(always)]
    fn carry_of_cleared(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe {
            let mask = _mm512_set1_epi64((1 << RADIX_BITS) - 1);
            _mm512_srli_epi64::<RADIX_BITS>(_mm512_add_epi64(a, mask))
        }
    }

    #[inline(always)]
    fn low(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_and_si512(a, _mm512_set1_epi64((1 << RADIX_BITS) - 1)) }
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; MAX_LANES]) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(bytes))) }
    }

    #[inline(always)]
    fn equal(self, a: __m512i, b: u64) -> __mmask8 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_cmpeq_epi64_mask(a, _mm512_set1_epi64(b.cast_signed())) }
    }

    #[inline(always)]
    fn merge(self, old: __m512i, mask: __mmask8, new: &Limb8) -> __m512i {
        // SAFETY: the token proves AVX-512 F; a `Limb8` is 64 bytes, aligned to 64.
        unsafe { _mm512_mask_load_epi64(old, mask, new.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn lane_numbers(self, bytes: [u8; MAX_LANES]) -> __m512i {
        self.widen(bytes)
    }

    #[inline(always)]
    fn pick(self, old: __m512i, mask: __mmask8, lanes: __m512i, words: &[u64; 8]) -> __m512i {
        // SAFETY: the token proves AVX-512 F; the words are 64 bytes.
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            _mm512_mask_permutexvar_epi64(old, mask, lanes, words)
        }
    }

    #[inline(always)]
    fn splat(self, value: u64) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_set1_epi64(value.cast_signed()) }
    }

    #[inline(always)]
    fn run<K: Kernel<Limb8>, const B: usize>(self, kernel: &mut K) {
        // SAFETY: the token proves AVX-512 F and IFMA.
        unsafe { with_features::<K, B>(self, kernel) }
    }
}

/// Compiles `kernel` with AVX-512.
#[target_feature(enable = "avx512f,avx512ifma")]
fn with_features<K: Kernel<Limb8>, const B: usize>(token: Token, kernel: &mut K) {
    kernel.run::<Token, B>(token);
}

multiply_add!(madd_lo(__m512i in zmm_reg), "avx512f,avx512ifma", "vpmadd52luq");
multiply_add!(madd_hi(__m512i in zmm_reg), "avx512f,avx512ifma", "vpmadd52huq");
