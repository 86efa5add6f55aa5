//! What a fault does to numbers, and where.

use alloc::vec::Vec;

use chacha20::ChaCha20Rng;
use crypto_bigint::{Limb, Word};
use rand_core::Rng;

use super::super::testing::Stage;

/// What a fault does to numbers of equal length, of which it picks one, or two, at random.
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
    /// A number is zero, as if nobody had written it.
    Lost,
    /// A number is left out: those behind it move up, and the last is zero.
    Dropped,
    /// Two numbers change places.
    Swapped,
    /// A number stands in another one's place too.
    Repeated,
}

use Kind::*;

impl Kind {
    pub(in crate::rsa) const ALL: [Self; 8] =
        [Bit, Word, Zeros, Ones, Lost, Dropped, Swapped, Repeated];

    /// For the report.
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

    /// Damages `numbers`, and returns the indices of those that are not what they were.
    pub(in crate::rsa) fn strike(
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

/// Where a fault hits, in the order of the computation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Place {
    /// One of p, q, dP, dQ and qInv of a key. p and q stay odd, as their type has it, and their Montgomery constants follow them.
    CrtValues,
    /// The private exponent of a key without primes.
    Exponent,
    /// The modulus n of a key, like p and q.
    Modulus,
    /// The Montgomery constants of a key: `R^2` and the inverse modulo n, and of a key with primes modulo p and q.
    Constants,
    /// Which key an item has.
    Keys,
    /// Where an item stands in the caller's batch.
    Positions,
    /// The encoded messages, before anything is computed from them.
    Block,
    /// The encoded messages, while they wait for the check.
    KeptBlock,
    /// Between two stages of the computation.
    Stage(Stage),
}

/// What a key has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Crt,
    Plain,
}

impl Place {
    /// All that is reached with such keys.
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
        // Where memory can be struck from outside: see `memory`.
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

    /// The faults that make sense there.
    pub(super) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Exponent | Self::Modulus | Self::Constants => &[Bit, Word, Zeros, Ones, Lost],
            Self::Stage(Stage::Instances) | Self::Keys => &[Dropped, Swapped, Repeated],
            Self::Stage(Stage::Verdicts) => &[Lost],
            _ => &Kind::ALL,
        }
    }

    /// Whether a fault there makes wrong results that the verdicts of the check alone keep back.
    pub(super) fn makes_wrong_results(self) -> bool {
        match self {
            // The seal of the key keeps its faults back, too.
            Self::CrtValues | Self::Exponent | Self::Modulus | Self::Constants => false,
            Self::Keys | Self::Positions | Self::Block | Self::KeptBlock => false,
            Self::Stage(Stage::Blinds | Stage::Masks | Stage::Verdicts) => false,
            Self::Stage(_) => true,
        }
    }

    /// For the report.
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
