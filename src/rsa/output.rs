//! The output octets of all items in one buffer, and the errors of failed items.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::{iter, mem};

use batch_modexp_core::secret::Secret;
use zeroize::Zeroize;

use super::batch::Positions;
use super::error::Error;

/// The outputs of a batch. They are computed in *sorted* order, grouped by key class, and then
/// [put](Self::put_in_order) at the positions of their items.
#[derive(Default)]
pub(super) struct Outputs {
    octets: Vec<u8>,
    /// For each item where its octets start; empty until the outputs are in order.
    starts: Vec<usize>,
    /// For each item its length in octets plus 1, or 0 without a result.
    lens: Vec<u16>,
    /// For each item why it failed. An item with neither result nor error is a
    /// [fault](Error::Fault).
    errors: Vec<Option<Box<Error>>>,
}

/// The items of a class: their number, and the length of the longest output in octets.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) count: usize,
    pub(super) max_len: usize,
}

impl Outputs {
    /// Allocates the outputs of these classes.
    pub(super) fn new(classes: &[Size]) -> Secret<Self> {
        // A buffer that does not fit into the address space is refused by its allocation.
        let len = |class: &Size| class.count.saturating_mul(class.max_len);
        let len = classes.iter().map(len).fold(0, usize::saturating_add);
        let count = classes.iter().map(|class| class.count).sum();
        Secret::new(Self {
            octets: zeros(len),
            starts: Vec::new(),
            lens: vec![0; count],
            errors: vec![None; count],
        })
    }

    /// The slots of each class.
    pub(super) fn slots(&mut self, classes: &[Size]) -> impl Iterator<Item = Slots<'_>> {
        let mut rest = Slots {
            stride: 0,
            octets: &mut self.octets,
            lens: &mut self.lens,
            errors: &mut self.errors,
        };
        classes
            .iter()
            .map(move |class| rest.split_off(class.count, class.max_len))
    }

    /// Puts sorted outputs at the positions of their items. A position without an item is a fault.
    pub(super) fn put_in_order(&mut self, classes: &[Size], positions: &Positions) {
        let count = self.len();
        let strides = classes
            .iter()
            .flat_map(|class| iter::repeat_n(class.max_len, class.count));
        let starts = strides.scan(0, |end, stride| Some(mem::replace(end, *end + stride)));
        self.starts = starts.collect();
        if let Positions::Sorted(_) = positions {
            let sorted_starts = self.starts.clone();
            let sorted_lens = mem::replace(&mut self.lens, vec![0; count]);
            let mut sorted_errors = mem::replace(&mut self.errors, vec![None; count]);
            for item in 0..count {
                if let Some(position) = positions.of(item) {
                    self.starts[position] = sorted_starts[item];
                    self.lens[position] = sorted_lens[item];
                    self.errors[position] = sorted_errors[item].take();
                }
            }
        }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.lens.len()
    }

    /// The octets or the error of an item.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    pub(super) fn get(&self, index: usize) -> Result<&[u8], Error> {
        assert!(index < self.len(), "there is no item {index}");
        match (self.lens[index], &self.errors[index]) {
            (0, Some(error)) => Err((**error).clone()),
            (0, None) => Err(Error::Fault { index }),
            (len, _) => Ok(&self.octets[self.starts[index]..][..usize::from(len) - 1]),
        }
    }

    /// Fails with the error of the first failed item.
    pub(super) fn all_succeeded(&self) -> Result<(), Error> {
        let failed = self.lens.iter().position(|len| *len == 0);
        failed.map_or(Ok(()), |index| self.get(index).map(|_| ()))
    }

    /// The octets of all items, one after the other, unless one has failed.
    pub(super) fn into_vec(self) -> Result<Vec<u8>, Error> {
        self.all_succeeded()?;
        // Nothing moves if all outputs have full length and are in order.
        let mut end = 0;
        let is_in_order =
            self.starts.iter().zip(&self.lens).all(|(start, len)| {
                mem::replace(&mut end, start + usize::from(*len) - 1) == *start
            });
        if is_in_order && end == self.octets.len() {
            return Ok(self.octets);
        }
        let octets = (0..self.len()).flat_map(|index| self.get(index).unwrap_or_default());
        Ok(octets.copied().collect())
    }
}

impl Zeroize for Outputs {
    fn zeroize(&mut self) {
        self.octets.zeroize();
        self.lens.clear();
        self.errors.clear();
    }
}

/// Allocates `len` zeros; large buffers are zeroed by the operating system when threads first write
/// to a page.
///
/// glibc zeroes allocations of up to 32 MiB on the calling thread, which took 5 % of a batch of
/// 65,536 RSA-2048 signatures on an H100. Larger ones are mapped. The excess is returned, because
/// wiping a vector writes all of its capacity.
fn zeros(len: usize) -> Vec<u8> {
    const FEW: usize = 1 << 20;
    const LARGER_THAN_GLIBC_FILLS: usize = 33 << 20;
    let mut zeros = match len {
        0..FEW => vec![0; len],
        _ => vec![0; len.max(LARGER_THAN_GLIBC_FILLS)],
    };
    zeros.truncate(len);
    zeros.shrink_to_fit();
    zeros
}

/// Slots for the outputs of items of one class. They can be split like a slice.
pub(super) struct Slots<'a> {
    /// The distance between items in octets.
    stride: usize,
    octets: &'a mut [u8],
    lens: &'a mut [u16],
    errors: &'a mut [Option<Box<Error>>],
}

impl<'a> Slots<'a> {
    pub(super) fn len(&self) -> usize {
        self.lens.len()
    }

