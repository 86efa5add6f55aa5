//! Numbers as limbs, least significant limb first: conversions from and to octet strings (RFC 8017,
//! section 4).

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use crypto_bigint::{BoxedUint, Limb, Word};

/// OS2IP: converts octets, most significant first, to limbs, padded with zeros.
///
/// # Panics
///
/// If the octets do not fit.
pub(super) fn octets_to_limbs(octets: &[u8], limbs: &mut [Limb]) {
    assert!(
        octets.len() <= limbs.len() * Limb::BYTES,
        "the octets do not fit"
    );
    let (high, words) = octets.as_rchunks();
    let (low, rest) = limbs.split_at_mut(words.len());
    for (limb, word) in low.iter_mut().zip(words.iter().rev()) {
        *limb = Limb(Word::from_be_bytes(*word));
    }
    rest.fill(Limb::ZERO);
    if let Some(limb) = rest.first_mut() {
        let bits = |bits: Word, octet: &u8| bits << 8 | Word::from(*octet);
        *limb = Limb(high.iter().fold(0, bits));
    }
}

/// OS2IP to a number of `width` bits, a multiple of the limb size.
pub(super) fn os2ip(octets: &[u8], width: u32) -> BoxedUint {
    let mut number = BoxedUint::zero_with_precision(width);
    octets_to_limbs(octets, number.as_mut_limbs());
    number
}

/// I2OSP: the low `len` octets of the number in `limbs`, most significant first.
pub(super) fn limbs_to_octets(limbs: &[Limb], len: usize) -> Secret<Vec<u8>> {
    let mut octets = Secret::new(vec![0; len]);
    write_octets(limbs, &mut octets);
    octets
}

/// I2OSP: as many octets as the limbs have.
pub(super) fn i2osp(limbs: &[Limb]) -> Secret<Vec<u8>> {
    limbs_to_octets(limbs, size_of_val(limbs))
}

/// I2OSP into `octets`. Octets beyond the limbs stay unchanged.
pub(super) fn write_octets(limbs: &[Limb], octets: &mut [u8]) {
    let (high, words) = octets.as_rchunks_mut();
    for (word, limb) in words.iter_mut().rev().zip(limbs) {
        *word = limb.0.to_be_bytes();
    }
    if let Some(limb) = limbs.get(words.len()) {
        for (octet, shift) in high.iter_mut().rev().zip((0..).step_by(8)) {
            *octet = (limb.0 >> shift) as u8;
        }
    }
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
            assert_eq!(*limbs_to_octets(number.as_limbs(), len), octets[..len]);
        }
    }

    #[test]
    fn pads_with_zeros() {
        assert_eq!(
            *limbs_to_octets(BoxedUint::from(0x0102u16).as_limbs(), 12),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
        );
    }
}
