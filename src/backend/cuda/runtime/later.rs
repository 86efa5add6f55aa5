//! Places for results that are made while the first instances are computed.

use alloc::vec::Vec;
use core::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Places that one thread makes and others take, a range of them at a time.
///
/// To make those of a million instances takes some milliseconds, in which devices would have nothing to do.
pub(crate) struct Later<'p, P> {
    state: Mutex<State<'p, P>>,
    has_changed: Condvar,
}

enum State<'p, P> {
    Unmade,
    /// Those that nobody has taken, with the instances that the first of each are for.
    Made(Vec<(usize, &'p mut [P])>),
    /// Whoever was to make them has panicked.
    Never,
}

impl<'p, P> Later<'p, P> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::Unmade),
            has_changed: Condvar::new(),
        }
    }

    /// Says that the calling thread makes them. It is [given](Making::give) them, or there will be none.
    pub(crate) fn making(&self) -> Making<'_, 'p, P> {
        Making {
            later: self,
            state: State::Never,
        }
    }

    /// The places of some instances, which nobody has taken. Waits until they are made.
    ///
    /// # Panics
    ///
    /// If there will be none, or if somebody has taken some of them.
    pub(crate) fn take(&self, range: &Range<usize>) -> &'p mut [P] {
        let mut state = self.lock();
        loop {
            match &mut *state {
                State::Unmade => {}
                State::Made(places) => return cut_out(places, range),
                State::Never => panic!("the places for results could not be made"),
            }
            let waited = self.has_changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'p, P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut_out<'p, P>(places: &mut Vec<(usize, &'p mut [P])>, range: &Range<usize>) -> &'p mut [P] {
    let has = |(first, places): &(usize, &mut [P])| {
        *first <= range.start && range.end <= first + places.len()
    };
    let Some(index) = places.iter().position(has) else {
        panic!("the places of {range:?} were taken before");
    };
    let (first, all) = places.swap_remove(index);
    let (below, rest) = all.split_at_mut(range.start - first);
    let (taken, above) = rest.split_at_mut(range.len());
    let left = [(first, below), (range.end, above)];
    places.extend(left.into_iter().filter(|(_, places)| !places.is_empty()));
    taken
}

/// Held by who makes the places.
pub(crate) struct Making<'l, 'p, P> {
    later: &'l Later<'p, P>,
    /// What it will be.
    state: State<'p, P>,
}

impl<'p, P> Making<'_, 'p, P> {
    /// The places, from that of instance 0 on.
    pub(crate) fn give(mut self, places: &'p mut [P]) {
        self.state = State::Made(Vec::from([(0, places)]));
    }
}

impl<P> Drop for Making<'_, '_, P> {
    fn drop(&mut self) {
        *self.later.lock() = core::mem::replace(&mut self.state, State::Never);
        self.later.has_changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;
    use std::thread;

    use super::*;

    #[test]
    fn ranges_are_taken_when_they_are_there() {
        let mut places = [0; 10];
        let later = Later::new();
        thread::scope(|scope| {
            for range in [4..6, 0..1, 1..4, 9..10, 6..9] {
                let later = &later;
                scope.spawn(move || later.take(&range).fill(range.start + 1));
            }
            later.making().give(&mut places);
        });
        assert_eq!(places, [1, 2, 2, 2, 5, 5, 7, 7, 7, 10]);
    }

    #[test]
    fn nobody_waits_for_who_has_panicked() {
        let later = Later::<u8>::new();
        let takes = || catch_unwind(AssertUnwindSafe(|| later.take(&(0..1)).len()));
        let taken = thread::scope(|scope| {
            let taking = scope.spawn(takes);
            let made = catch_unwind(AssertUnwindSafe(|| {
                let _making = later.making();
                panic!("a panic by intention");
            }));
            assert!(made.is_err());
            taking.join().unwrap()
        });
        assert!(taken.is_err());
        assert!(takes().is_err());
    }

    #[test]
    #[should_panic(expected = "were taken before")]
    fn nothing_is_taken_twice() {
        let mut places = [0; 4];
        let later = Later::new();
        later.making().give(&mut places);
        assert_eq!(later.take(&(1..3)).len(), 2);
        later.take(&(2..4));
    }
}
