//! Between numbers and octet strings (RFC 8017, section 4).

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb};

use crate::secret::Secret;

/// OS2IP: the number that `octets` stand for, most significant first, `width` bits wide.
///
/// # Panics
///
/// If the octets do not fit; `width` is a multiple of the limb size.
pub(super) fn os2ip(octets: &[u8], width: u32) -> BoxedUint {
    let mut number = BoxedUint::zero_with_precision(width);
    let limbs = number.as_mut_limbs();
    for (limb, chunk) in limbs.iter_mut().zip(octets.rchunks(Limb::BYTES)) {
        *limb = Limb(chunk.iter().fold(0, |word, &octet| {
            word << 8 | crypto_bigint::Word::from(octet)
        }));
    }
    assert!(
        octets.len() <= limbs.len() * Limb::BYTES,
        "the octets do not fit"
    );
    number
}

/// I2OSP: the low `len` octets of `number`, most significant first.
pub(super) fn i2osp(number: &BoxedUint, len: usize) -> Secret<Vec<u8>> {
    let low_first = number
        .as_limbs()
        .iter()
        .flat_map(|limb| limb.0.to_le_bytes());
    let mut octets = Secret::new(Vec::with_capacity(len));
    octets.extend(low_first.chain(core::iter::repeat(0)).take(len));
    octets.reverse();
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_at_every_length() {
        let octets: Vec<u8> = (1..=40).collect();
        for len in 0..=octets.len() {
            let width = (len.div_ceil(Limb::BYTES).max(1) * Limb::BYTES * 8) as u32;
            let number = os2ip(&octets[..len], width);
            assert_eq!(
                number,
                BoxedUint::from_be_slice(&octets[..len], width).unwrap()
            );
            assert_eq!(*i2osp(&number, len), octets[..len]);
        }
    }

    #[test]
    fn pads_with_zeros() {
        assert_eq!(
            *i2osp(&BoxedUint::from(0x0102u16), 12),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
        );
    }
}