    /// Splits off the first `count` slots, with `stride` octets for each.
    ///
    /// # Panics
    ///
    /// If there are fewer slots.
    fn split_off(&mut self, count: usize, stride: usize) -> Slots<'a> {
        let (octets, lens, errors) = (
            self.octets.split_off_mut(..count * stride),
            self.lens.split_off_mut(..count),
            self.errors.split_off_mut(..count),
        );
        let (Some(octets), Some(lens), Some(errors)) = (octets, lens, errors) else {
            panic!("there are not {count} slots");
        };
        Slots {
            stride,
            octets,
            lens,
            errors,
        }
    }

    /// Splits into the first `middle` slots and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer than `middle` slots.
    pub(super) fn split_at(mut self, middle: usize) -> (Self, Self) {
        let head = self.split_off(middle, self.stride);
        (head, self)
    }

    /// Borrows the same slots.
    pub(super) fn reborrow(&mut self) -> Slots<'_> {
        Slots {
            stride: self.stride,
            octets: self.octets,
            lens: self.lens,
            errors: self.errors,
        }
    }

    /// Has `write` fill up to `len` octets of an item's slot; it returns the length of the output.
    pub(super) fn write(
        &mut self,
        item: usize,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) {
        let octets = &mut self.octets[item * self.stride..][..len];
        match write(octets) {
            Ok(len) => self.lens[item] = len as u16 + 1,
            Err(error) => {
                octets.zeroize();
                self.fail(item, error);
            }
        }
    }

    /// Marks an item as failed.
    pub(super) fn fail(&mut self, item: usize, error: Error) {
        self.lens[item] = 0;
        self.errors[item] = Some(Box::new(error));
    }

    /// Whether an item has failed its check.
    #[cfg(feature = "cuda")]
    pub(super) fn is_fault(&self, item: usize) -> bool {
        let error = self.errors[item].as_deref();
        self.lens[item] == 0 && matches!(error, Some(Error::Fault { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [Size; 2] = [
        Size {
            count: 2,
            max_len: 3,
        },
        Size {
            count: 1,
            max_len: 5,
        },
    ];

    /// Items at positions 2 and 0, then one of another class at position 1.
    fn sorted(copy: [usize; 3]) -> Positions {
        Positions::Sorted([[2, 0, 1].into(), copy.into()])
    }

    fn write(slots: &mut Slots<'_>, item: usize, octets: &[u8]) {
        slots.write(item, octets.len(), |place| {
            place.copy_from_slice(octets);
            Ok(octets.len())
        });
    }

    fn filled(positions: &Positions) -> Outputs {
        let mut outputs = Outputs::new(&SIZES);
        let mut slots: Vec<_> = outputs.slots(&SIZES).collect();
        write(&mut slots[0], 0, b"abc");
        write(&mut slots[0], 1, b"de");
        write(&mut slots[1], 0, b"fghij");
        drop(slots);
        outputs.put_in_order(&SIZES, positions);
        outputs.into_inner()
    }

    #[test]
    fn outputs_return_to_their_positions() {
        let outputs = filled(&sorted([2, 0, 1]));
        assert_eq!(outputs.get(0), Ok(&b"de"[..]));
        assert_eq!(outputs.get(1), Ok(&b"fghij"[..]));
        assert_eq!(outputs.get(2), Ok(&b"abc"[..]));
        assert_eq!(outputs.into_vec(), Ok(b"defghijabc".into()));
    }

    /// No output is returned at a position that only one of the two lists has.
    #[test]
    fn a_position_that_is_not_certain_is_a_fault() {
        let outputs = filled(&sorted([2, 1, 1]));
        let fault = Error::Fault { index: 0 };
        assert_eq!(outputs.get(0), Err(fault.clone()));
        assert!(outputs.get(1).is_ok() && outputs.get(2).is_ok());
        assert_eq!(outputs.into_vec(), Err(fault));
    }

    /// The last attempt counts, and an item without one is a fault.
    #[test]
    fn items_may_be_computed_again() {
        let wrong = Error::Verification { index: 1 };
        let size = Size {
            count: 3,
            max_len: 1,
        };
        let mut outputs = Outputs::new(&[size]);
        let mut slots = outputs.slots(&[size]).next().expect("slots of the class");
        slots.fail(0, wrong.clone());
        write(&mut slots, 0, b"a");
        write(&mut slots, 1, b"b");
        slots.fail(1, wrong.clone());
        outputs.put_in_order(&[size], &Positions::Same);
        assert_eq!(outputs.get(0), Ok(&b"a"[..]));
        assert_eq!(outputs.get(1), Err(wrong.clone()));
        assert_eq!(outputs.get(2), Err(Error::Fault { index: 2 }));
        assert_eq!(outputs.all_succeeded(), Err(wrong));
    }

    #[test]
    fn an_output_that_failed_is_wiped() {
        let mut outputs = Outputs::new(&SIZES);
        let mut slots = outputs
            .slots(&SIZES)
            .next()
            .expect("slots of the first class");
        slots.write(1, 3, |place| {
            place.fill(7);
            Err(Error::Decryption { index: 0 })
        });
        assert!(outputs.octets.iter().all(|octet| *octet == 0));
    }

    /// Spare capacity would be written when secrets are wiped.
    #[test]
    fn large_buffers_have_no_spare_capacity() {
        let size = Size {
            count: 1 << 12,
            max_len: 256,
        };
        let outputs = Outputs::new(&[size]);
        assert_eq!(outputs.octets.len(), 1 << 20);
        assert_eq!(outputs.octets.capacity(), 1 << 20);
    }
}
