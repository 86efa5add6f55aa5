//! The inputs of a chunk until they are on their way: some can be sent while others are still being written.

use core::mem;

use cudarc::driver::DriverError;

use super::super::layout::Part;

/// Words of the inputs, to be written and then sent. Once they are, nobody has them to write to any more.
pub(crate) struct Outgoing<'a> {
    words: &'a mut [u64],
    /// Where the first of them is in the inputs.
    first: usize,
    to: &'a dyn Destination,
}

/// Where inputs go.
pub(super) trait Destination {
    /// Has `words` copied, the first of which is at place `first` of the inputs.
    fn copy(&self, first: usize, words: &[u64]) -> Result<(), DriverError>;
}

impl<'a> Outgoing<'a> {
    /// All of the inputs.
    pub(super) fn new(words: &'a mut [u64], to: &'a dyn Destination) -> Self {
        Self {
            words,
            first: 0,
            to,
        }
    }

    /// The same for tests of those who write them. They are sent nowhere.
    #[cfg(test)]
    pub(crate) fn nowhere(words: &'a mut [u64]) -> Self {
        struct Nowhere;
        impl Destination for Nowhere {
            fn copy(&self, _: usize, _: &[u64]) -> Result<(), DriverError> {
                Ok(())
            }
        }
        Self::new(words, &Nowhere)
    }

    pub(crate) fn words(&mut self) -> &mut [u64] {
        self.words
    }

    /// The first `len` words, which are taken away.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub(crate) fn take(&mut self, len: usize) -> Self {
        let (words, others) = mem::take(&mut self.words).split_at_mut(len);
        let first = self.first;
        self.words = others;
        self.first += len;
        Self {
            words,
            first,
            to: self.to,
        }
    }

    /// Some parts, one after the other in the inputs. What is between them is not sent.
    ///
    /// # Panics
    ///
    /// If they are in another order, or not in here.
    pub(crate) fn parts<const N: usize>(mut self, parts: [Part; N]) -> [Self; N] {
        parts.map(|part| {
            self.take(part.range().start - self.first);
            self.take(part.range().len())
        })
    }

    /// Has them copied to the device.
    pub(crate) fn send(self) -> Result<(), DriverError> {
        match self.words {
            [] => Ok(()),
            words => self.to.copy(self.first, words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::Layout;
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    /// Notes what is copied where.
    struct Copies(RefCell<Vec<(usize, Vec<u64>)>>);

    impl Destination for Copies {
        fn copy(&self, first: usize, words: &[u64]) -> Result<(), DriverError> {
            self.0.borrow_mut().push((first, words.to_vec()));
            Ok(())
        }
    }

    #[test]
    fn pieces_go_where_they_belong() {
        let mut layout = Layout::default();
        // Parts begin at multiples of eight words.
        let parts = [3, 9, 0, 1].map(|len| layout.input(len));
        let mut words = vec![0; layout.sizes().input];
        let copies = Copies(RefCell::default());
        let [first, mut second, none, mut last] = Outgoing::new(&mut words, &copies).parts(parts);
        second.words().fill(7);
        let mut head = second.take(4);
        head.words()[3] = 8;
        second.send().unwrap();
        none.send().unwrap();
        last.words().fill(9);
        last.send().unwrap();
        head.send().unwrap();
        first.send().unwrap();
        let expected = [
            (12, vec![7; 5]),
            (24, vec![9]),
            (8, vec![7, 7, 7, 8]),
            (0, vec![0; 3]),
        ];
        assert_eq!(copies.0.into_inner(), expected);
    }
}
