//! Keys, and a batch on its way through the launches.

use num_bigint::BigUint;
use ptx_machine::{Argument, Global, Pointer};

use crate::harness::{launch, padded, program, scratch_bytes};
use crate::manifest::{ShippedEntry, entries};

pub(super) const PUBLIC_EXPONENT: u64 = 65_537;

/// The numbers of a key in the kernels. They need not have prime p and q.
pub(super) struct Key {
    pub(super) p: BigUint,
    pub(super) q: BigUint,
    /// The exponents for p and q.
    pub(super) exponents: [BigUint; 2],
}

/// The entry points for keys of `bits` bits.
pub(super) struct RsaEntries {
    pub(super) bits: u32,
    pub(super) exp: Vec<ShippedEntry>,
    pub(super) garner: ShippedEntry,
    pub(super) join: ShippedEntry,
    pub(super) blind: ShippedEntry,
}

impl RsaEntries {
    pub(super) fn all() -> Vec<Self> {
        let all = entries("rsa_");
        let with = |bits: u32, part: &str| -> Vec<ShippedEntry> {
            let start = format!("rsa_{bits}_{part}");
            let found = all.iter().filter(|entry| entry.name.starts_with(&start));
            found.cloned().collect()
        };
        let joins = all.iter().filter(|entry| entry.name.ends_with("_join"));
        joins
            .map(|join| Self {
                bits: join.bits,
                exp: with(join.bits, "exp"),
                garner: with(join.bits, "garner").remove(0),
                join: join.clone(),
                blind: with(join.bits, "blind").remove(0),
            })
            .collect()
    }

    pub(super) fn of_1024_bits() -> Self {
        let mut all = Self::all().into_iter();
        all.find(|class| class.bits == 1024)
            .expect("a class of 1024 bits")
    }

    pub(super) fn prime_bits(&self) -> u32 {
        self.bits / 2
    }

    /// Keys of full length with limbs of all ones and of zeros, p above q and below.
    pub(super) fn keys(&self) -> Vec<Key> {
        let power = |bits: u32| one() << bits as usize;
        let ones = power(self.prime_bits()) - 1u32;
        let high = power(self.prime_bits() - 1);
        let pairs = [
            (ones.clone(), &high + 1u32),
            (&high + 1u32, ones.clone()),
            (
                &ones / 3u32 * 2u32 + 1u32,
                &ones - (power(52) - 1u32) + 1u32,
            ),
        ];
        let keys = pairs.into_iter().map(|(p, mut q)| {
            // A number near q that has no factor in common with p.
            let mut bit = 1;
            while q.modinv(&p).is_none() {
                q ^= one() << bit;
                bit += 1usize;
            }
            let exponents = [&ones / 7u32, &ones - 1u32];
            Key { p, q, exponents }
        });
        keys.collect()
    }
}

impl Key {
    pub(super) fn n(&self) -> BigUint {
        &self.p * &self.q
    }

    /// The record of the key.
    pub(super) fn record(&self, class: &RsaEntries) -> Vec<u8> {
        let bytes = class.prime_bits() as usize / 8;
        let r2 = |bits: u32, modulus: &BigUint| (one() << (2 * bits) as usize) % modulus;
        let qinv = self
            .q
            .modinv(&self.p)
            .expect("p and q have no common factor");
        [
            padded(&self.p, bytes),
            padded(&r2(class.prime_bits(), &self.p), bytes),
            padded(&self.exponents[0], bytes),
            padded(&self.q, bytes),
            padded(&r2(class.prime_bits(), &self.q), bytes),
            padded(&self.exponents[1], bytes),
            padded(&qinv, bytes),
            padded(&self.n(), 2 * bytes),
            padded(&r2(class.bits, &self.n()), 2 * bytes),
        ]
        .concat()
    }
}

/// A batch between launches. The keys are used in turn.
pub(super) struct Batch<'a> {
    pub(super) class: &'a RsaEntries,
    pub(super) count: usize,
    pub(super) global: Global,
    pub(super) keys: Pointer,
    pub(super) key_index: Pointer,
}

impl<'a> Batch<'a> {
    pub(super) fn new(class: &'a RsaEntries, keys: &[Key], count: usize) -> Self {
        let mut global = Global::default();
        let bytes = class.prime_bits() as usize / 8;
        let records: Vec<u8> = keys.iter().flat_map(|key| key.record(class)).collect();
        let index = (0..count).flat_map(|i| ((i % keys.len()) as u32).to_le_bytes());
        let key_index = global.with_bytes(index.collect(), false);
        let key_records = global.with_bytes(records, true);
        for start in (0..keys.len()).map(|key| key * 11 * bytes) {
            // The modulus and its constant.
            let public = start + 7 * bytes..start + 11 * bytes;
            global.make_public(key_records, public);
        }
        for pointer in [key_index, key_records] {
            global.set_read_only(pointer);
        }
        Self {
            class,
            count,
            global,
            keys: key_records,
            key_index,
        }
    }

