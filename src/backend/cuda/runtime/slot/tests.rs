//! Tests that leftovers in buffers are found. They need a GPU.

#[cfg(feature = "rsa")]
pub(crate) mod injection;

use super::super::device::Device;
use super::super::probe;
use super::*;

impl Slot {
    /// Whether all buffers, on the host and on the device, hold only zeros.
    pub(in crate::backend::cuda::runtime) fn is_wiped(&self) -> bool {
        self.buffers.as_ref().is_none_or(Buffers::are_wiped)
    }
}

/// Runs `test` with a slot, if there is a device.
fn with_slot(test: impl FnOnce(&mut Slot)) {
    let found = crate::need::available("cuda", probe::devices());
    let Some(found) = found else { return };
    let device = Device::open(&found[0]).unwrap();
    let call = device.call();
    let mut in_use = call.slots(1);
    test(&mut in_use.slots[0]);
}

/// The control of all tests that look for leftovers: a single word in any of the buffers is found.
#[test]
fn a_word_that_is_left_is_found() {
    with_slot(|slot| {
        let mut work = Work::default();
        work.input(9);
        work.output(9);
        work.scratch(9);
        work.intermediate(9);
        slot.grow(work.sizes).unwrap();
        assert!(slot.is_wiped());
        for buffer in 0..Buffers::COUNT {
            for (last, is_wiped) in [(1, false), (0, true)] {
                slot.buffers.as_mut().unwrap().write_last(buffer, last);
                assert_eq!(slot.is_wiped(), is_wiped, "buffer {buffer}");
            }
        }
    });
}

/// Chunks of slightly different sizes reuse the buffers of a slot, and a much larger chunk replaces
/// them.
#[test]
fn buffers_have_room() {
    with_slot(|slot| {
        let mut words_for = |words: usize| {
            let sizes = Sizes([words, 0, 3 * words, 0]);
            slot.grow(sizes).unwrap();
            let have = slot.buffers.as_ref().unwrap().sizes();
            assert!(have.covers(sizes));
            slot.words()
        };
        let first = words_for(1000);
        assert_eq!(words_for(1024), first);
        assert_eq!(words_for(1), first);
        assert!(words_for(1025) > first);
    });
}

/// Submits a chunk of `words` inputs and outputs, without a kernel.
fn send_words(slot: &mut Slot, words: usize) {
    let mut work = Work::default();
    work.input(words);
    work.output(words);
    slot.submit(&work, |input| input.fill(7)).unwrap();
}

/// Reads and wipes the results of such a chunk.
fn take_words(slot: &mut Slot, words: usize) {
    slot.finish(false).unwrap();
    slot.take_results(|output| {
        assert_eq!(output.len(), words);
        output.fill(0);
    });
}

/// Results that are not taken are wiped, also while the next chunk is under way.
#[test]
fn results_that_are_not_taken_are_wiped() {
    with_slot(|slot| {
        for is_under_way in [false, true] {
            send_words(slot, 10);
            slot.finish(false).unwrap();
            if is_under_way {
                send_words(slot, 5000);
            }
            slot.abandon();
            assert!(slot.is_wiped());
        }
        send_words(slot, 10);
        take_words(slot, 10);
        slot.settle().unwrap();
        assert!(slot.is_wiped());
    });
}

/// Chunks leave their data on the device to the next one, which may be smaller. When none follows,
/// all data is wiped, whether the slot is settled or abandoned.
#[test]
fn what_chunks_leave_on_the_device_is_wiped() {
    with_slot(|slot| {
        let chunk = |words: usize, slot: &mut Slot| {
            send_words(slot, words);
            take_words(slot, words);
        };
        let wipes: [fn(&mut Slot); 2] = [|slot| slot.settle().unwrap(), Slot::abandon];
        for wipe in wipes {
            chunk(1000, slot);
            chunk(10, slot);
            assert!(!slot.is_wiped());
            wipe(slot);
            assert!(slot.is_wiped());
        }
    });
}
