//! The RSA private operation: three launches, as kernels/README.md describes them, with everything secret
//! but moduli, public exponents and verdicts.

use num_bigint::BigUint;
use ptx_machine::{Argument, Global, Pointer};

use crate::harness::{launch, padded, program, scratch_bytes};
use crate::manifest::{ShippedEntry, entries};

const PUBLIC_EXPONENT: u64 = 65_537;

/// The numbers of a key that the kernels need; the kernels do not need p and q to be prime.
struct Key {
    p: BigUint,
    q: BigUint,
    dp: BigUint,
    dq: BigUint,
}

/// The entry points for keys of `bits` bits.
struct Class {
    bits: u32,
    exp: Vec<ShippedEntry>,
    garner: ShippedEntry,
    check: ShippedEntry,
}

impl Class {
    fn all() -> Vec<Self> {
        let all = entries("rsa_");
        let with = |bits: u32, part: &str| -> Vec<ShippedEntry> {
            let start = format!("rsa_{bits}_{part}");
            let found = all.iter().filter(|entry| entry.name.starts_with(&start));
            found.cloned().collect()
        };
        let checks = all.iter().filter(|entry| entry.name.ends_with("_check"));
        checks
            .map(|check| Self {
                bits: check.bits,
                exp: with(check.bits, "exp"),
                garner: with(check.bits, "garner").remove(0),
                check: check.clone(),
            })
            .collect()
    }

    fn prime_bits(&self) -> u32 {
        self.bits / 2
    }

    /// Keys of the full length with limbs of all ones and of zeros, p above q and below.
    fn keys(&self) -> Vec<Key> {
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
            let (dp, dq) = (&ones / 7u32, &ones - 1u32);
            Key { p, q, dp, dq }
        });
        keys.collect()
    }
}

impl Key {
    fn n(&self) -> BigUint {
        &self.p * &self.q
    }

    /// The record of the key.
    fn record(&self, class: &Class) -> Vec<u8> {
        let bytes = class.prime_bits() as usize / 8;
        let r2 = |bits: u32, modulus: &BigUint| (one() << (2 * bits) as usize) % modulus;
        let qinv = self
            .q
            .modinv(&self.p)
            .expect("p and q have no common factor");
        [
            padded(&self.p, bytes),
            padded(&r2(class.prime_bits(), &self.p), bytes),
            padded(&self.dp, bytes),
            padded(&self.q, bytes),
            padded(&r2(class.prime_bits(), &self.q), bytes),
            padded(&self.dq, bytes),
            padded(&qinv, bytes),
            padded(&self.n(), 2 * bytes),
            padded(&r2(class.bits, &self.n()), 2 * bytes),
        ]
        .concat()
    }
}

/// A batch on the way, with keys in turn.
struct Batch<'a> {
    class: &'a Class,
    count: usize,
    global: Global,
    keys: Pointer,
    key_index: Pointer,
}

