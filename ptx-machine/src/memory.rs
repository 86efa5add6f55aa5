//! Memory with a taint bit for each bit, and a record of which bytes were written.

use core::ops::Range;

use crate::fault::{Fault, Location};

/// Buffers that a kernel can reach by global addresses.
///
/// Each occupies its own 4 GiB of the address space, so arithmetic on one address cannot reach
/// another buffer.
#[derive(Default)]
pub struct Global {
    buffers: Vec<Buffer>,
}

/// The start of the variables of modules, each in its own 4 GiB, behind all buffers.
const VARIABLES: u64 = 1 << 63;

/// The start of a buffer of a [`Global`], which the host passes to a kernel. It has every
/// alignment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pointer(u64);

/// Bytes, the taint of each of their bits, and which of them were written.
#[derive(Clone)]
pub struct Buffer {
    bytes: Vec<u8>,
    taint: Vec<u8>,
    written: Vec<bool>,
    read_only: bool,
}

impl Global {
    /// Adds a buffer for reading and writing that holds `bytes`, all public or all secret.
    ///
    /// # Panics
    ///
    /// If it has 4 GiB or more.
    #[must_use]
    pub fn with_bytes(&mut self, bytes: Vec<u8>, secret: bool) -> Pointer {
        let mut buffer = Buffer::new(bytes.len());
        buffer.written.fill(true);
        buffer.taint.fill(if secret { 0xff } else { 0 });
        buffer.bytes = bytes;
        self.push(buffer)
    }

    /// Adds a buffer of `len` bytes in which a read before a write is a fault.
    ///
    /// # Panics
    ///
    /// If it has 4 GiB or more.
    #[must_use]
    pub fn uninitialised(&mut self, len: usize) -> Pointer {
        self.push(Buffer::new(len))
    }

    /// Makes a buffer read-only for the kernel.
    ///
    /// # Panics
    ///
    /// If there is no such buffer.
    pub fn set_read_only(&mut self, pointer: Pointer) {
        self.buffer_mut(pointer).read_only = true;
    }

    /// Makes bytes of a buffer public although they depend on secrets: intended outputs of a
    /// kernel, or known values.
    ///
    /// # Panics
    ///
    /// If there is no such buffer, or if it is shorter than the range.
    pub fn make_public(&mut self, pointer: Pointer, bytes: Range<usize>) {
        self.buffer_mut(pointer).taint[bytes].fill(0);
    }

    /// The buffer at `pointer`.
    ///
    /// # Panics
    ///
    /// If there is no such buffer.
    #[must_use]
    pub fn buffer(&self, pointer: Pointer) -> &Buffer {
        &self.buffers[pointer.index()]
    }

    fn buffer_mut(&mut self, pointer: Pointer) -> &mut Buffer {
        &mut self.buffers[pointer.index()]
    }

    fn push(&mut self, buffer: Buffer) -> Pointer {
        assert!(u32::try_from(buffer.len()).is_ok(), "a buffer of 4 GiB");
        self.buffers.push(buffer);
        Pointer((self.buffers.len() as u64) << 32)
    }

    /// Reads from a global address: value and taint.
    #[inline]
    pub(crate) fn read<const SIZE: usize>(&self, address: u64) -> Result<(u64, u64), Fault> {
        let (pointer, offset) = split(address);
        match self.buffers.get(pointer.index()) {
            Some(buffer) => buffer
                .read::<SIZE>(offset)
                .map_err(|denied| denied.at(Location::Buffer(pointer, offset))),
            None => Err(Fault::OutOfBounds(Location::Nowhere(address))),
        }
    }

    /// Writes to a global address.
    #[inline]
    pub(crate) fn write<const SIZE: usize>(
        &mut self,
        address: u64,
        value: u64,
        taint: u64,
    ) -> Result<(), Fault> {
        let (pointer, offset) = split(address);
        match self.buffers.get_mut(pointer.index()) {
            Some(buffer) => buffer
                .write::<SIZE>(offset, value, taint)
                .map_err(|denied| denied.at(Location::Buffer(pointer, offset))),
            None => Err(Fault::OutOfBounds(Location::Nowhere(address))),
        }
    }

    /// Checks that an address is in a buffer.
    pub(crate) fn check_bounds(&self, address: u64) -> Result<(), Fault> {
        let (pointer, offset) = split(address);
        match self.buffers.get(pointer.index()) {
            Some(buffer) if offset < buffer.len() as u64 => Ok(()),
            _ => Err(Fault::OutOfBounds(self.location(address))),
        }
    }

