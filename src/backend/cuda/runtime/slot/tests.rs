//! Whether what is left in buffers is found. Needs a GPU.

use super::super::device::Device;
use super::super::probe;
use super::*;

/// The control of all tests that look for what is left: a single word is found, in any of the buffers.
#[test]
fn a_word_that_is_left_is_found() {
    let found = crate::need::available("cuda", probe::devices());
    let Some(found) = found else { return };
    let device = Device::open(&found[0]).unwrap();
    let call = device.call();
    let mut in_use = call.slots(1);
    let slot = &mut in_use.slots()[0];
    let mut layout = Layout::default();
    layout.input(9);
    layout.output(9);
    layout.scratch(9);
    layout.intermediate(9);
    slot.grow(layout.sizes()).unwrap();
    assert!(slot.is_wiped());
    for buffer in 0..6 {
        for (last, is_wiped) in [(1, false), (0, true)] {
            let buffers = slot.buffers.as_mut().unwrap();
            let device = [
                &buffers.device_in,
                &buffers.device_out,
                &buffers.scratch,
                &buffers.intermediate,
            ];
            match buffer {
                4 => buffers.host_in.as_mut_slice()[8] = last,
                5 => buffers.host_out.as_mut_slice()[8] = last,
                _ => device[buffer].write(&[0, 0, 0, 0, 0, 0, 0, 0, last]),
            }
            assert_eq!(slot.is_wiped(), is_wiped, "buffer {buffer}");
        }
    }
}
