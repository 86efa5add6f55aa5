//! Tests that leftovers in buffers are found. They need a GPU.

#[cfg(feature = "rsa")]
pub(crate) mod injection;

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

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

/// The last word of the host's inputs, as a stream finds it.
struct Look {
    word: *const u64,
    seen: AtomicU64,
}

/// Queues a delayed look at the inputs. If the delay is too short, a fault may be missed, but none
/// is reported falsely.
fn queue_look(slot: &mut Slot, look: &mut Look) {
    unsafe extern "C" fn look_at(argument: *mut c_void) {
        std::thread::sleep(Duration::from_millis(200));
        // SAFETY: the test keeps the `Look` until the stream is done, and the slot keeps the buffer
        // until then.
        let look = unsafe { &*argument.cast::<Look>() };
        // SAFETY: as above.
        look.seen
            .store(unsafe { look.word.read_volatile() }, Ordering::SeqCst);
    }
    let buffers = slot.buffers.as_mut().unwrap();
    buffers.write_last(0, 7);
    let words = buffers.sizes().of(Buffer::Input);
    look.word = buffers.inputs(words).last().unwrap();
    slot.context.bind_to_thread().unwrap();
    let argument = core::ptr::from_mut(look).cast();
    // SAFETY: the context is bound, and the data of the function stays valid, as explained there.
    unsafe {
        result::stream::launch_host_function(slot.stream.cu_stream(), look_at, argument).unwrap();
    }
}

/// Queued clearing finds the buffers still allocated, whether larger ones replace them or the slot
/// frees them. Dropping buffers wipes the host's inputs first, which this test observes.
#[test]
fn buffers_stay_until_clearing_is_over() {
    let replace: fn(&mut Slot) = |slot| {
        let sizes = slot.buffers.as_ref().unwrap().sizes();
        let input = 2 * sizes.of(Buffer::Input);
        slot.grow(Sizes([input, 0, 0, 0])).unwrap();
    };
    let give_up: fn(&mut Slot) = |slot| {
        slot.abandon();
        slot.release();
    };
    for go in [replace, give_up] {
        with_slot(|slot| {
            send_words(slot, 1000);
            take_words(slot, 1000);
            let mut look = Look {
                word: core::ptr::null(),
                seen: AtomicU64::new(0),
            };
            queue_look(slot, &mut look);
            slot.clear_device().unwrap();
            go(slot);
            slot.stream.synchronize().unwrap();
            assert_eq!(look.seen.load(Ordering::SeqCst), 7);
        });
    }
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
        let wipes: [fn(&mut Slot); 3] = [
            |slot| slot.settle().unwrap(),
            Slot::abandon,
            |slot| {
                slot.clear_device().unwrap();
                slot.settle().unwrap();
            },
        ];
        for wipe in wipes {
            chunk(1000, slot);
            chunk(10, slot);
            assert!(!slot.is_wiped());
            wipe(slot);
            assert!(slot.is_wiped());
        }
    });
}
