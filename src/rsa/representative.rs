//! Conversion of blocks from others to representatives, the inputs of the private operation.

use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{BoxedUint, CtEq, CtLt, Limb};

use super::batch::Source;
use super::key::KeyHandle;
use super::octets::os2ip;
use super::random::Randomness;
use crate::rsa::Error;

/// Range of accepted representatives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// Below n: RFC 8017, sections 5.1.2 and 5.2.1.
    BelowModulus,
    /// Above 1 and below n - 1: SP 800-56B Rev. 2, section 7.1.2.
    Sp800_56b,
}

/// Fails unless a block is as long as the modulus and, as a number, in the range. The error is that
/// of a batch of one.
pub(super) fn check_range(key: &KeyHandle, block: &[u8], range: Range) -> Result<(), Error> {
    let out_of_range = Error::BlockOutOfRange {
        index: 0,
        len: block.len(),
        expected: key.size(),
    };
    if block.len() != key.size() {
        return Err(out_of_range);
    }
    let n = &key.parts().n;
    let number = Secret::new(os2ip(block, n.bits_precision()));
    let mut fits = number.ct_lt(n.modulus().as_ref());
    if let Range::Sp800_56b = range {
        // n is odd.
        let mut last = n.modulus().as_ref().clone();
        last.as_mut_limbs()[0] ^= Limb::ONE;
        let one = BoxedUint::one_with_precision(n.bits_precision());
        fits = fits & one.ct_lt(&number) & !number.ct_eq(&last);
    }
    if !reveal(fits) {
        return Err(out_of_range);
    }
    Ok(())
}

/// A source whose representatives are blocks of octets.
pub(super) struct Blocks<'f, 'b> {
    /// The key and the block at each position of the batch.
    pub(super) item: &'f (dyn Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync),
    pub(super) range: Range,
    /// Fails if a key may not be used; the error is that of a batch of one.
    pub(super) check_key: fn(&KeyHandle) -> Result<(), Error>,
}

impl Source<KeyHandle> for Blocks<'_, '_> {
    fn key(&self, position: usize) -> &KeyHandle {
        (self.item)(position).0
    }

    fn encode(
        &self,
        position: usize,
        key: &KeyHandle,
        _: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error> {
        (self.check_key)(key)?;
        let (_, block) = (self.item)(position);
        check_range(key, block, self.range)?;
        em.copy_from_slice(block);
        Ok(())
    }
}
