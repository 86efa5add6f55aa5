//! Products `factor * base^exponent` modulo n = p q by the Chinese remainder theorem.
//!
//! The steps are both half exponentiations, Garner's recombination, and the product. The result is
//! not checked here. Optionally, a first step blinds both operands with a random number: see
//! [`Operands`].

use alloc::vec::Vec;

use batch_modexp_core::window::Window;
use crypto_bigint::BoxedUint;
use crypto_bigint::modular::MontyParams;

use crate::backend::cuda::family::entry::{Entry, Operation, Registry};
use crate::backend::cuda::runtime::launch::Launch;
use crate::backend::cuda::runtime::layout::{Layout, Part};
use crate::backend::cuda::runtime::module::Grid;
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::records::RecordKind;

/// A family with kernels for recombination and blinding. The half exponentiations may use kernels
/// of any family: their parameters and records are the same in all (`kernels/README.md`).
pub(crate) trait CrtFamily: Sync {
    /// The name of the family.
    fn name(&self) -> &'static str;

    /// 64-bit words in the record of a key.
    fn record_words(&self, class: &CrtClass) -> usize;

    /// Writes the whole record of a key.
    fn write_record(&self, class: &CrtClass, modulus: &CrtModulus<'_>, record: &mut [u64]);

    /// Lays out a chunk in memory, and makes its launches.
    fn exponentiate(&self, kernels: &CrtKernels, chunk: &CrtChunk) -> CrtWork;
}

/// The numbers in the record of a key: `n = p q`, the exponents for p and q, and `q^-1 mod p`. All
/// except n are secret.
#[derive(Clone, Copy)]
pub(crate) struct CrtModulus<'a> {
    pub(crate) p: &'a MontyParams<BoxedUint>,
    pub(crate) exponent_p: &'a BoxedUint,
    pub(crate) q: &'a MontyParams<BoxedUint>,
    pub(crate) exponent_q: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: &'a MontyParams<BoxedUint>,
}

/// Kernels for moduli of up to `bits` bits. One family recombines and blinds; the halves may use
/// any family.
#[derive(Clone, Debug)]
pub(crate) struct CrtClass {
    pub(crate) bits: u32,
    /// The candidates for the half exponentiations.
    pub(crate) halves: Vec<&'static Entry>,
    pub(crate) recombine: &'static Entry,
    pub(crate) join: &'static Entry,
    /// Blinds operands.
    pub(crate) blind: &'static Entry,
}

impl CrtClass {
    /// All kernels of the class.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let others = [self.recombine, self.join, self.blind];
        self.halves.iter().copied().chain(others)
    }

    /// The classes of a family. The kernels for their halves come from all families.
    pub(crate) fn of_family(entries: &'static [Entry], registry: Registry) -> Vec<Self> {
        let with_operation = |entries: &'static [Entry], operation: Operation, bits: u32| {
            let does = move |entry: &&Entry| entry.operation == operation && entry.bits == bits;
            entries.iter().filter(does)
        };
        let class = |join: &'static Entry| {
            let prime = join.bits / 2;
            let halves = |family| with_operation(family, Operation::CrtHalves, prime);
            Some(Self {
                bits: join.bits,
                halves: registry.families().flat_map(halves).collect(),
                recombine: with_operation(entries, Operation::CrtRecombine, prime).next()?,
                join,
                blind: with_operation(entries, Operation::CrtBlind, join.bits).next()?,
            })
        };
        let joins = |entry: &&Entry| entry.operation == Operation::CrtJoin;
        entries.iter().filter(joins).filter_map(class).collect()
    }

    /// The class, restricted to kernels for moduli of `n_bits` bits with factors of `prime_bits`
    /// bits, which are also the widths of the Montgomery parameters. `None` if no kernel for the
    /// halves is left.
    pub(crate) fn taking(mut self, n_bits: u32, prime_bits: u32) -> Option<Self> {
        let takes = |entry: &Entry, bits| (entry.min_r2_bits..=entry.bits).contains(&bits);
        self.halves.retain(|entry| takes(entry, prime_bits));
        let fits = !self.halves.is_empty()
            && takes(self.recombine, prime_bits)
            && takes(self.join, n_bits)
            && takes(self.blind, n_bits);
        fits.then_some(self)
    }

    /// Whether a device can run the class.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.halves.iter().any(|entry| entry.runs_on(device))
            && self.recombine.runs_on(device)
            && self.join.runs_on(device)
            && self.blind.runs_on(device)
    }

    pub(crate) fn family(&self) -> &'static dyn CrtFamily {
        family_of(self.join)
    }

    /// The kind of the records of its moduli.
    pub(crate) fn records(&self) -> RecordKind {
        RecordKind {
            family: self.family().name(),
            bits: self.bits,
            words: self.family().record_words(self),
        }
    }
}

/// The family of a kernel. Panics if the family has no [`CrtFamily`].
fn family_of(join: &'static Entry) -> &'static dyn CrtFamily {
    let family = join.family.crt();
    family.expect("a family with these kernels has these operations")
}

/// The kernels with which a device computes its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtKernels {
    pub(crate) halves: (&'static Entry, Grid),
    pub(crate) recombine: (&'static Entry, Grid),
    pub(crate) join: (&'static Entry, Grid),
    pub(crate) blind: (&'static Entry, Grid),
    /// The kind of the records of the moduli.
    pub(crate) records: RecordKind,
}

impl CrtKernels {
    /// Lays out a chunk in memory, and makes its launches.
    pub(crate) fn exponentiate(&self, chunk: &CrtChunk) -> CrtWork {
        let (join, _) = self.join;
        family_of(join).exponentiate(self, chunk)
    }
}

/// The operands of `factor * base^exponent`, and the numbers that are copied to the device for
/// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    /// One number m is both base and factor.
    Same,
    /// Two numbers: the base, then the factor.
    Given,
    /// Two numbers, m and r. With the public exponent e, the factor is `m r^(e - 1)`, and the base
    /// is r times the factor.
    Blinded,
}

/// A chunk of products of powers modulo n. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// The widths of the Montgomery parameters of n and of its factors.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// An upper bound for the lengths of both exponents, in bits.
    pub(crate) exponent_bits: u32,
    /// e, odd and above 1.
    pub(crate) public_exponent: u64,
    pub(crate) window: Window,
    pub(crate) operands: Operands,
}

/// The places of a chunk's operands, and its launches.
///
/// Numbers are little-endian 64-bit words, zero-extended to the width of the class. Those of all
/// instances are consecutive.
pub(crate) struct CrtWork {
    pub(crate) layout: Layout,
    /// The first number of each instance, below n: see [`Operands`].
    pub(crate) first: Part,
    /// The second number of each instance, if there is one.
    pub(crate) second: Option<Part>,
    /// For each instance the 32-bit index of the record of its modulus.
    pub(crate) record_index: Part,
    /// The products.
    pub(crate) product: Part,
    pub(crate) launches: Vec<Launch>,
}
