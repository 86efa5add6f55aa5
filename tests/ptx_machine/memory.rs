//! Memory with a taint bit for each bit and a note of which bytes were written.

use super::fault::Fault;

/// Buffers that a kernel can reach by global addresses. Each lies in its own 4 GiB of the address space,
/// so that no arithmetic on one address reaches another buffer.
#[derive(Default)]
pub(crate) struct Global {
    buffers: Vec<Buffer>,
}

/// Where a buffer lies: what the host passes to a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer(pub(crate) u64);

impl Global {
    /// A buffer that holds `bytes`, public or secret, for reading and writing.
    pub(crate) fn with_bytes(&mut self, bytes: Vec<u8>, secret: bool) -> Pointer {
        let mut buffer = Buffer::new(bytes.len());
        buffer.written.fill(true);
        buffer.taint.fill(if secret { 0xff } else { 0 });
        buffer.bytes = bytes;
        self.push(buffer)
    }

    /// A buffer of `len` bytes in which a read before a write is a fault.
    pub(crate) fn uninitialised(&mut self, len: usize) -> Pointer {
        self.push(Buffer::new(len))
    }

    fn push(&mut self, buffer: Buffer) -> Pointer {
        self.buffers.push(buffer);
        Pointer((self.buffers.len() as u64) << 32)
    }

    /// Forbids the kernel to write to the buffer.
    pub(crate) fn set_read_only(&mut self, pointer: Pointer) {
        self.buffer_mut(pointer).read_only = true;
    }

    /// The buffer at `pointer`, which is the start of one.
    pub(crate) fn buffer(&self, pointer: Pointer) -> &Buffer {
        &self.buffers[(pointer.0 >> 32) as usize - 1]
    }

    pub(crate) fn buffer_mut(&mut self, pointer: Pointer) -> &mut Buffer {
        &mut self.buffers[(pointer.0 >> 32) as usize - 1]
    }

    /// The buffer in which `address` lies, and the offset there.
    pub(crate) fn locate(&mut self, address: u64) -> Result<(&mut Buffer, u64), Fault> {
        let index = (address >> 32).wrapping_sub(1);
        match self.buffers.get_mut(index as usize) {
            Some(buffer) => Ok((buffer, address & u64::from(u32::MAX))),
            None => Err(Fault::OutOfBounds { address }),
        }
    }
}

/// Bytes, the taint of each of their bits, and whether they were ever written.
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    taint: Vec<u8>,
    written: Vec<bool>,
    read_only: bool,
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

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Makes bytes public that follow from secrets: what a kernel gives away by its purpose, or what a
    /// caller knows.
    pub(crate) fn make_public(&mut self, bytes: core::ops::Range<usize>) {
        self.taint[bytes].fill(0);
    }

    /// Whether every byte was written.
    pub(crate) fn all_written(&self) -> bool {
        self.written.iter().all(|&written| written)
    }

    /// Whether a byte holds something that depends on a secret.
    pub(crate) fn holds_secrets(&self) -> bool {
        self.taint.iter().any(|&taint| taint != 0)
    }

    /// Reads `SIZE` bytes as a little-endian number: value and taint.
    #[inline]
    pub(crate) fn read<const SIZE: usize>(&self, offset: u64) -> Result<(u64, u64), Fault> {
        let range = self.range::<SIZE>(offset)?;
        if !self.written[range.clone()].iter().all(|&written| written) {
            return Err(Fault::Uninitialised { address: offset });
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
    ) -> Result<(), Fault> {
        let range = self.range::<SIZE>(offset)?;
        if self.read_only {
            return Err(Fault::ReadOnly { address: offset });
        }
        self.bytes[range.clone()].copy_from_slice(&value.to_le_bytes()[..SIZE]);
        self.taint[range.clone()].copy_from_slice(&taint.to_le_bytes()[..SIZE]);
        self.written[range].fill(true);
        Ok(())
    }

    fn range<const SIZE: usize>(&self, offset: u64) -> Result<core::ops::Range<usize>, Fault> {
        let end = offset.wrapping_add(SIZE as u64);
        if end > self.len() as u64 || end < offset {
            return Err(Fault::OutOfBounds { address: offset });
        }
        if !offset.is_multiple_of(SIZE as u64) {
            return Err(Fault::Misaligned { address: offset });
        }
        Ok(offset as usize..end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_alignment_and_uninitialised_reads() {
        let mut buffer = Buffer::new(16);
        assert_eq!(buffer.write::<8>(8, 0x0102_0304_0506_0708, 0xff00), Ok(()));
        assert_eq!(buffer.read::<4>(8), Ok((0x0506_0708, 0xff00)));
        assert_eq!(
            buffer.read::<8>(0),
            Err(Fault::Uninitialised { address: 0 })
        );
        assert_eq!(
            buffer.read::<8>(12),
            Err(Fault::OutOfBounds { address: 12 })
        );
        assert_eq!(buffer.read::<4>(10), Err(Fault::Misaligned { address: 10 }));
        assert_eq!(
            buffer.read::<8>(u64::MAX - 7),
            Err(Fault::OutOfBounds {
                address: u64::MAX - 7
            })
        );
    }

    #[test]
    fn an_address_between_buffers_is_out_of_bounds() {
        let mut global = Global::default();
        let first = global.with_bytes(vec![0; 8], true);
        let _second = global.with_bytes(vec![0; 8], false);
        let (buffer, offset) = global.locate(first.0 + 8).unwrap();
        assert_eq!(
            buffer.read::<8>(offset),
            Err(Fault::OutOfBounds { address: 8 })
        );
        assert!(global.locate(0).is_err());
        assert!(global.locate(3 << 32).is_err());
    }

    #[test]
    fn read_only_buffers() {
        let mut global = Global::default();
        let pointer = global.with_bytes(vec![0; 8], false);
        global.set_read_only(pointer);
        let (buffer, offset) = global.locate(pointer.0).unwrap();
        assert_eq!(
            buffer.write::<8>(offset, 1, 0),
            Err(Fault::ReadOnly { address: 0 })
        );
    }
}
