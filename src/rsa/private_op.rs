//! The RSA private operation on many items of one key class, from encoded messages to checked
//! results. A public operation differs only in its power, and is not checked.
//!
//! All numbers are secret. They are in flat buffers, one item after another, with as many limbs as
//! the class has, least significant limb first. The keys' [class](super::key::KeyClass) and order
//! are public.
//!
//! # Blinding
//!
//! The base is blinded (Chaum, 1982; Kocher, 1996) without an inversion. The usual way divides
//! `(m r^e)^d = m^d r` by r. Here the private operation is `m^d = f b^(d - 1)`, with the *base* b
//! and the *factor* f:
//!
//! * unblinded, `f = b = m`;
//! * blinded, for a fresh random r, `f = m r^(e - 1)` and `b = f r = m r^e`. The product is m^d,
//!   because `r^(e - 1) r^(e (d - 1)) = r^(e d - 1) = 1` modulo p and modulo q, and so modulo n.
//!
//! This base is a random number independent of m. The exponent `d - 1` is d with its lowest bit
//! cleared: d, dP and dQ are odd, because e times each of them is 1 modulo an even number.

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::{Comparison, Engine, Moduli, SecretPowers};
use batch_modexp_core::limbs::is_below;
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use crypto_bigint::Limb;
use rand_core::TryRng;

use super::batch::{Batch, Items};
use super::error::Error;
use super::key::{Crt, moduli};
use super::limbs::{octets_to_limbs, write_octets};
use super::random::{Randomness, draw_below};

/// Exponentiates on a backend. Its results are not trusted.
pub(super) type Exponentiate<'a> =
    &'a dyn Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

/// Computes all items on the calling thread: secret exponentiations with `exponentiate`, other powers
/// and products on `engine`.
///
/// # Errors
///
/// [`Error::Rng`], and the error of `exponentiate`. An item that cannot be encoded has its own error,
/// also then. So has one whose result is wrong.
pub(super) fn compute_items(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    items: Items<'_>,
) -> Result<(), Error> {
    let encoded = EncodedItems::new(items.batch)?;
    if !items.batch.class.is_private {
        let (n, e) = (moduli(items.batch.keys), items.batch.class.exponent());
        let results = engine.public_powers(&n, &e, &encoded.ems);
        encoded.write_public(&results, items);
        return Ok(());
    }
    match private_powers(engine, exponentiate, &encoded) {
        Ok(results) => encoded.check_and_write(engine, &results, items),
        Err(error) => {
            encoded.write_errors(items);
            return Err(error.into());
        }
    }
    Ok(())
}

/// Encoded messages of a batch, and their blinding numbers if it is blinded. Wiped on drop.
///
/// For public operations an encoded message is the number to be raised to e.
pub(super) struct EncodedItems<'a> {
    pub(super) batch: Batch<'a>,
    /// For each item why it could not be encoded. Such items are computed as zeros.
    errors: Vec<Option<Error>>,
    pub(super) ems: Secret<Vec<Limb>>,
    pub(super) blinding: Option<BlindingNumbers>,
}

impl<'a> EncodedItems<'a> {
    /// Gets the encoded messages from the source, and draws blinding numbers if the batch is blinded.
    pub(super) fn new(batch: Batch<'a>) -> Result<Self, Error> {
        // Enough to wipe what the source and the generator leave on the stack.
        scrubbed(|| Self::encode(batch))
    }

