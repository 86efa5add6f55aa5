//! Kinds and places of faults.

use alloc::vec::Vec;

use chacha20::ChaCha20Rng;
use crypto_bigint::{Limb, Word};
use rand_core::Rng;

use super::super::testing::Stage;

/// The effect of a fault on numbers of equal length, of which it picks one or two at random.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) enum Kind {
    /// One bit is flipped.
    Bit,
    /// A word becomes a random one.
    Word,
    /// A word becomes zero.
    Zeros,
    /// All bits of a word are set.
    Ones,
    /// A number is zero, as if never written.
    Lost,
    /// A number is skipped: those behind it move up, and the last is zero.
    Dropped,
    /// Two numbers are exchanged.
    Swapped,
    /// A number is copied over another.
    Repeated,
}

use Kind::*;

impl Kind {
    pub(in crate::rsa) const ALL: [Self; 8] =
        [Bit, Word, Zeros, Ones, Lost, Dropped, Swapped, Repeated];

    /// Name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Bit => "bit",
            Word => "word",
            Zeros => "zeros",
            Ones => "ones",
            Lost => "lost",
            Dropped => "dropped",
            Swapped => "swapped",
            Repeated => "repeated",
        }
    }

    /// Damages `numbers`, and returns the indices of those that changed.
    pub(in crate::rsa) fn inject(
        self,
        numbers: &mut [&mut [Limb]],
        random: &mut ChaCha20Rng,
    ) -> Vec<usize> {
        let mut below = |count: usize| (random.next_u64() % count as u64) as usize;
        let before: Vec<Vec<Limb>> = numbers.iter().map(|number| number.to_vec()).collect();
        let at = below(numbers.len());
        let other = match numbers.len() {
            1 => at,
            len => (at + 1 + below(len - 1)) % len,
        };
        let limb = below(numbers[at].len());
        match self {
            Bit => numbers[at][limb].0 ^= 1 << below(Limb::BITS as usize),
            Word => numbers[at][limb] = Limb(random.next_u64() as Word),
            Zeros => numbers[at][limb] = Limb::ZERO,
            Ones => numbers[at][limb] = Limb::MAX,
            Lost => numbers[at].fill(Limb::ZERO),
            Dropped => {
                for (i, number) in numbers.iter_mut().enumerate().skip(at) {
                    match before.get(i + 1) {
                        Some(next) => number.copy_from_slice(next),
                        None => number.fill(Limb::ZERO),
                    }
                }
            }
            Swapped => {
                numbers[at].copy_from_slice(&before[other]);
                numbers[other].copy_from_slice(&before[at]);
            }
            Repeated => numbers[other].copy_from_slice(&before[at]),
        }
        let changed = |&i: &usize| *numbers[i] != *before[i];
        (0..before.len()).filter(changed).collect()
    }
}

/// The place of a fault, in the order of the computation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Place {
    /// One of p, q, dP, dQ and qInv of a key. p and q stay odd, as their type requires, and their
    /// Montgomery constants match.
    CrtValues,
    /// The private exponent of a key without primes.
    Exponent,
    /// The modulus n of a key. It stays odd, and its constants match.
    Modulus,
    /// The Montgomery constants of a key: `R^2` and the inverse, modulo n and, with primes, modulo
    /// p and q.
    Constants,
    /// The assignment of keys to items.
    Keys,
    /// The positions of items in the caller's batch.
    Positions,
    /// The encoded messages before the computation.
    Block,
    /// The encoded messages kept for the check.
    KeptBlock,
    /// Between two stages of the computation.
    Stage(Stage),
}

/// The form of a private key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Crt,
    Plain,
}

impl Place {
    /// All places that keys of this form have.
    pub(super) fn all(form: Form, blinded: bool) -> Vec<Self> {
        let mut places = match form {
            Form::Crt => Vec::from([Self::CrtValues, Self::Stage(Stage::Residues)]),
            Form::Plain => Vec::from([Self::Exponent]),
        };
        if blinded {
            places.push(Self::Stage(Stage::Blinds));
            if form == Form::Crt {
                places.push(Self::Stage(Stage::Masks));
            }
        }
        // Places in memory that are written from outside: see `memory`.
        if cfg!(target_os = "linux") {
            places.extend([Self::Constants, Self::Keys, Self::Positions]);
            if blinded {
                places.push(Self::Block);
            }
            if blinded || form == Form::Crt {
                places.push(Self::KeptBlock);
            }
        }
        places.push(Self::Modulus);
        let stages = [
            Stage::Bases,
            Stage::Instances,
            Stage::Exponents,
            Stage::Powers,
            Stage::Factors,
            Stage::Combined,
            Stage::Results,
            Stage::Verdicts,
        ];
        places.extend(stages.map(Self::Stage));
        places
    }

    /// The kinds of faults that make sense there.
    pub(super) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Exponent | Self::Modulus | Self::Constants => &[Bit, Word, Zeros, Ones, Lost],
            Self::Stage(Stage::Instances) | Self::Keys => &[Dropped, Swapped, Repeated],
            Self::Stage(Stage::Verdicts) => &[Lost],
            _ => &Kind::ALL,
        }
    }

    /// Whether a fault there makes wrong results that only the check holds back.
    pub(super) fn makes_wrong_results(self) -> bool {
        match self {
            // The key's seal catches these too.
            Self::CrtValues | Self::Exponent | Self::Modulus | Self::Constants => false,
            Self::Keys | Self::Positions | Self::Block | Self::KeptBlock => false,
            Self::Stage(Stage::Blinds | Stage::Masks | Stage::Verdicts) => false,
            Self::Stage(_) => true,
        }
    }

    /// Name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CrtValues => "key: p q dP dQ qInv",
            Self::Exponent => "key: d",
            Self::Modulus => "key: n",
            Self::Constants => "key: constants of n p q",
            Self::Keys => "keys of items",
            Self::Positions => "positions of items",
            Self::Block => "encoded messages before use",
            Self::KeptBlock => "encoded messages kept for the check",
            Self::Stage(Stage::Blinds) => "blinds",
            Self::Stage(Stage::Bases) => "bases",
            Self::Stage(Stage::Residues) => "residues",
            Self::Stage(Stage::Instances) => "order of exponentiations",
            Self::Stage(Stage::Exponents) => "exponents",
            Self::Stage(Stage::Powers) => "powers",
            Self::Stage(Stage::Factors) => "factors",
            Self::Stage(Stage::Combined) => "powers modulo n",
            Self::Stage(Stage::Results) => "results",
            Self::Stage(Stage::Masks) => "masks of the check",
            Self::Stage(Stage::Verdicts) => "verdicts",
        }
    }
}
