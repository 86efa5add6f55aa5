//! Interpretation of an input's octets, for targets whose inputs are programs.

use num_bigint::BigUint;

/// Reads values from the start of an input. After its end, zeros follow.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.octet()) % bound
    }

    /// A number below 65,536.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    /// `len` octets, or the rest if it is shorter.
    pub fn octets(&mut self, len: usize) -> &'a [u8] {
        let (octets, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        octets
    }

    /// A number of `words` words of 64 bits; many are edge cases of some radix, so that carries run
    /// far.
    pub fn number(&mut self, words: usize) -> BigUint {
        let mut last = 0u64;
        let mut octets = Vec::with_capacity(8 * words);
        for _ in 0..words {
            let kind = self.octet();
            let position = u32::from(kind) >> 3 & 31;
            last = match kind & 7 {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (2 * position),
                3 => u64::MAX << (2 * position),
                4 => u64::MAX >> (2 * position + 1),
                5 => last,
                _ => {
                    let mut word = [0; 8];
                    let given = self.octets(8);
                    word[..given.len()].copy_from_slice(given);
                    u64::from_le_bytes(word)
                }
            };
            octets.extend(last.to_le_bytes());
        }
        BigUint::from_bytes_le(&octets)
    }
}
