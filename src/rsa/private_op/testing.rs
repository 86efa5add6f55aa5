//! An engine that wraps another one and lets tests change numbers between stages of the private
//! operation.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use batch_modexp_core::PublicExponent;
use batch_modexp_core::engine::{Comparison, Engine, Moduli, SecretPowers};
use crypto_bigint::{Choice, Limb, Word};

use crate::rsa::Error;
use crate::rsa::backend::{HostEngine, Items, RsaBackend};
use crate::rsa::batch::Batch;

/// Inputs and outputs of an engine, in the order of the computation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rsa) enum Stage {
    /// The random numbers r.
    Blinds,
    /// The bases of the exponentiation modulo n; with primes twice, for p and for q.
    Bases,
    /// The bases modulo p, then modulo q.
    Residues,
    /// The assignment of bases and exponents to exponentiations.
    Instances,
    /// The private exponents.
    Exponents,
    /// The powers; with primes modulo p, then modulo q.
    Powers,
    /// The factors of the powers modulo n.
    Factors,
    /// The powers modulo n.
    Combined,
    /// The powers times the factors.
    Results,
    /// The random numbers of the check.
    Masks,
    /// The verdicts of the check for each item.
    Verdicts,
}

/// Gets the numbers of a stage; the last argument is the number of limbs of each.
type Hook<'a> = &'a (dyn Fn(Stage, &mut [Limb], usize) + Sync);

/// Gets encoded messages in their memory, before they are used or compared.
type Look<'a> = &'a (dyn Fn(&[Limb]) + Sync);

/// Computes like `engine`, with `hook` between two stages.
pub(in crate::rsa) struct Hooked<'a> {
    pub(in crate::rsa) engine: &'a dyn Engine,
    pub(in crate::rsa) hook: Hook<'a>,
    /// Called before items are encoded.
    pub(in crate::rsa) at_start: &'a (dyn Fn(&Batch<'_>) + Sync),
    /// Called before the first stage, with the encoded messages of blinded items.
    pub(in crate::rsa) at_first: Look<'a>,
    /// Called before the check, with the encoded messages of keys with primes.
    pub(in crate::rsa) at_check: Look<'a>,
    next: AtomicU8,
}

/// The computation that comes next.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Next {
    /// Blinding, exponentiation or unblinding.
    Any,
    /// The blinding's first product.
    Factors,
    /// The blinding's second product.
    Bases,
    /// The recombination, after the exponentiation modulo p and q.
    Recombination,
    Check,
}

impl<'a> Hooked<'a> {
    pub(in crate::rsa) fn new(engine: &'a dyn Engine, hook: Hook<'a>) -> Self {
        Self {
            engine,
            hook,
            at_start: &|_| (),
            at_first: &|_| (),
            at_check: &|_| (),
            next: AtomicU8::new(Next::Any as u8),
        }
    }

    fn next(&self) -> Next {
        let all = [
            Next::Any,
            Next::Factors,
            Next::Bases,
            Next::Recombination,
            Next::Check,
        ];
        all[usize::from(self.next.load(Relaxed))]
    }

    fn set_next(&self, next: Next) {
        self.next.store(next as u8, Relaxed);
    }

    fn hooked(&self, stage: Stage, numbers: &[Limb], size: usize) -> Vec<Limb> {
        let mut numbers = numbers.to_vec();
        (self.hook)(stage, &mut numbers, size);
        numbers
    }

    fn hook_verdicts(&self, verdicts: Vec<Choice>) -> Vec<Choice> {
        let words = verdicts
            .iter()
            .map(|verdict| Limb(Word::from(verdict.to_bool())));
        let words = self.hooked(Stage::Verdicts, &words.collect::<Vec<_>>(), 1);
        let verdict = |word: Limb| Choice::from_u8_lsb((word == Limb::ONE).into());
        words.into_iter().map(verdict).collect()
    }
}