    /// The location of an address.
    pub(crate) fn location(&self, address: u64) -> Location {
        let (pointer, offset) = split(address);
        if address >= VARIABLES {
            return Location::Variable(offset);
        }
        match self.buffers.get(pointer.index()) {
            Some(_) => Location::Buffer(pointer, offset),
            None => Location::Nowhere(address),
        }
    }
}

impl Pointer {
    /// The buffer's number, from 0, in the order in which the buffers of its [`Global`] were made.
    #[must_use]
    pub fn index(self) -> usize {
        ((self.0 >> 32) as usize).wrapping_sub(1)
    }

    /// The address, as the kernel sees it.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0
    }
}

impl Buffer {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            bytes: vec![0; len],
            taint: vec![0; len],
            written: vec![false; len],
            read_only: false,
        }
    }

    /// The contents; zero where nothing has been written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// For each byte the mask of bits that may depend on a secret.
    #[must_use]
    pub fn taint(&self) -> &[u8] {
        &self.taint
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether every byte has been written.
    #[must_use]
    pub fn all_written(&self) -> bool {
        self.written.iter().all(|&written| written)
    }

    /// Whether a byte depends on a secret.
    #[must_use]
    pub fn holds_secrets(&self) -> bool {
        self.taint.iter().any(|&taint| taint != 0)
    }

    /// Reads `SIZE` bytes as a little-endian number. Returns value and taint.
    #[inline]
    pub(crate) fn read<const SIZE: usize>(&self, offset: u64) -> Result<(u64, u64), Denied> {
        let range = self.range::<SIZE>(offset)?;
        if self.written[range.clone()] != [true; SIZE] {
            return Err(Denied::Uninitialised);
        }
        let number = |bytes: &[u8]| {
            let mut number = [0; 8];
            number[..SIZE].copy_from_slice(bytes);
            u64::from_le_bytes(number)
        };
        Ok((
            number(&self.bytes[range.clone()]),
            number(&self.taint[range]),
        ))
    }

    /// Writes the low `SIZE` bytes of `value` and its taint.
    #[inline]
    pub(crate) fn write<const SIZE: usize>(
        &mut self,
        offset: u64,
        value: u64,
        taint: u64,
    ) -> Result<(), Denied> {
        let range = self.range::<SIZE>(offset)?;
        if self.read_only {
            return Err(Denied::ReadOnly);
        }
        self.bytes[range.clone()].copy_from_slice(&value.to_le_bytes()[..SIZE]);
        self.taint[range.clone()].copy_from_slice(&taint.to_le_bytes()[..SIZE]);
        self.written[range].fill(true);
        Ok(())
    }

    /// Checks that `SIZE` bytes are within the buffer, and aligned.
    pub(crate) fn check<const SIZE: usize>(&self, offset: u64) -> Result<(), Denied> {
        self.range::<SIZE>(offset).map(|_| ())
    }

    fn range<const SIZE: usize>(&self, offset: u64) -> Result<Range<usize>, Denied> {
        let end = offset.wrapping_add(SIZE as u64);
        if end > self.len() as u64 || end < offset {
            return Err(Denied::OutOfBounds);
        }
        if !offset.is_multiple_of(SIZE as u64) {
            return Err(Denied::Misaligned);
        }
        Ok(offset as usize..end as usize)
    }
}

/// Global variables of a module. Kernels write those without initial values.
#[derive(Clone, Default)]
pub(crate) struct Variables(Vec<Buffer>);

impl Variables {
    /// Adds a variable and returns its address.
    pub(crate) fn push(&mut self, bytes: &[u8], read_only: bool) -> u64 {
        let mut buffer = Buffer::new(bytes.len());
        buffer.bytes.copy_from_slice(bytes);
        buffer.written.fill(true);
        buffer.read_only = read_only;
        self.0.push(buffer);
        VARIABLES + ((self.0.len() as u64 - 1) << 32)
    }

    /// Whether an address is among the variables.
    pub(crate) fn contain(address: u64) -> bool {
        address >= VARIABLES
    }

    /// Reads a variable.
    pub(crate) fn read<const SIZE: usize>(&self, address: u64) -> Result<(u64, u64), Fault> {
        let (number, offset) = Self::place(address);
        let buffer = self.0.get(number).ok_or(Denied::OutOfBounds);
        let value = buffer.and_then(|buffer| buffer.read::<SIZE>(offset));
        value.map_err(|denied| denied.at(Location::Variable(offset)))
    }

    /// Writes to a variable.
    pub(crate) fn write<const SIZE: usize>(
        &mut self,
        address: u64,
        value: u64,
        taint: u64,
    ) -> Result<(), Fault> {
        let (number, offset) = Self::place(address);
        let buffer = self.0.get_mut(number).ok_or(Denied::OutOfBounds);
        let written = buffer.and_then(|buffer| buffer.write::<SIZE>(offset, value, taint));
        written.map_err(|denied| denied.at(Location::Variable(offset)))
    }