    fn encode(batch: Batch<'a>) -> Result<Self, Error> {
        let (keys, limbs) = (batch.keys, batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut ems = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut errors = Vec::with_capacity(keys.len());
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for ((item, key), em) in keys.iter().enumerate().zip(ems.chunks_exact_mut(limbs)) {
            let octets = &mut octets[..key.n_octets()];
            let encoded = batch.position(item).and_then(|position| {
                batch.source.encode(position, &mut randomness, octets)?;
                octets_to_limbs(octets, em);
                // A check modulo p and q would not notice a number above n.
                batch.source.check(key, em)
            });
            errors.push(match encoded {
                Ok(()) => None,
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => {
                    em.fill(Limb::ZERO);
                    Some(error)
                }
            });
        }
        let draw = || BlindingNumbers::draw(&batch, &mut randomness);
        let blinding = batch.is_blinded.then(draw).transpose()?;
        Ok(Self {
            batch,
            errors,
            ems,
            blinding,
        })
    }
}

/// The random numbers of blinded items, in flat buffers.
pub(in crate::rsa) struct BlindingNumbers {
    /// A random number for each item, from 1 to n - 1.
    pub(in crate::rsa) r: Secret<Vec<Limb>>,
    /// Random numbers for the check of keys with primes: one for the p of each item, then one for
    /// the q of each.
    pub(in crate::rsa) masks: Secret<Vec<u16>>,
}

impl BlindingNumbers {
    /// Draws fresh numbers. Fails with [`Error::Rng`] if the generator fails.
    fn draw(batch: &Batch<'_>, randomness: &mut Randomness) -> Result<Self, Error> {
        let Batch { class, keys, .. } = batch;
        let limbs = class.limbs();
        let mut r = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for (key, r) in keys.iter().zip(r.chunks_exact_mut(limbs)) {
            let n = key.n().limbs;
            draw_below(n, key.n_bits, randomness, &mut octets[..key.n_octets()], r)?;
        }
        let mut masks = Secret::new(vec![0; class.prime.map_or(0, |_| 2 * keys.len())]);
        for mask in &mut *masks {
            *mask = randomness.try_next_u32()? as u16;
        }
        Ok(Self { r, masks })
    }
}

/// Computes `ems[i]^d mod n` for each item, blinded if there are random numbers, and unchecked.
fn private_powers(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    encoded: &EncodedItems<'_>,
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let Batch { class, keys, .. } = encoded.batch;
    let n = moduli(keys);
    let Blinded { bases, factors } = encoded.blind(engine);
    // b^(d - 1)
    let powers = match class.prime {
        Some(prime) => {
            let keys: Vec<&Crt> = keys.iter().map(|key| key.crt()).collect();
            let primes = for_p_then_q(&keys, |key| [key.p(), key.q()]);
            let residues = reduce(engine, &primes, &bases);
            let exponents = for_p_then_q(&keys, |key| {
                [key.dp_less_1.as_limbs(), key.dq_less_1.as_limbs()]
            });
            let halves = secret_powers(exponentiate, &primes, &exponents, prime.bits, &residues)?;
            recombine(engine, &keys, &halves, class.limbs())
        }
        None => {
            let exponents: Vec<_> = keys.iter().map(|key| key.d_less_1()).collect();
            secret_powers(exponentiate, &n, &exponents, class.n_width, &bases)?
        }
    };
    // f b^(d - 1) = m^d
    Ok(engine.products(&n, &powers, &factors))
}

/// Bases b and factors f: see the [module](self).
pub(in crate::rsa) struct Blinded {
    pub(in crate::rsa) bases: Secret<Vec<Limb>>,
    pub(in crate::rsa) factors: Secret<Vec<Limb>>,
}

impl EncodedItems<'_> {
    /// The bases and factors of the items.
    pub(super) fn blind(&self, engine: &dyn Engine) -> Blinded {
        let Some(BlindingNumbers { r, .. }) = &self.blinding else {
            // Copies, because the check reads encoded messages that no backend has touched.
            return Blinded {
                bases: Secret::new(self.ems.to_vec()),
                factors: Secret::new(self.ems.to_vec()),
            };
        };
        let Batch { class, keys, .. } = &self.batch;
        let n = moduli(keys);
        // r^(e - 1)
        let powers = engine.public_powers(&n, &class.exponent_less_1(), r);
        let factors = engine.products(&n, &self.ems, &powers);
        let bases = engine.products(&n, &factors, r);
        Blinded { bases, factors }
    }
}

