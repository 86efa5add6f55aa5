//! Powers by tables, products of powers, and powers with public exponents, on several threads.

use core::convert::Infallible;

use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{
    FixedPowers, HasPowerEngine, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use crypto_bigint::Limb;

use super::batch::{least_products, share};
use super::{Cpu, Parallel};

/// The least work of a thread for a product of powers, in least shares of products: each thread
/// computes all squarings besides.
const MIN_SHARES: usize = 8;

impl<B: HasPowerEngine + Sync> HasPowerEngine for Parallel<B> {
    fn power_engine(&self) -> &dyn PowerEngine {
        self
    }
}

impl HasPowerEngine for Cpu {
    fn power_engine(&self) -> &dyn PowerEngine {
        &self.0
    }
}

/// One share for each thread: every share of powers by a table reads the whole table.
impl<B: HasPowerEngine + Sync> PowerEngine for Parallel<B> {
    fn table_form(&self, bits: u32) -> TableForm {
        self.inner.power_engine().table_form(bits)
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        self.inner.power_engine().fill_rows(table, base, first);
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        let share = self.full_share(powers.exponents.len());
        let exponents = powers.exponents.chunks(share);
        let shares = exponents.zip(powers.out.chunks_mut(share));
        self.each(shares, |(exponents, out)| {
            self.inner.power_engine().fixed_powers(FixedPowers {
                exponents,
                out,
                ..powers
            });
        });
    }

    fn lanes(&self) -> usize {
        self.inner.power_engine().lanes()
    }

    fn threads_for(&self, bits: u32, products: usize) -> usize {
        (products / (MIN_SHARES * least_products(bits))).clamp(1, self.threads())
    }

    /// Shared squarings gain more from threads: the last steps of buckets take one thread. Measured
    /// with 2, 4 and 16 threads.
    fn fewest_for_buckets(&self, bits: u32) -> usize {
        self.threads() * self.inner.power_engine().fewest_for_buckets(bits)
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        let share = self.full_share(powers.moduli.len());
        let (moduli, count) = (powers.moduli.chunks(share), powers.exponent_bits.len());
        let shares = moduli.zip(powers.out.chunks_mut(share)).enumerate();
        self.each(shares, |(i, (moduli, out))| {
            self.inner.power_engine().multi_powers(MultiPowers {
                moduli,
                terms: &powers.terms[i * share * count..][..moduli.len() * count],
                out,
                ..powers
            });
        });
    }

    fn powers_vartime(&self, powers: PublicPowers<'_, '_>) {
        let share = self.full_share(powers.moduli.len());
        let bases = powers.bases.chunks(share);
        let instances = powers.moduli.chunks(share).zip(bases);
        let shares = instances.zip(powers.out.chunks_mut(share));
        self.each(shares, |((moduli, bases), out)| {
            self.inner.power_engine().powers_vartime(PublicPowers {
                moduli,
                bases,
                out,
                ..powers
            });
        });
    }

    fn to_montgomery(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        let limbs = self.table_form(modulus.width()).limbs;
        let share = share(self.threads(), modulus.width(), numbers.len());
        let shares = numbers.chunks(share).zip(out.chunks_mut(share * limbs));
        self.each(shares, |(numbers, out)| {
            self.inner
                .power_engine()
                .to_montgomery(modulus, numbers, out);
        });
    }

    fn indexed_products(&self, products: IndexedProducts<'_>) {
        let bits = products.modulus.width();
        let share = share(self.threads(), bits, products.pairs.len());
        let places = products.out.chunks_mut(share * self.table_form(bits).limbs);
        let shares = products.pairs.chunks(share).zip(places);
        self.each(shares, |(pairs, out)| {
            self.inner.power_engine().indexed_products(IndexedProducts {
                pairs,
                out,
                ..products
            });
        });
    }

    fn retrieve(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
        self.inner.power_engine().retrieve(modulus, numbers, out);
    }
}

impl<B: HasPowerEngine + Sync> Parallel<B> {
    /// A share of whole vectors for each thread.
    fn full_share(&self, len: usize) -> usize {
        let share = len.div_ceil(self.threads()).max(1);
        share.next_multiple_of(self.lanes())
    }

    /// Computes shares on all threads.
    fn each<I>(&self, shares: I, compute: impl Fn(I::Item) + Sync)
    where
        I: ExactSizeIterator + Send,
    {
        let Ok(()) = self.workers.each_share(shares, |share| {
            compute(share);
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_modexp_core::Serial;

    #[test]
    fn few_products_stay_on_one_thread() {
        let parallel = Parallel::with_threads(Serial, 4.try_into().unwrap()).unwrap();
        for (bits, products, expected) in [
            (2048, 0, 1),
            (2048, 1000, 1),
            (2048, 1024, 2),
            (2048, 100_000, 4),
            (256, 60_000, 1),
        ] {
            let threads = parallel.threads_for(bits, products);
            assert_eq!(threads, expected, "{products} of {bits} bits");
        }
    }
}
