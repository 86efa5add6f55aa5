//! Bulk copies to shared memory, and their barriers. The rules are those of [`Copies`].
//!
//! [`Copies`]: crate::copies::Copies

use super::{ALL, Memory, Warp, access, active_lanes};
use crate::copies::COPIED;
use crate::fault::{Fault, Location};
use crate::program::{BulkCopy, Place, Reg, Space};
use crate::taint::Lanes;

/// The size of a barrier.
const BARRIER: usize = 8;

impl Warp<'_> {
    pub(super) fn init_barrier(
        &mut self,
        place: Place,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        let barriers = self.barriers(place, lanes, memory)?;
        for lane in active_lanes(lanes) {
            let made = memory.touched.init_barrier(memory.warp, barriers[lane]);
            self.in_lane(lane, made)?;
        }
        Ok(())
    }

    pub(super) fn expect_copies(
        &mut self,
        place: Place,
        bytes: Reg,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        let barriers = self.barriers(place, lanes, memory)?;
        let bytes = self.public_addresses(bytes, 0, lanes)?;
        for lane in active_lanes(lanes) {
            let arrived = memory
                .touched
                .arrive(memory.warp, barriers[lane], bytes[lane]);
            self.in_lane(lane, arrived)?;
        }
        Ok(())
    }

    /// Whether the phases with these parities are complete, for all lanes. The instruction may also
    /// return before that on a device, and the kernel tries again. Here it does not.
    pub(super) fn wait_for_copies(
        &mut self,
        complete: Reg,
        place: Place,
        parity: Reg,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<bool, Fault> {
        // A wait makes the copy visible to its own lane only.
        if lanes != ALL {
            return Err(Fault::NotConverged);
        }
        let barriers = self.barriers(place, lanes, memory)?;
        let parity = self.public_addresses(parity, 0, lanes)?;
        for lane in active_lanes(lanes) {
            let waited = memory
                .touched
                .wait(memory.warp, barriers[lane], parity[lane]);
            if !self.in_lane(lane, waited)? {
                return Ok(false);
            }
        }
        self.set(complete, [1; 32], 0, lanes);
        Ok(true)
    }

    pub(super) fn bulk_copy(
        &mut self,
        copy: &BulkCopy,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        // A product under way may still read the destination.
        self.products.none_left()?;
        let to = self.public_addresses(copy.to.base, copy.to.offset, lanes)?;
        let from = self.public_addresses(copy.from.base, copy.from.offset, lanes)?;
        let bytes = self.public_addresses(copy.bytes, 0, lanes)?;
        let barriers = self.barriers(copy.barrier, lanes, memory)?;
        for lane in active_lanes(lanes) {
            let copied = copy_bytes(memory, to[lane], from[lane], bytes[lane], barriers[lane]);
            self.in_lane(lane, copied)?;
        }
        Ok(())
    }

    /// The addresses of barriers.
    fn barriers(&mut self, place: Place, lanes: u32, memory: &Memory<'_>) -> Result<Lanes, Fault> {
        let barriers = self.public_addresses(place.base, place.offset, lanes)?;
        for lane in active_lanes(lanes) {
            let checked = memory.shared.check::<BARRIER>(barriers[lane]);
            let checked = checked.map_err(|denied| denied.at(Location::Shared(barriers[lane])));
            self.in_lane(lane, checked)?;
        }
        Ok(barriers)
    }
}

fn copy_bytes(
    memory: &mut Memory<'_>,
    to: u64,
    from: u64,
    bytes: u64,
    barrier: u64,
) -> Result<(), Fault> {
    if bytes == 0 || !(to | bytes).is_multiple_of(COPIED) {
        return Err(Fault::Misaligned(Location::Shared(to)));
    }
    if !from.is_multiple_of(COPIED) {
        return Err(Fault::Misaligned(memory.global.location(from)));
    }
    for offset in (0..bytes).step_by(8) {
        let (value, taint) = access::read::<8>(memory, Space::Global, from + offset)?;
        let written = memory.shared.write::<8>(to + offset, value, taint);
        written.map_err(|denied| denied.at(Location::Shared(to + offset)))?;
    }
    if !memory.touched.copies.see(from, bytes) {
        return Err(Fault::Unseen(memory.global.location(from)));
    }
    memory.touched.copy(memory.warp, to, bytes, barrier)
}