    /// Secret numbers of `bytes` bytes each.
    pub(super) fn secrets(
        &mut self,
        numbers: impl Iterator<Item = BigUint>,
        bytes: usize,
    ) -> Pointer {
        let contents = numbers.flat_map(|number| padded(&number, bytes)).collect();
        let pointer = self.global.with_bytes(contents, true);
        self.global.set_read_only(pointer);
        pointer
    }

    pub(super) fn numbers(&self, pointer: Pointer, bytes: usize) -> Vec<BigUint> {
        let buffer = self.global.buffer(pointer);
        assert!(buffer.all_written());
        buffer
            .bytes()
            .chunks(bytes)
            .map(BigUint::from_bytes_le)
            .collect()
    }

    pub(super) fn run(&mut self, entry: &ShippedEntry, instances: usize, arguments: &[Argument]) {
        let blocks = (instances as u32).div_ceil(entry.instances_per_block);
        let outcome = program(entry)
            .run(&launch(entry, blocks), arguments, &mut self.global)
            .unwrap_or_else(|stop| panic!("{stop}"));
        assert!(!outcome.secrets_left_in_shared, "{}", entry.name);
        assert!(!outcome.secrets_left_in_variables, "{}", entry.name);
    }

    /// The first launch: both half exponentiations of every base.
    pub(super) fn exp(
        &mut self,
        entry: &ShippedEntry,
        bases: Pointer,
        exponent_bits: u32,
    ) -> Pointer {
        let bytes = self.class.prime_bits() as usize / 8;
        let window = 4;
        let halves = self.global.uninitialised(2 * bytes * self.count);
        let blocks = (2 * self.count as u32).div_ceil(entry.instances_per_block);
        let scratch = self
            .global
            .uninitialised(scratch_bytes(entry, blocks, window));
        let arguments = [
            Argument::Pointer(halves),
            Argument::Pointer(bases),
            Argument::Pointer(self.keys),
            Argument::Pointer(self.key_index),
            Argument::Pointer(scratch),
            Argument::U32(self.count as u32),
            Argument::U32(exponent_bits),
            Argument::U32(self.class.prime_bits()),
            Argument::U32(window),
        ];
        self.run(entry, 2 * self.count, &arguments);
        assert!(
            !self.global.buffer(scratch).holds_secrets(),
            "{}",
            entry.name
        );
        halves
    }

    /// The second and the third launch: the powers modulo n, times the factors.
    pub(super) fn recombine(&mut self, halves: Pointer, factors: Pointer) -> Pointer {
        let bytes = self.class.prime_bits() as usize / 8;
        let h = self.global.uninitialised(bytes * self.count);
        let out = self.global.uninitialised(2 * bytes * self.count);
        let class = self.class;
        let garner = [
            Argument::Pointer(h),
            Argument::Pointer(halves),
            Argument::Pointer(self.keys),
            Argument::Pointer(self.key_index),
            Argument::U32(self.count as u32),
            Argument::U32(class.prime_bits()),
        ];
        self.run(&class.garner, self.count, &garner);
        let join = [
            Argument::Pointer(out),
            Argument::Pointer(halves),
            Argument::Pointer(h),
            Argument::Pointer(factors),
            Argument::Pointer(self.keys),
            Argument::Pointer(self.key_index),
            Argument::U32(self.count as u32),
            Argument::U32(class.bits),
        ];
        self.run(&class.join, self.count, &join);
        out
    }

    /// The blinding launch: the factors `m r^exponent mod n`, and the bases, which are r times the
    /// factors.
    pub(super) fn blind(
        &mut self,
        messages: Pointer,
        randoms: Pointer,
        exponent: u64,
    ) -> [Pointer; 2] {
        let class = self.class;
        // Lanes past the end have places of their own.
        let places = self
            .count
            .next_multiple_of(class.blind.instances_per_block as usize);
        let bytes = class.bits as usize / 8 * places;
        let [factors, bases] = [(); 2].map(|()| self.global.uninitialised(bytes));
        let arguments = [
            Argument::Pointer(factors),
            Argument::Pointer(bases),
            Argument::Pointer(messages),
            Argument::Pointer(randoms),
            Argument::Pointer(self.keys),
            Argument::Pointer(self.key_index),
            Argument::U64(exponent),
            Argument::U32(self.count as u32),
            Argument::U32(class.bits),
        ];
        self.run(&class.blind, self.count, &arguments);
        [factors, bases]
    }
}

pub(super) fn one() -> BigUint {
    BigUint::from(1u32)
}
