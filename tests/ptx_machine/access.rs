//! Instructions that move data between lanes and memory, and the rules for their addresses.
//!
//! Every address is public, with one exception: a load from shared memory may have an address in which
//! bits 7 and above depend on a secret. It then reaches the same bank in the same row of 128 bytes
//! whatever the secret is, and no two lanes that are served together share a bank, so that neither a
//! conflict nor a broadcast can tell the lanes' secrets from each other. A warp's accesses of 4 bytes are
//! served together, of 8 bytes in halves, of 16 bytes in quarters (CUDA C++ Programming Guide, "Compute
//! capability 5.x and later: shared memory").

use super::decode::{Access, Reg, Shuffle, Space};
use super::fault::Fault;
use super::taint::{self, Lanes};
use super::warp::{Memory, Warp, active_lanes};

/// Bits of an address that select the bank and the byte in it: 32 banks of 4 bytes.
const BANK_BITS: u64 = 127;

impl Warp<'_> {
    pub(super) fn load(
        &mut self,
        access: &Access,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        let addresses = self.addresses(access);
        let secret = self.check_address(access, &addresses, lanes, memory, true)?;
        let mut offset = 0;
        for &to in &access.values {
            let mut value = [0; 32];
            let mut tainted = taint::any(secret);
            for lane in active_lanes(lanes) {
                let address = addresses[lane].wrapping_add(offset);
                let (bits, taint) = match access.bytes {
                    1 => read::<1>(memory, access.space, address)?,
                    2 => read::<2>(memory, access.space, address)?,
                    4 => read::<4>(memory, access.space, address)?,
                    _ => read::<8>(memory, access.space, address)?,
                };
                value[lane] = bits;
                tainted |= taint;
            }
            let width = u64::MAX >> (64 - 8 * access.bytes);
            self.set(to, value, tainted & width, lanes);
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
        let addresses = self.addresses(access);
        self.check_address(access, &addresses, lanes, memory, false)?;
        let mut offset = 0;
        for &from in &access.values {
            let (value, taint) = (&self.regs[from], self.taint[from]);
            for lane in active_lanes(lanes) {
                let (address, bits) = (addresses[lane].wrapping_add(offset), value[lane]);
                match access.bytes {
                    1 => write::<1>(memory, access.space, address, bits, taint)?,
                    2 => write::<2>(memory, access.space, address, bits, taint)?,
                    4 => write::<4>(memory, access.space, address, bits, taint)?,
                    _ => write::<8>(memory, access.space, address, bits, taint)?,
                }
            }
            offset += access.bytes as u64;
        }
        Ok(())
    }

    fn addresses(&self, access: &Access) -> Lanes {
        self.map(access.base, |base| base.wrapping_add_signed(access.offset))
    }

    /// The address bits that depend on a secret, if this access may have such bits.
    fn check_address(
        &self,
        access: &Access,
        addresses: &Lanes,
        lanes: u32,
        memory: &Memory<'_>,
        is_load: bool,
    ) -> Result<u64, Fault> {
        let size = (access.bytes * access.values.len()) as u64;
        if let Some(lane) = active_lanes(lanes).find(|&lane| !addresses[lane].is_multiple_of(size))
        {
            let address = addresses[lane];
            return Err(Fault::Misaligned { address });
        }
        let base_taint = self.taint[access.base];
        if base_taint == 0 {
            return Ok(0);
        }
        // The offset is a constant of the instruction; its sum with the base can carry.
        let offset = access.offset as u64;
        let secret = active_lanes(lanes)
            .map(|lane| taint::add(self.regs[access.base][lane], base_taint, offset, 0))
            .fold(0, |all, bits| all | bits);
        let forbidden = if access.space == Space::Shared && is_load {
            secret & BANK_BITS
        } else {
            secret
        };
        if forbidden != 0 {
            return Err(Fault::SecretAddress { bits: forbidden });
        }
        // Whatever the secret, the access stays in shared memory.
        let end = memory.shared.len() as u64;
        for lane in active_lanes(lanes) {
            let address = addresses[lane] | secret;
            if address.checked_add(size).is_none_or(|last| last > end) {
                return Err(Fault::OutOfBounds { address });
            }
        }
        one_lane_per_bank(addresses, lanes, size)?;
        Ok(secret)
    }

    pub(super) fn shuffle(
        &mut self,
        mode: Shuffle,
        to: Reg,
        valid: Option<Reg>,
        [from, lane, clamp]: [Reg; 3],
        lanes: u32,
    ) -> Result<(), Fault> {
        if self.taint[lane] | self.taint[clamp] != 0 {
            return Err(Fault::SecretLane);
        }
        let mut value = [0; 32];
        let mut in_range = [0; 32];
        for own in active_lanes(lanes) {
            let (b, c) = (self.regs[lane][own] & 31, self.regs[clamp][own]);
            let (source, inside) = source_lane(mode, own as u64, b, c & 31, c >> 8 & 31);
            if lanes >> source & 1 == 0 {
                return Err(Fault::NotConverged);
            }
            value[own] = self.regs[from][source as usize];
            in_range[own] = u64::from(inside);
        }
        let tainted = self.taint[from];
        self.set(to, value, tainted, lanes);
        if let Some(valid) = valid {
            self.set(valid, in_range, 0, lanes);
        }
        Ok(())
    }
}

