//! Products `factor * base^exponent` modulo a product n = p q of two primes by the Chinese remainder theorem: both half
//! exponentiations, Garner's recombination, and the product. What comes out is not checked here. Before them, if asked for,
//! both operands are made of a number and a random one, so that the base is one that nobody can know: see [`Operands`].

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

/// What a family with kernels for recombination and blinding says of all these operations. Kernels for the halves
/// may be any family's: their parameters are the same in all (`kernels/README.md`), and so are the records that they read.
pub(crate) trait CrtFamily: Sync {
    /// The name of the family.
    fn name(&self) -> &'static str;

    /// 64-bit words in the record of a modulus with its factors and exponents.
    fn record_words(&self, class: &CrtClass) -> usize;

    /// Writes the record of a modulus, all of it.
    fn write_record(&self, class: &CrtClass, modulus: &CrtModulus<'_>, record: &mut [u64]);

    /// Lays a chunk out in memory, and makes its launches.
    fn exponentiate(&self, kernels: &CrtKernels, chunk: &CrtChunk) -> CrtWork;
}

/// The numbers that a record is made of: `n = p q`, the exponents for p and q, and `q^-1 mod p`. All of them
/// but n are secret.
#[derive(Clone, Copy)]
pub(crate) struct CrtModulus<'a> {
    pub(crate) p: &'a MontyParams<BoxedUint>,
    pub(crate) exponent_p: &'a BoxedUint,
    pub(crate) q: &'a MontyParams<BoxedUint>,
    pub(crate) exponent_q: &'a BoxedUint,
    pub(crate) qinv: &'a BoxedUint,
    pub(crate) n: &'a MontyParams<BoxedUint>,
}

/// Kernels for moduli of up to `bits` bits: of one family, and those for the halves of all.
#[derive(Clone, Debug)]
pub(crate) struct CrtClass {
    pub(crate) bits: u32,
    /// To choose from.
    pub(crate) halves: Vec<&'static Entry>,
    pub(crate) recombine: &'static Entry,
    pub(crate) join: &'static Entry,
    /// Makes operands that are blinded.
    pub(crate) blind: &'static Entry,
}

impl CrtClass {
    /// All of them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let others = [self.recombine, self.join, self.blind];
        self.halves.iter().copied().chain(others)
    }

    /// The classes of a family, with everybody's kernels for their halves.
    pub(crate) fn of_family(entries: &'static [Entry], registry: Registry) -> Vec<Self> {
        let doing = |entries: &'static [Entry], operation: Operation, bits: u32| {
            let does = move |entry: &&Entry| entry.operation == operation && entry.bits == bits;
            entries.iter().filter(does)
        };
        let class = |join: &'static Entry| {
            let prime = join.bits / 2;
            let halves = |family| doing(family, Operation::CrtHalves, prime);
            Some(Self {
                bits: join.bits,
                halves: registry.families().flat_map(halves).collect(),
                recombine: doing(entries, Operation::CrtRecombine, prime).next()?,
                join,
                blind: doing(entries, Operation::CrtBlind, join.bits).next()?,
            })
        };
        let joins = |entry: &&Entry| entry.operation == Operation::CrtJoin;
        entries.iter().filter(joins).filter_map(class).collect()
    }

    /// The class for moduli of `n_bits` bits with factors of `prime_bits` bits, all of them widths of their
    /// Montgomery parameters: without the kernels for halves that do not take these; `None` if there is nothing else.
    pub(crate) fn taking(mut self, n_bits: u32, prime_bits: u32) -> Option<Self> {
        let takes = |entry: &Entry, bits| (entry.min_r2_bits..=entry.bits).contains(&bits);
        self.halves.retain(|entry| takes(entry, prime_bits));
        let fits = !self.halves.is_empty()
            && takes(self.recombine, prime_bits)
            && takes(self.join, n_bits)
            && takes(self.blind, n_bits);
        fits.then_some(self)
    }

    /// Whether a device can run it.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.halves.iter().any(|entry| entry.runs_on(device))
            && self.recombine.runs_on(device)
            && self.join.runs_on(device)
            && self.blind.runs_on(device)
    }

    pub(crate) fn family(&self) -> &'static dyn CrtFamily {
        family_of(self.join)
    }

    /// What the records of its moduli are.
    pub(crate) fn records(&self) -> RecordKind {
        RecordKind {
            family: self.family().name(),
            bits: self.bits,
            words: self.family().record_words(self),
        }
    }
}

/// Panics if the family has these kernels but does not say how they are used.
fn family_of(join: &'static Entry) -> &'static dyn CrtFamily {
    let family = join.family.crt();
    family.expect("a family with these kernels has these operations")
}

/// The kernels of a class that a device computes a share with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtKernels {
    pub(crate) halves: (&'static Entry, Grid),
    pub(crate) recombine: (&'static Entry, Grid),
    pub(crate) join: (&'static Entry, Grid),
    pub(crate) blind: (&'static Entry, Grid),
    /// What the records of the moduli are.
    pub(crate) records: RecordKind,
}

impl CrtKernels {
    /// Lays a chunk out in memory, and makes its launches.
    pub(crate) fn exponentiate(&self, chunk: &CrtChunk) -> CrtWork {
        let (join, _) = self.join;
        family_of(join).exponentiate(self, chunk)
    }
}

/// What the operands of `factor * base^exponent` are, and what is copied to the device for them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    /// One number m is both.
    Same,
    /// A number for each: the base, and then the factor.
    Given,
    /// They are made of two numbers, m and r: with e the public exponent, the factor is `m r^(e - 1)`, and the base is r
    /// times that.
    Blinded,
}

/// A chunk of products of powers modulo n; all of it is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrtChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// The widths of the Montgomery parameters of n and of its factors.
    pub(crate) n_bits: u32,
    pub(crate) prime_bits: u32,
    /// A bound for the lengths of both exponents.
    pub(crate) exponent_bits: u32,
    /// e, odd and above 1.
    pub(crate) public_exponent: u64,
    pub(crate) window: Window,
    pub(crate) operands: Operands,
}

/// Where the operands of a chunk lie, and what is launched. Numbers are little-endian 64-bit words, those of
/// all instances one after the other, as wide as the class, with zeros above.
pub(crate) struct CrtWork {
    pub(crate) layout: Layout,
    /// The first number of each instance, below n: see [`Operands`].
    pub(crate) first: Part,
    /// The second one, if there is one.
    pub(crate) second: Option<Part>,
    /// For each instance the index of the record of its modulus, 32 bits.
    pub(crate) record_index: Part,
    /// The products.
    pub(crate) product: Part,
    pub(crate) launches: Vec<Launch>,
}