impl<'a> Batch<'a> {
    fn new(class: &'a Class, keys: &[Key], count: usize) -> Self {
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
    fn secrets(&mut self, numbers: impl Iterator<Item = BigUint>, bytes: usize) -> Pointer {
        let contents = numbers.flat_map(|number| padded(&number, bytes)).collect();
        let pointer = self.global.with_bytes(contents, true);
        self.global.set_read_only(pointer);
        pointer
    }

    fn numbers(&self, pointer: Pointer, bytes: usize) -> Vec<BigUint> {
        let buffer = self.global.buffer(pointer);
        assert!(buffer.all_written());
        buffer
            .bytes()
            .chunks(bytes)
            .map(BigUint::from_bytes_le)
            .collect()
    }

    fn run(&mut self, entry: &ShippedEntry, instances: usize, arguments: &[Argument]) {
        let blocks = (instances as u32).div_ceil(entry.instances_per_block);
        let outcome = program(entry)
            .run(&launch(entry, blocks), arguments, &mut self.global)
            .unwrap_or_else(|stop| panic!("{stop}"));
        assert!(!outcome.secrets_left_in_shared, "{}", entry.name);
    }

    /// The first launch: both half exponentiations of every message.
    fn exp(&mut self, entry: &ShippedEntry, messages: &[BigUint], exponent_bits: u32) -> Pointer {
        let bytes = self.class.prime_bits() as usize / 8;
        let window = 4;
        let messages = self.secrets(messages.iter().cloned(), 2 * bytes);
        let halves = self.global.uninitialised(2 * bytes * self.count);
        let blocks = (2 * self.count as u32).div_ceil(entry.instances_per_block);
        let scratch = self
            .global
            .uninitialised(scratch_bytes(entry, blocks, window));
        let arguments = [
            Argument::Pointer(halves),
            Argument::Pointer(messages),
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

    /// The second and the third launch: signatures and verdicts.
    fn recombine(&mut self, halves: Pointer, messages: &[BigUint]) -> (Vec<BigUint>, Vec<u32>) {
        let bytes = self.class.prime_bits() as usize / 8;
        let copy = self.secrets(messages.iter().cloned(), 2 * bytes);
        let h = self.global.uninitialised(bytes * self.count);
        let out = self.global.uninitialised(2 * bytes * self.count);
        let verdict = self.global.uninitialised(4 * self.count);
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
        let check = [
            Argument::Pointer(out),
            Argument::Pointer(verdict),
            Argument::Pointer(halves),
            Argument::Pointer(h),
            Argument::Pointer(copy),
            Argument::Pointer(self.keys),
            Argument::Pointer(self.key_index),
            Argument::U64(PUBLIC_EXPONENT),
            Argument::U32(self.count as u32),
            Argument::U32(class.bits),
        ];
        self.run(&class.check, self.count, &check);
        let verdicts = self.numbers(verdict, 4);
        let verdicts = verdicts
            .iter()
            .map(|verdict| u32::try_from(verdict).unwrap());
        (self.numbers(out, 2 * bytes), verdicts.collect())
    }
}

fn one() -> BigUint {
    BigUint::from(1u32)
}

/// Numbers below the moduli of the keys in turn: their edges, and what is in between.
fn below_moduli(keys: &[Key], count: usize) -> Vec<BigUint> {
    let number = |i: usize| {
        let key = &keys[i % keys.len()];
        let n = key.n();
        match i / keys.len() {
            0 => &n - 1u32,
            1 => BigUint::ZERO,
            2 => one(),
            3 => &key.p * (&key.q - 1u32),
            4 => key.q.clone(),
            _ => BigUint::from(0x9e37_79b9_7f4a_7c15 + i as u64).pow(70) % n,
        }
    };
    (0..count).map(number).collect()
}

/// Both half exponentiations of full length moduli, with shortened exponents.
#[test]
fn half_exponentiations() {
    for class in &Class::all() {
        let keys = class.keys();
        for entry in &class.exp {
            let count = (entry.instances_per_block as usize / 2).min(24) + 1;
            let messages = below_moduli(&keys, count);
            let mut batch = Batch::new(class, &keys, count);
            let halves = batch.exp(entry, &messages, 35);
            let halves = batch.numbers(halves, class.prime_bits() as usize / 8);
            let mask = (one() << 35usize) - 1u32;
            for (i, message) in messages.iter().enumerate() {
                let Key { p, q, dp, dq } = &keys[i % keys.len()];
                let name = &entry.name;
                assert_eq!(
                    halves[2 * i],
                    message.modpow(&(dp & &mask), p),
                    "{name}, {i}"
                );
                assert_eq!(
                    halves[2 * i + 1],
                    message.modpow(&(dq & &mask), q),
                    "{name}, {i}"
                );
            }
        }
    }
}

/// From halves to signatures. One message in five is not what its signature opens to.
#[test]
fn recombination_and_check() {
    for class in &Class::all() {
        let (keys, count) = (class.keys(), 21);
        let signatures = below_moduli(&keys, count);
        let messages: Vec<_> = (0..count)
            .map(|i| {
                let n = keys[i % keys.len()].n();
                let message = signatures[i].modpow(&PUBLIC_EXPONENT.into(), &n);
                let is_wrong = i % 5 == 4;
                if is_wrong {
                    message ^ (one() << 100usize)
                } else {
                    message
                }
            })
            .collect();
        let mut batch = Batch::new(class, &keys, count);
        let halves = signatures.iter().enumerate().flat_map(|(i, signature)| {
            let Key { p, q, .. } = &keys[i % keys.len()];
            [signature % p, signature % q]
        });
        let halves = batch.secrets(halves, class.prime_bits() as usize / 8);
        let (found, verdicts) = batch.recombine(halves, &messages);
        for i in 0..count {
            let (verdict, signature) = if i % 5 == 4 {
                (0, &BigUint::ZERO)
            } else {
                (1, &signatures[i])
            };
            assert_eq!(
                (verdicts[i], &found[i]),
                (verdict, signature),
                "{}, {i}",
                class.bits
            );
        }
    }
}

/// The whole operation with a key of 1024 bits, through both entry points of the first launch.
#[test]
fn whole_private_operations() {
    let classes = Class::all();
    let class = classes
        .iter()
        .find(|class| class.bits == 1024)
        .expect("a class of 1024 bits");
    let power = one() << class.prime_bits() as usize;
    let p = prime_below(&power - 1_000_000u32);
    let q = prime_below(power);
    let exponent = |prime: &BigUint| {
        BigUint::from(PUBLIC_EXPONENT)
            .modinv(&(prime - 1u32))
            .unwrap()
    };
    let keys = [Key {
        dp: exponent(&p),
        dq: exponent(&q),
        p,
        q,
    }];
    let d = BigUint::from(PUBLIC_EXPONENT)
        .modinv(&((&keys[0].p - 1u32) * (&keys[0].q - 1u32)))
        .unwrap();
    for entry in &class.exp {
        let messages = below_moduli(&keys, 12);
        let mut batch = Batch::new(class, &keys, messages.len());
        let halves = batch.exp(entry, &messages, class.prime_bits());
        let (signatures, verdicts) = batch.recombine(halves, &messages);
        for (i, message) in messages.iter().enumerate() {
            let expected = message.modpow(&d, &keys[0].n());
            assert_eq!(
                (verdicts[i], &signatures[i]),
                (1, &expected),
                "{}, {i}",
                entry.name
            );
        }
    }
}

/// The largest prime below `bound` that e has an inverse for, by Fermat's test with four bases.
fn prime_below(bound: BigUint) -> BigUint {
    let mut candidate = (bound - 2u32) | one();
    let passes = |n: &BigUint| {
        let to_one = |base: u32| BigUint::from(base).modpow(&(n - 1u32), n) == one();
        [2, 3, 5, 7].into_iter().all(to_one) && (n - 1u32) % PUBLIC_EXPONENT != BigUint::ZERO
    };
    while !passes(&candidate) {
        candidate -= 2u32;
    }
    candidate
}