/// The lane that a shuffle reads, and whether it is in the segment (PTX ISA, `shfl.sync`).
fn source_lane(mode: Shuffle, own: u64, b: u64, clamp: u64, segment: u64) -> (u64, bool) {
    let first = own & segment;
    let last = first | (clamp & !segment);
    let (source, inside) = match mode {
        Shuffle::Up => (own.wrapping_sub(b), own as i64 - b as i64 >= last as i64),
        Shuffle::Down => (own + b, own + b <= last),
        Shuffle::Butterfly => (own ^ b, own ^ b <= last),
        Shuffle::Index => {
            let source = first | (b & !segment);
            (source, source <= last)
        }
    };
    if inside { (source, true) } else { (own, false) }
}

/// No two lanes that are served together use the same bank.
fn one_lane_per_bank(addresses: &Lanes, lanes: u32, size: u64) -> Result<(), Fault> {
    let served_together = (128 / size.max(4)) as usize;
    for first in (0..32).step_by(served_together) {
        let mut used = 0u32;
        for lane in (first..first + served_together).filter(|lane| lanes >> lane & 1 == 1) {
            for word in 0..size.div_ceil(4) {
                let bank = 1 << ((addresses[lane] / 4 + word) % 32);
                if used & bank != 0 {
                    return Err(Fault::SecretBankConflict);
                }
                used |= bank;
            }
        }
    }
    Ok(())
}

fn read<const SIZE: usize>(
    memory: &mut Memory<'_>,
    space: Space,
    address: u64,
) -> Result<(u64, u64), Fault> {
    match space {
        Space::Shared => {
            let value = memory.shared.read::<SIZE>(address)?;
            memory.touched.read(memory.warp, address, SIZE)?;
            Ok(value)
        }
        Space::Global => {
            let (buffer, offset) = memory.global.locate(address)?;
            buffer.read::<SIZE>(offset)
        }
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
            memory.shared.write::<SIZE>(address, value, taint)?;
            memory.touched.write(memory.warp, address, SIZE)
        }
        Space::Global => {
            let (buffer, offset) = memory.global.locate(address)?;
            buffer.write::<SIZE>(offset, value, taint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_in_segments_of_four() {
        // c of __shfl_sync(.., 4): segment mask 28, clamp 3.
        let source = |mode, own, b| source_lane(mode, own, b, 3, 28);
        assert_eq!(source(Shuffle::Index, 6, 1), (5, true));
        assert_eq!(source(Shuffle::Index, 6, 5), (5, true));
        assert_eq!(source(Shuffle::Down, 6, 1), (7, true));
        assert_eq!(source(Shuffle::Down, 7, 1), (7, false));
        assert_eq!(source(Shuffle::Butterfly, 6, 1), (7, true));
        assert_eq!(source_lane(Shuffle::Up, 5, 1, 0, 28), (4, true));
        assert_eq!(source_lane(Shuffle::Up, 4, 1, 0, 28), (4, false));
    }

    #[test]
    fn banks() {
        let lanes = |f: fn(u64) -> u64| core::array::from_fn(|lane| f(lane as u64));
        let rows = |lane: u64| (lane * 7 % 5) * 128;
        assert_eq!(rows(3), 128);
        let own_bank = lanes(|lane| (lane * 7 % 5) * 128 + lane * 4);
        assert_eq!(one_lane_per_bank(&own_bank, u32::MAX, 4), Ok(()));
        let half = lanes(|lane| (lane * 7 % 5) * 128 + lane % 16 * 8);
        assert_eq!(one_lane_per_bank(&half, u32::MAX, 8), Ok(()));
        assert_eq!(
            one_lane_per_bank(&half, u32::MAX, 4),
            Err(Fault::SecretBankConflict)
        );
        let shared_bank = lanes(|lane| lane * 128);
        assert_eq!(
            one_lane_per_bank(&shared_bank, u32::MAX, 4),
            Err(Fault::SecretBankConflict)
        );
    }
}