impl Engine for Hooked<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn trial_division_bound(&self) -> u32 {
        self.engine.trial_division_bound()
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let size = powers.limbs();
        let bases = match self.next() == Next::Recombination {
            true => self.hooked(Stage::Residues, powers.bases, size),
            false => self.hooked(Stage::Bases, powers.bases, size),
        };
        let exponents: Vec<Limb> = powers
            .exponents
            .iter()
            .flat_map(|exponent| exponent.to_vec())
            .collect();
        let exponent_size = exponents.len() / powers.exponents.len().max(1);
        let exponents = self.hooked(Stage::Exponents, &exponents, exponent_size);
        let exponents: Vec<_> = exponents.chunks_exact(exponent_size.max(1)).collect();
        let order: Vec<_> = (0..exponents.len()).map(|i| Limb(i as Word)).collect();
        let order = self.hooked(Stage::Instances, &order, 1);
        let order = || order.iter().map(|i| i.0 as usize);
        let given: Vec<_> = order()
            .flat_map(|i| &bases[i * size..][..size])
            .copied()
            .collect();
        self.engine.pow(SecretPowers {
            bases: &given,
            exponents: &order().map(|i| exponents[i]).collect::<Vec<_>>(),
            out: &mut *powers.out,
            ..powers
        });
        (self.hook)(Stage::Powers, powers.out, size);
    }

    fn run_products(&self, moduli: Moduli<'_>, [a, b]: [&[Limb]; 2], out: &mut [Limb]) {
        let next = self.next();
        self.set_next(match next {
            Next::Factors => Next::Bases,
            Next::Bases | Next::Recombination => Next::Any,
            Next::Any | Next::Check => Next::Check,
        });
        if next == Next::Factors {
            (self.at_first)(a);
        }
        if self.next() != Next::Check {
            return self.engine.run_products(moduli, [a, b], out);
        }
        let size = a.len() / moduli.len().max(1);
        let a = self.hooked(Stage::Combined, a, size);
        let b = self.hooked(Stage::Factors, b, size);
        self.engine.run_products(moduli, [&a, &b], out);
        (self.hook)(Stage::Results, out, size);
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        let size = bases.len() / moduli.len().max(1);
        if self.next() == Next::Check {
            // The check of items without primes compares these with the encoded messages.
            self.set_next(Next::Any);
            self.engine.run_public_powers(moduli, exponent, bases, out);
            return (self.hook)(Stage::Verdicts, out, size);
        }
        self.set_next(Next::Factors);
        let bases = self.hooked(Stage::Blinds, bases, size);
        self.engine.run_public_powers(moduli, exponent, &bases, out);
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        self.set_next(Next::Recombination);
        let size = numbers.len() / moduli.len().max(1);
        let numbers = self.hooked(Stage::Bases, numbers, size);
        self.engine.run_remainders(moduli, &numbers, out);
    }

    fn run_powers_agree(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        (self.at_check)(comparison.expected);
        let masks = comparison.masks.map(|masks| {
            let words: Vec<_> = masks.iter().map(|&mask| Limb(mask.into())).collect();
            let words = self.hooked(Stage::Masks, &words, 1);
            words
                .into_iter()
                .map(|word| word.0 as u16)
                .collect::<Vec<_>>()
        });
        let verdicts = self.engine.run_powers_agree(&Comparison {
            masks: masks.as_deref(),
            ..*comparison
        })?;
        self.set_next(Next::Any);
        Some(self.hook_verdicts(verdicts))
    }
}

impl RsaBackend for Hooked<'_> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        self.pow(powers);
        Ok(())
    }

    fn compute(&self, items: Items<'_>) -> Result<(), Error> {
        if items.batch.class.is_private {
            (self.at_start)(&items.batch);
        }
        items.compute_on(self)
    }

    fn engine(&self) -> HostEngine<'_> {
        HostEngine(self)
    }
}
