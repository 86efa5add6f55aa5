//! Kernels without a device.

use super::*;
use crate::backend::cuda::family::all;

impl Kernel {
    /// A kernel of no device, to look at its launches.
    pub(crate) fn imaginary(entry: &'static Entry) -> Self {
        Self {
            entry,
            resident_blocks: 132,
            function: core::ptr::null_mut(),
            module: Weak::new(),
        }
    }
}

#[test]
fn blocks_share_the_work_evenly() {
    let entry = all().find(|entry| entry.instances_per_block == 64);
    let kernel = Kernel::imaginary(entry.unwrap());
    assert_eq!(kernel.blocks(1), 1);
    assert_eq!(kernel.blocks(64 * 132), 132);
    // Two rounds of 67 blocks, rather than one round of 132 and another of a single block.
    assert_eq!(kernel.blocks(64 * 133), 67);
    assert_eq!(kernel.blocks(0), 0);
}
