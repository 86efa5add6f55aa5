//! Hints to the processor's caches.
#![allow(unsafe_code)]

/// Words in a cache line of x86-64.
#[cfg(target_arch = "x86_64")]
const LINE_WORDS: usize = 8;

/// Starts to load words into the second-level cache, on x86-64. Results never depend on it. The
/// addresses must be public.
#[inline]
pub(super) fn prefetch(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    for word in words.iter().step_by(LINE_WORDS).chain(words.last()) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has SSE. The address is that of a word.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(core::ptr::from_ref(word).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = words;
}
