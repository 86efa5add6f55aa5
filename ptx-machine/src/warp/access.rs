//! Loads, stores and prefetches. Every address must be public, in shared memory too: a secret that
//! keeps an access in its bank would still choose the row, and whether lanes are served together.

use super::{Memory, Warp, active_lanes};
use crate::fault::{Fault, Location};
use crate::memory::Variables;
use crate::program::{Access, Reg, Space};
use crate::taint::{self, Lanes};

impl Warp<'_> {
    pub(super) fn load(
        &mut self,
        access: &Access,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        let addresses = self.addresses(access, lanes, memory)?;
        let mut offset = 0;
        for &to in &access.values {
            let mut value = [0; 32];
            let mut tainted = 0;
            for lane in active_lanes(lanes) {
                let address = addresses[lane].wrapping_add(offset);
                let read = match access.bytes {
                    1 => read::<1>(memory, access.space, address),
                    2 => read::<2>(memory, access.space, address),
                    4 => read::<4>(memory, access.space, address),
                    _ => read::<8>(memory, access.space, address),
                };
                let (bits, taint) = self.in_lane(lane, read)?;
                value[lane] = bits;
                tainted |= taint;
            }
            self.set(to, value, tainted, lanes);
            offset += access.bytes as u64;
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        access: &Access,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        let addresses = self.addresses(access, lanes, memory)?;
        let mut offset = 0;
        for &from in &access.values {
            let (value, taint) = (self.regs[from], self.taint[from]);
            for lane in active_lanes(lanes) {
                let (bits, address) = (value[lane], addresses[lane].wrapping_add(offset));
                let written = match access.bytes {
                    1 => write::<1>(memory, access.space, address, bits, taint),
                    2 => write::<2>(memory, access.space, address, bits, taint),
                    4 => write::<4>(memory, access.space, address, bits, taint),
                    _ => write::<8>(memory, access.space, address, bits, taint),
                };
                self.in_lane(lane, written)?;
            }
            offset += access.bytes as u64;
        }
        Ok(())
    }

    /// Prefetches. Others can measure that a cache line comes nearer, so the address must be
    /// public. An address outside all buffers would have no effect, but is a mistake, and refused.
    pub(super) fn prefetch(
        &mut self,
        base: Reg,
        offset: i64,
        lanes: u32,
        memory: &Memory<'_>,
    ) -> Result<(), Fault> {
        let addresses = self.public_addresses(base, offset, lanes)?;
        for lane in active_lanes(lanes) {
            self.in_lane(lane, memory.global.check_bounds(addresses[lane]))?;
        }
        Ok(())
    }

    /// The addresses of an access, which must be public and multiples of its size.
    fn addresses(
        &mut self,
        access: &Access,
        lanes: u32,
        memory: &Memory<'_>,
    ) -> Result<Lanes, Fault> {
        let addresses = self.public_addresses(access.base, access.offset, lanes)?;
        let size = (access.bytes * access.values.len()) as u64;
        let misaligned = active_lanes(lanes).find(|&lane| !addresses[lane].is_multiple_of(size));
        match misaligned {
            None => Ok(addresses),
            Some(lane) => {
                let place = location(memory, access.space, addresses[lane]);
                self.in_lane(lane, Err(Fault::Misaligned(place)))
            }
        }
    }

    /// Values that must be public.
    pub(super) fn public_addresses(
        &self,
        base: Reg,
        offset: i64,
        lanes: u32,
    ) -> Result<Lanes, Fault> {
        let base_taint = self.taint[base];
        if base_taint != 0 {
            // The offset is a constant of the instruction. Its sum with the base can carry.
            let bits = active_lanes(lanes)
                .map(|lane| taint::add(self.regs[base][lane], base_taint, offset as u64, 0))
                .fold(0, |all, bits| all | bits);
            return Err(Fault::SecretAddress { bits });
        }
        Ok(self.map(base, |base| base.wrapping_add_signed(offset)))
    }
}

fn location(memory: &Memory<'_>, space: Space, address: u64) -> Location {
    match space {
        Space::Shared => Location::Shared(address),
        Space::Global => memory.global.location(address),
    }
}

pub(super) fn read<const SIZE: usize>(
    memory: &mut Memory<'_>,
    space: Space,
    address: u64,
) -> Result<(u64, u64), Fault> {
    match space {
        Space::Shared => {
            let value = memory.shared.read::<SIZE>(address);
            let value = value.map_err(|denied| denied.at(Location::Shared(address)))?;
            memory.touched.read(memory.warp, address, SIZE)?;
            Ok(value)
        }
        Space::Global if Variables::contain(address) => memory.variables.read::<SIZE>(address),
        Space::Global => memory.global.read::<SIZE>(address),
    }
}

fn write<const SIZE: usize>(
    memory: &mut Memory<'_>,
    space: Space,
    address: u64,
    value: u64,
    taint: u64,
) -> Result<(), Fault> {
    match space {
        Space::Shared => {
            let written = memory.shared.write::<SIZE>(address, value, taint);
            written.map_err(|denied| denied.at(Location::Shared(address)))?;
            memory.touched.write(memory.warp, address, SIZE)
        }
        Space::Global if Variables::contain(address) => {
            memory.touched.copies.store(memory.warp, address);
            memory.variables.write::<SIZE>(address, value, taint)
        }
        Space::Global => {
            memory.touched.copies.store(memory.warp, address);
            memory.global.write::<SIZE>(address, value, taint)
        }
    }
}
