//! The mask generation function MGF1 (RFC 8017, appendix B.2.1).

use sha2::Digest;
use zeroize::Zeroize;

/// Adds (exclusive or) the mask of `seed` to `octets`; both are equally long.
pub(super) fn add_mask<D: Digest>(seed: &[u8], octets: &mut [u8]) {
    let len = <D as Digest>::output_size();
    for (counter, chunk) in (0u32..).zip(octets.chunks_mut(len)) {
        let mut mask = D::new()
            .chain_update(seed)
            .chain_update(counter.to_be_bytes())
            .finalize();
        for (octet, mask) in chunk.iter_mut().zip(&mask) {
            *octet ^= mask;
        }
        mask.as_mut_slice().zeroize();
    }
}