/// Computes `values[i]` modulo each p, then modulo each q. All values are equally long.
fn reduce(engine: &dyn Engine, primes: Moduli<'_>, values: &[Limb]) -> Secret<Vec<Limb>> {
    engine.remainders(primes, &Secret::new(values.repeat(2)))
}

/// `bases[i]^exponents[i] mod moduli[i]` by the backend.
pub(super) fn secret_powers(
    exponentiate: Exponentiate<'_>,
    moduli: Moduli<'_>,
    exponents: &[&[Limb]],
    exponent_bits: u32,
    bases: &[Limb],
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let mut out = Secret::new(vec![Limb::ZERO; bases.len()]);
    exponentiate(SecretPowers {
        moduli,
        exponents,
        exponent_bits,
        bases,
        out: &mut out,
    })?;
    Ok(out)
}

/// Computes the numbers below n, of `limbs` limbs each, that are `halves[i]` modulo p and
/// `halves[keys.len() + i]` modulo q: `m2 + q * h` with `h = (m1 - m2) * qinv mod p`.
///
/// This is Garner's recombination (RFC 8017, section 5.2.1, step 2.b), constant-time in every value.
/// There must be a key. The halves must be reduced and as wide as the primes. If one of them is
/// wrong, the result is some number.
fn recombine(
    engine: &dyn Engine,
    keys: &[&Crt],
    halves: &[Limb],
    limbs: usize,
) -> Secret<Vec<Limb>> {
    // A difference of two products, because m2 may be above p.
    let p = for_p_then_q(keys, |key| [key.p(); 2]);
    let qinvs = Secret::new(for_p_then_q(keys, |key| [key.qinv.as_limbs(); 2]).concat());
    let products = engine.products(&p, halves, &qinvs);
    let middle = halves.len() / 2;
    let size = middle / keys.len();
    let mut h = Secret::new(vec![Limb::ZERO; size]);
    let mut combined = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
    scrubbed(|| {
        let places = combined.chunks_exact_mut(limbs);
        for ((key, i), place) in keys.iter().zip((0..).step_by(size)).zip(places) {
            let (of_p, of_q) = (i..i + size, middle + i..middle + i + size);
            let (a, b) = (&products[of_p], &products[of_q.clone()]);
            key.p().sub(a, b, &mut h);
            add_product(&h, key.q().limbs, &halves[of_q], place);
        }
    });
    combined
}

/// `out = addend + a * b`, in as many limbs as `out` has. `a` and `addend` are equally long, and
/// `out` holds zeros.
fn add_product(a: &[Limb], b: &[Limb], addend: &[Limb], out: &mut [Limb]) {
    for (out, addend) in out.iter_mut().zip(addend) {
        *out = *addend;
    }
    for (i, b) in b.iter().enumerate().take(out.len()) {
        let mut carry = Limb::ZERO;
        for (out, a) in out[i..].iter_mut().zip(a) {
            (*out, carry) = a.carrying_mul_add(*b, *out, carry);
        }
        // The first row that reaches this limb, which is still 0.
        if let Some(next) = out.get_mut(i + a.len()) {
            *next = carry;
        }
    }
}

/// The first value of each key, for its p, then the second one of each, for its q.
fn for_p_then_q<'a, T>(keys: &[&'a Crt], of_key: impl Fn(&'a Crt) -> [T; 2]) -> Vec<T> {
    let (of_p, of_q): (Vec<_>, Vec<_>) = keys.iter().map(|key| of_key(key).into()).unzip();
    [of_p, of_q].into_iter().flatten().collect()
}

