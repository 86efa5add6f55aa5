//! Reads and writes buffers for the tests of their users.

use super::*;

impl PinnedWords {
    pub(in crate::backend::cuda::runtime) fn as_slice(&self) -> &[u64] {
        // SAFETY: the words are owned, initialised, and no copy is under way.
        unsafe { slice::from_raw_parts(self.words, self.len) }
    }
}

impl DeviceWords {
    /// A copy of all words.
    pub(in crate::backend::cuda::runtime) fn read(&self) -> alloc::vec::Vec<u64> {
        let mut words = alloc::vec![0; self.len];
        self.context.bind_to_thread().unwrap();
        // SAFETY: the memory is owned and `len` words long.
        unsafe { result::memcpy_dtoh_sync(&mut words, self.pointer).unwrap() };
        words
    }

    /// Replaces all words.
    pub(in crate::backend::cuda::runtime) fn write(&self, words: &[u64]) {
        assert_eq!(words.len(), self.len);
        self.context.bind_to_thread().unwrap();
        // SAFETY: the memory is owned and `len` words long.
        unsafe { result::memcpy_htod_sync(self.pointer, words).unwrap() };
    }
}

impl Buffers {
    /// The number of buffers.
    pub(in crate::backend::cuda::runtime) const COUNT: usize = 6;

    /// Whether all buffers hold only zeros.
    pub(in crate::backend::cuda::runtime) fn are_wiped(&self) -> bool {
        let zeros = |words: &[u64]| words.iter().all(|&word| word == 0);
        zeros(self.host_in.as_slice())
            && zeros(self.host_out.as_slice())
            && self.device.iter().all(|words| zeros(&words.read()))
    }

    /// Sets the last word of one buffer to `word`, and its other words to 0.
    pub(in crate::backend::cuda::runtime) fn write_last(&mut self, buffer: usize, word: u64) {
        match buffer {
            0 => write_last(self.host_in.as_mut_slice(), word),
            1 => write_last(self.host_out.as_mut_slice(), word),
            _ => {
                let device = &self.device[buffer - 2];
                let mut words = alloc::vec![0; device.len()];
                write_last(&mut words, word);
                device.write(&words);
            }
        }
    }
}

fn write_last(words: &mut [u64], word: u64) {
    words.fill(0);
    *words.last_mut().unwrap() = word;
}
