//! The text of a kernel module, deflated by the build script.

use alloc::ffi::CString;
use core::fmt;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// A module of `kernels/ptx`.
pub(crate) struct CompressedPtx {
    /// The length of the text.
    pub(crate) text_bytes: usize,
    /// A hash of the text, which differs between versions of the crate.
    pub(crate) fingerprint: u64,
    /// The text in the DEFLATE format (RFC 1951).
    pub(crate) deflated: &'static [u8],
}

impl CompressedPtx {
    /// The text.
    pub(crate) fn text(&self) -> CString {
        let text = decompress_to_vec_with_limit(self.deflated, self.text_bytes).ok();
        text.and_then(|text| CString::new(text).ok())
            .unwrap_or_else(|| unreachable!("the build script deflated a text"))
    }
}

impl fmt::Debug for CompressedPtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompressedPtx")
            .field("text_bytes", &self.text_bytes)
            .finish_non_exhaustive()
    }
}