    /// Whether a variable depends on a secret.
    pub(crate) fn hold_secrets(&self) -> bool {
        self.0.iter().any(Buffer::holds_secrets)
    }

    /// The number of the variable at an address, and the offset in it.
    fn place(address: u64) -> (usize, u64) {
        let (start, offset) = split(address - VARIABLES);
        ((start.0 >> 32) as usize, offset)
    }
}

/// The reason why a buffer refuses an access.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Denied {
    OutOfBounds,
    Misaligned,
    Uninitialised,
    ReadOnly,
}

impl Denied {
    pub(crate) fn at(self, location: Location) -> Fault {
        match self {
            Self::OutOfBounds => Fault::OutOfBounds(location),
            Self::Misaligned => Fault::Misaligned(location),
            Self::Uninitialised => Fault::Uninitialised(location),
            Self::ReadOnly => Fault::ReadOnly(location),
        }
    }
}

/// The buffer of an address by its part of the address space, and the offset in it.
fn split(address: u64) -> (Pointer, u64) {
    let offset = address & u64::from(u32::MAX);
    (Pointer(address - offset), offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_alignment_and_uninitialised_reads() {
        let mut buffer = Buffer::new(16);
        assert_eq!(buffer.write::<8>(8, 0x0102_0304_0506_0708, 0xff00), Ok(()));
        assert_eq!(buffer.read::<4>(8), Ok((0x0506_0708, 0xff00)));
        assert_eq!(buffer.read::<8>(0), Err(Denied::Uninitialised));
        assert_eq!(buffer.read::<8>(12), Err(Denied::OutOfBounds));
        assert_eq!(buffer.read::<4>(10), Err(Denied::Misaligned));
        assert_eq!(buffer.read::<8>(u64::MAX - 7), Err(Denied::OutOfBounds));
    }

    #[test]
    fn an_address_between_buffers_is_out_of_bounds() {
        let mut global = Global::default();
        let first = global.with_bytes(vec![0; 8], true);
        let second = global.with_bytes(vec![0; 8], false);
        let beyond = Fault::OutOfBounds(Location::Buffer(first, 8));
        assert_eq!(global.read::<8>(first.address() + 8), Err(beyond));
        assert_eq!(global.read::<8>(second.address()), Ok((0, 0)));
        for address in [0, 3 << 32] {
            let nowhere = Fault::OutOfBounds(Location::Nowhere(address));
            assert_eq!(global.read::<8>(address), Err(nowhere));
        }
    }

    #[test]
    fn variables_with_initial_values_are_read_only() {
        let mut variables = Variables::default();
        let address = variables.push(&[1, 2, 3, 4], true);
        let second = variables.push(&[5, 6], false);
        let refused = Fault::ReadOnly(Location::Variable(0));
        assert_eq!(variables.write::<4>(address, 7, 0), Err(refused));
        assert_eq!(variables.write::<1>(second, 7, 0), Ok(()));
        assert!(!variables.hold_secrets());
        assert_eq!(variables.write::<1>(second, 8, 1), Ok(()));
        assert!(variables.hold_secrets());
        assert_eq!(variables.read::<1>(second), Ok((8, 1)));
        assert_eq!(variables.read::<4>(address), Ok((0x0403_0201, 0)));
        assert_eq!(variables.read::<1>(second + 1), Ok((6, 0)));
        let beyond = Fault::OutOfBounds(Location::Variable(2));
        assert_eq!(variables.read::<1>(second + 2), Err(beyond.clone()));
        let beyond = Fault::OutOfBounds(Location::Variable(0));
        assert_eq!(variables.read::<1>(second + (1 << 32)), Err(beyond.clone()));
        assert_eq!(variables.write::<1>(second + (1 << 32), 0, 0), Err(beyond));
        assert!(Variables::contain(address) && !Variables::contain(1 << 32));
    }

    #[test]
    fn read_only_buffers() {
        let mut global = Global::default();
        let pointer = global.with_bytes(vec![0; 8], false);
        global.set_read_only(pointer);
        let refused = Fault::ReadOnly(Location::Buffer(pointer, 0));
        assert_eq!(global.write::<8>(pointer.address(), 1, 0), Err(refused));
    }

    #[test]
    fn bytes_that_are_made_public() {
        let mut global = Global::default();
        let pointer = global.with_bytes(vec![0; 8], true);
        global.make_public(pointer, 4..8);
        assert_eq!(
            global.buffer(pointer).taint(),
            [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]
        );
    }
}
