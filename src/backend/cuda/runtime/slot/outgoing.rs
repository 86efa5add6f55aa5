//! The inputs of a chunk before they are sent. Some can be sent while others are still being
//! written.

use core::mem;
use core::ops::Range;

use cudarc::driver::DriverError;

use super::super::layout::Part;

/// Words of the inputs, to be written and then sent. Sending consumes them, so they cannot change
/// afterwards.
pub(crate) struct Outgoing<'a> {
    words: &'a mut [u64],
    /// The position of the first word in the inputs.
    first: usize,
    to: &'a dyn Destination,
}

/// A destination of inputs.
pub(super) trait Destination {
    /// Copies `words`, which begin at position `first` of the inputs.
    fn copy(&self, first: usize, words: &[u64]) -> Result<(), DriverError>;

    /// Skips `len` words.
    fn leave_out(&self, len: usize);
}

impl<'a> Outgoing<'a> {
    /// All words of the inputs.
    pub(super) fn new(words: &'a mut [u64], to: &'a dyn Destination) -> Self {
        Self {
            words,
            first: 0,
            to,
        }
    }

    /// The same for tests of writers. The words are sent nowhere.
    #[cfg(test)]
    pub(crate) fn nowhere(words: &'a mut [u64]) -> Self {
        struct Nowhere;
        impl Destination for Nowhere {
            fn copy(&self, _: usize, _: &[u64]) -> Result<(), DriverError> {
                Ok(())
            }

            fn leave_out(&self, _: usize) {}
        }
        Self::new(words, &Nowhere)
    }

    /// All words, for writing.
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
    pub(crate) fn words(&mut self) -> &mut [u64] {
        self.words
    }

    /// The words of some parts of the inputs, for writing.
    ///
    /// # Panics
    ///
    /// If a part is not among these words, or parts overlap.
    pub(crate) fn places<const N: usize>(&mut self, parts: [Part; N]) -> [&mut [u64]; N] {
        let places = parts.map(|part| {
            let Range { start, end } = part.range();
            self.place(start)..self.place(end)
        });
        let Ok(places) = self.words.get_disjoint_mut(places) else {
            panic!("parts that are somewhere else, or overlap");
        };
        places
    }

    /// Splits off the words before position `end` of the inputs.
    ///
    /// # Panics
    ///
    /// If `end` is not among these words.
    pub(crate) fn take_to(&mut self, end: usize) -> Self {
        let len = self.place(end);
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

    /// The index of a position of the inputs among these words.
    fn place(&self, of_inputs: usize) -> usize {
        let Some(place) = of_inputs.checked_sub(self.first) else {
            panic!("a place that was taken away");
        };
        place
    }

    /// Copies the words to the device.
    pub(crate) fn send(self) -> Result<(), DriverError> {
        match self.words {
            [] => Ok(()),
            words => self.to.copy(self.first, words),
        }
    }

    /// Skips the words, because no kernel reads them.
    pub(crate) fn leave_out(self) {
        self.to.leave_out(self.words.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::Layout;
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::cell::{Cell, RefCell};

    /// Records the copies and the number of skipped words.
    #[derive(Default)]
    struct Copies(RefCell<Vec<(usize, Vec<u64>)>>, Cell<usize>);

    impl Destination for Copies {
        fn copy(&self, first: usize, words: &[u64]) -> Result<(), DriverError> {
            self.0.borrow_mut().push((first, words.to_vec()));
            Ok(())
        }

        fn leave_out(&self, len: usize) {
            self.1.set(self.1.get() + len);
        }
    }

    #[test]
    fn pieces_go_where_they_belong() {
        let mut layout = Layout::default();
        // Parts begin at multiples of eight words.
        let [a, b, none, c, d] = [3, 9, 0, 1, 2].map(|len| layout.input(len));
        let mut words = vec![0; layout.sizes().input];
        let copies = Copies::default();
        let mut rest = Outgoing::new(&mut words, &copies);
        let mut head = rest.take_to(b.range().end);
        let [of_a, of_b] = head.places([a, b]);
        of_a.fill(7);
        of_b.fill(8);
        let nothing = rest.take_to(none.range().end);
        let [of_d, of_c] = rest.places([d, c]);
        of_d.fill(9);
        of_c.fill(6);
        let tail = rest.take_to(d.range().start + 1);
        rest.leave_out();
        tail.send().unwrap();
        nothing.send().unwrap();
        head.send().unwrap();
        let expected = [
            (24, vec![6, 0, 0, 0, 0, 0, 0, 0, 9]),
            (17, vec![0; 7]),
            (0, [vec![7; 3], vec![0; 5], vec![8; 9]].concat()),
        ];
        assert_eq!(copies.0.into_inner(), expected);
        assert_eq!(copies.1.into_inner(), 1);
    }

    /// Words that were split off cannot be reached any more.
    #[test]
    #[should_panic(expected = "a place that was taken away")]
    fn what_was_taken_has_no_places_left() {
        let mut layout = Layout::default();
        let [a, b] = [3, 9].map(|len| layout.input(len));
        let mut words = vec![0; layout.sizes().input];
        let mut rest = Outgoing::nowhere(&mut words);
        let _head = rest.take_to(a.range().end);
        let _ = rest.places([a, b]);
    }
}