impl EncodedItems<'_> {
    /// Checks results of private operations against the encoded messages, and writes those that have
    /// passed, decoded by the source. This is the only path from a private operation to the caller.
    ///
    /// # Panics
    ///
    /// If there is not one output and one result for each item.
    pub(super) fn check_and_write(self, engine: &dyn Engine, results: &[Limb], items: Items<'_>) {
        let passed = self.verdicts(engine, results);
        self.write(results, &passed, items);
    }

    /// Writes results of public operations, unchecked, decoded by the source.
    ///
    /// # Panics
    ///
    /// If a key is private, or there is not one output and one result for each item.
    pub(super) fn write_public(self, results: &[Limb], items: Items<'_>) {
        let mut runs = self.batch.keys.chunk_by(|a, b| ptr::eq(*a, *b));
        let are_public = runs.all(|run| run[0].private.is_none());
        assert!(are_public, "results of private keys must be checked");
        let passed = vec![true; items.len()];
        self.write(results, &passed, items);
    }

    /// Whether each result is below its modulus and its power of e equals the encoded message of
    /// its item.
    ///
    /// The encoded messages are those that the source made, not copies that a backend may have
    /// touched. An engine of this crate, not the backend, computes the power on the calling thread.
    ///
    /// It uses numbers of the key's record, so no result passes under a record that differs from
    /// the imported one. With SIMD lanes and keys with primes, the power is computed modulo p and
    /// q, which takes less time than modulo n. Blinded items have masks: see [`Comparison`].
    fn verdicts(&self, engine: &dyn Engine, results: &[Limb]) -> Vec<bool> {
        let (class, keys) = (&self.batch.class, self.batch.keys);
        let crts: Vec<&Crt> = match class.prime {
            Some(_) => keys.iter().map(|key| key.crt()).collect(),
            None => Vec::new(),
        };
        let agree = engine.powers_agree(
            &moduli(keys),
            &Comparison {
                primes: &for_p_then_q(&crts, |key| [key.p(), key.q()]),
                exponent: &class.exponent(),
                bases: results,
                expected: &self.ems,
                masks: self.blinding.as_ref().map(|blinding| &blinding.masks[..]),
            },
        );
        let mut items = results.chunks_exact(class.limbs()).zip(agree);
        let mut verdicts = Vec::with_capacity(keys.len());
        for run in keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let key = run[0];
            let n = key.n().limbs;
            let items = items.by_ref().take(run.len());
            let passed = items.map(|(result, agree)| reveal(agree & is_below(result, n)));
            let first = verdicts.len();
            verdicts.extend(passed);
            // Last, so that it covers the computation above.
            if !key.is_intact() {
                verdicts[first..].fill(false);
            }
        }
        verdicts
    }

    /// Writes the results that have passed to the outputs of their items, decoded by the source.
    ///
    /// # Panics
    ///
    /// If there is not one output and one result for each item.
    fn write(self, results: &[Limb], passed: &[bool], mut items: Items<'_>) {
        let Self { batch, errors, .. } = self;
        let (count, limbs) = (batch.keys.len(), batch.class.limbs());
        assert_eq!(results.len(), count * limbs, "a result for each item");
        assert_eq!(items.len(), count, "an output for each item");
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let results = batch.keys.iter().zip(results.chunks_exact(limbs));
        let results = results.zip(errors).zip(passed).enumerate();
        for (item, (((key, result), error), passed)) in results {
            let octets = &mut octets[..key.n_octets()];
            items.write(item, batch.source.output_len(key), |output| {
                let position = match (error, passed) {
                    (Some(error), _) => return Err(error),
                    (None, false) => return Err(Error::Fault { index: 0 }),
                    (None, true) => batch.position(item)?,
                };
                write_octets(result, octets);
                batch.source.decode(position, octets, output)
            });
        }
    }

    /// Writes the errors of the items that could not be encoded.
    fn write_errors(self, mut items: Items<'_>) {
        for (item, error) in self.errors.into_iter().enumerate() {
            if let Some(error) = error {
                items.fail(item, error);
            }
        }
    }
}

#[cfg(all(test, feature = "std"))]
pub(super) mod campaign;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
