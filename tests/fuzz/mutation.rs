//! Random changes to the files of a corpus, the same in every run.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};

/// The longest input in octets.
const MAX_LEN: usize = 8192;

pub struct Mutator<'a> {
    rng: ChaCha20Rng,
    corpus: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    pub fn new(corpus: &'a [Vec<u8>]) -> Self {
        Self {
            rng: ChaCha20Rng::seed_from_u64(0x6675_7a7a),
            corpus,
        }
    }

    /// The next input.
    pub fn next(&mut self) -> Vec<u8> {
        let mut input = self.file().clone();
        for _ in 0..1 + self.below(4) {
            self.change(&mut input);
        }
        input.truncate(MAX_LEN);
        input
    }

    fn file(&mut self) -> &'a Vec<u8> {
        &self.corpus[self.below(self.corpus.len())]
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound as u64) as usize
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let place = self.below(input.len() + 1);
        let end = (place + self.below(16)).min(input.len());
        match self.below(7) {
            0 if place < input.len() => input[place] ^= 1 << self.below(8),
            1 if place < input.len() => input[place] = self.rng.next_u64() as u8,
            2 if place < input.len() => input[place] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => drop(input.drain(place..end)),
            4 => {
                let octets: Vec<_> = (0..self.below(8))
                    .map(|_| self.rng.next_u64() as u8)
                    .collect();
                input.splice(place..place, octets);
            }
            5 => {
                let repeated = input[place..end].to_vec();
                input.splice(place..place, repeated);
            }
            // The end of another file.
            _ => {
                let other = self.file();
                let from = self.below(other.len() + 1);
                input.truncate(place);
                input.extend(&other[from..]);
            }
        }
    }
}
