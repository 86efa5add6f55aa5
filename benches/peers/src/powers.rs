//! Powers of fixed bases, products of powers and powers with public exponents, in the shapes of
//! threshold ECDSA (CGGMP) and of ElectionGuard.
//!
//! All instances of a shape share one modulus.

use std::hint::black_box;

use batch_modexp::backend::Cpu;
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModExpVartime, BatchModMul,
    BatchMultiExp, Error, ModExp, ModMul, ModMultiExp, PublicExponent,
};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{MultiExponentiateBoundedExp, Odd, Uint};
use openssl::bn::BigNum;

#[cfg(feature = "gmp")]
use crate::gmp::{Mpz, Powers};
use crate::rounds::{Contender, Plan, medians};

/// The widths of moduli, in bits.
pub(crate) const WIDTHS: [u32; 4] = [2048, 3072, 4096, 6144];

/// The most octets of a table for secret exponents, and for public ones.
const TABLE_BYTES: [usize; 2] = [16 << 20, 32 << 20];

/// How we compute.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Method {
    /// Every instance has other bases.
    Free,
    /// A table for each base.
    Fixed,
    /// A table for each base, and public exponents.
    FixedPublic,
    /// Every instance has another base, and all have one public exponent.
    OnePublic,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Fixed => "fixed",
            Self::FixedPublic => "fixed, public",
            Self::OnePublic => "free, one public",
        }
    }

    fn is_public(self) -> bool {
        matches!(self, Self::FixedPublic | Self::OnePublic)
    }
}

/// The lengths of the exponents of a product, in bits, and how it is computed.
type Shape = (&'static [u32], Method);

/// The shapes at a width.
fn shapes(width: u32) -> &'static [Shape] {
    use Method::{Fixed, FixedPublic, Free, OnePublic};
    match width {
        2048 => &[(&[2048], Free), (&[2048], Fixed), (&[2048], FixedPublic)],
        // CGGMP modulo N: ring-Pedersen commitments.
        3072 => &[
            (&[256], Free),
            (&[256], Fixed),
            (&[256], FixedPublic),
            (&[3072], Free),
            (&[3072], Fixed),
            (&[256, 256], Free),
            (&[256, 3072], Free),
            (&[256, 3072], Fixed),
            (&[256, 3072], FixedPublic),
            (&[3072, 3072], Free),
            (&[3072, 3072], Fixed),
        ],
        // ElectionGuard.
        4096 => &[
            (&[256], Free),
            (&[256], Fixed),
            (&[256], FixedPublic),
            (&[256], OnePublic),
            (&[256, 256], Free),
            (&[256, 256], Fixed),
            (&[256, 256], FixedPublic),
        ],
        // CGGMP modulo N^2: Paillier.
        6144 => &[
            (&[256], Free),
            (&[256], Fixed),
            (&[3072], Free),
            (&[3072], OnePublic),
            (&[256, 256], Free),
            (&[256, 3072], Free),
            (&[256, 3072], Fixed),
        ],
        _ => &[],
    }
}

/// Prints the head of the table.
pub(crate) fn head() {
    #[cfg(feature = "gmp")]
    println!("GMP: {}\n", crate::gmp::version());
    println!("| modulus | exponents | bases | per s | / crypto-bigint | / GMP |");
    println!("|---:|---:|---|---:|---:|---:|");
}

/// Prints a row for each shape at `width` bits, ours in batches of `batch`.
///
/// # Panics
///
/// If results differ.
pub(crate) fn compare(width: u32, batch: usize, plan: Plan) {
    let cpu = Cpu::with_threads(1.try_into().expect("not 0")).expect("no other thread");
    for shape in shapes(width) {
        match width {
            2048 => row::<32>(&cpu, *shape, batch, plan),
            3072 => row::<48>(&cpu, *shape, batch, plan),
            4096 => row::<64>(&cpu, *shape, batch, plan),
            6144 => row::<96>(&cpu, *shape, batch, plan),
            _ => unreachable!("a width without shapes"),
        }
    }
}

fn row<const L: usize>(cpu: &Cpu, (lengths, method): Shape, batch: usize, plan: Plan) {
    let case = Case::<L>::new(lengths, method, batch);
    let expected = case.expected();
    let mut contenders = vec![case.ours(cpu, &expected)];
    contenders.extend(case.crypto_bigint(&expected));
    let of_theirs = contenders.len();
    #[cfg(feature = "gmp")]
    contenders.push(case.gmp(&expected));
    let rates = medians(&mut contenders, plan);
    let theirs = rates[1..of_theirs].iter().copied().fold(0.0, f64::max);
    let gmp = match rates.get(of_theirs) {
        Some(gmp) => format!("{:.1}", rates[0] / gmp),
        None => "-".to_owned(),
    };
    let lengths: Vec<_> = lengths.iter().map(u32::to_string).collect();
    let (bits, lengths, name) = (Uint::<L>::BITS, lengths.join(" + "), method.name());
    let (rate, ratio) = (rates[0], rates[0] / theirs);
    println!("| {bits} | {lengths} | {name} | {rate:.0} | {ratio:.1} | {gmp} |");
}

/// The operands of a shape.
struct Case<const L: usize> {
    lengths: &'static [u32],
    method: Method,
    params: FixedMontyParams<L>,
    /// The terms of each instance.
    terms: Vec<Vec<(Uint<L>, Uint<L>)>>,
}

impl<const L: usize> Case<L> {
    fn new(lengths: &'static [u32], method: Method, count: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut number = |bits: u32| {
            let mut number = Uint::<L>::ZERO;
            for limb in number.as_mut_limbs() {
                limb.0 = rng.next_u64() as _;
            }
            let number = number.shr_vartime(Uint::<L>::BITS - bits);
            number | Uint::ONE.shl_vartime(bits - 1)
        };
        let modulus = match Uint::<L>::BITS {
            4096 => rfc3526_prime(),
            bits => number(bits) | Uint::ONE,
        };
        // Below every modulus, which has its top bit set.
        let mut base = || number(Uint::<L>::BITS - 1);
        let fixed: Vec<_> = lengths.iter().map(|_| base()).collect();
        let is_free = matches!(method, Method::Free | Method::OnePublic);
        let bases: Vec<Vec<_>> = (0..count)
            .map(|_| match is_free {
                true => lengths.iter().map(|_| base()).collect(),
                false => fixed.clone(),
            })
            .collect();
        let mut exponents = || lengths.iter().map(|bits| number(*bits)).collect();
        let one: Vec<_> = exponents();
        let terms = bases.into_iter().map(|bases| {
            let exponents = match method {
                Method::OnePublic => one.clone(),
                _ => exponents(),
            };
            bases.into_iter().zip(exponents).collect()
        });
        Self {
            lengths,
            method,
            terms: terms.collect(),
            params: FixedMontyParams::new(Odd::new(modulus).expect("an odd number")),
        }
    }

    fn form(&self, base: &Uint<L>) -> FixedMontyForm<L> {
        FixedMontyForm::new(base, &self.params)
    }

    /// The products by crypto-bigint's variable-time powers.
    fn expected(&self) -> Vec<Uint<L>> {
        let power = |(base, exponent): &(Uint<L>, Uint<L>)| self.form(base).pow_vartime(exponent);
        let product = |terms: &Vec<_>| {
            let powers = terms.iter().map(power);
            powers.reduce(|a, b| a.mul(&b)).expect("a term").retrieve()
        };
        self.terms.iter().map(product).collect()
    }

    fn ours<'a>(&'a self, cpu: &'a Cpu, expected: &[Uint<L>]) -> Contender<'a> {
        let mut compute = match self.method {
            Method::Free => self.free(cpu),
            Method::Fixed | Method::FixedPublic => self.fixed(cpu),
            Method::OnePublic => self.one_public(cpu),
        };
        let mut out = vec![Uint::ZERO; self.terms.len()];
        compute(&mut out).expect("a valid batch");
        assert_eq!(out, expected, "batch-modexp against crypto-bigint");
        Contender::new("batch-modexp", self.terms.len(), move || {
            compute(&mut out).expect("a valid batch");
            black_box(&out);
        })
    }

    fn free<'a>(&'a self, cpu: &'a Cpu) -> Compute<'a, L> {
        if let [bits] = *self.lengths {
            let powers = self.terms.iter().map(|terms| {
                let (base, exponent) = &terms[0];
                ModExp::new(base, exponent, &self.params)
            });
            let powers: Vec<_> = powers.collect();
            return Box::new(move |out| cpu.batch_mod_exp(black_box(&powers), bits, out));
        }
        let terms = self.terms.iter().map(|terms| {
            let terms = terms.iter().map(|(base, exponent)| (base, exponent));
            terms.collect::<Vec<_>>()
        });
        let terms: Vec<_> = terms.collect();
        Box::new(move |out| {
            let products = terms
                .iter()
                .map(|terms| ModMultiExp::new(terms, &self.params));
            let products: Vec<_> = products.collect();
            cpu.batch_multi_exp(black_box(&products), self.lengths, out)
        })
    }

    /// A table for each base, and the products of their powers.
    fn fixed<'a>(&'a self, cpu: &'a Cpu) -> Compute<'a, L> {
        let (secret, public) = match self.method {
            Method::Fixed => (true, false),
            _ => (false, true),
        };
        let powers = self.lengths.iter().enumerate().map(|(term, &bits)| {
            let exponents: Vec<_> = self.terms.iter().map(|terms| terms[term].1).collect();
            let base = &self.terms[0][term].0;
            let table = secret.then(|| {
                let table = cpu.fixed_base(base, &self.params, bits, TABLE_BYTES[0]);
                table.expect("a table")
            });
            let public_table = public.then(|| {
                let table = cpu.fixed_base_vartime(base, &self.params, bits, TABLE_BYTES[1]);
                table.expect("a table")
            });
            let compute: Compute<'a, L> = Box::new(move |out| {
                let exponents = black_box(&exponents);
                if let Some(table) = &table {
                    cpu.batch_fixed_base_exp(table, exponents, bits, out)?;
                }
                if let Some(table) = &public_table {
                    cpu.batch_fixed_base_exp_vartime(table, exponents, bits, out)?;
                }
                Ok(())
            });
            compute
        });
        let mut powers: Vec<_> = powers.collect();
        let first = powers.remove(0);
        let Some(mut second) = powers.pop() else {
            return first;
        };
        let (mut first, mut a, mut b) = (first, vec![Uint::ZERO; self.terms.len()], Vec::new());
        Box::new(move |out| {
            b.resize(out.len(), Uint::ZERO);
            first(&mut a)?;
            second(&mut b)?;
            let pairs = a.iter().zip(&b);
            let products = pairs.map(|(a, b)| ModMul::new(a, b, &self.params));
            cpu.batch_mod_mul(&products.collect::<Vec<_>>(), out)
        })
    }

    fn one_public<'a>(&'a self, cpu: &'a Cpu) -> Compute<'a, L> {
        let exponent = PublicExponent::new_vartime(&self.terms[0][0].1);
        let bases = self.terms.iter().map(|terms| (&terms[0].0, &self.params));
        let bases: Vec<_> = bases.collect();
        Box::new(move |out| cpu.batch_mod_exp_vartime(black_box(&bases), &exponent, out))
    }

    /// Powers, and for products also `multi_exponentiate_bounded_exp`, which has one length for all
    /// exponents.
    fn crypto_bigint<'a>(&'a self, expected: &[Uint<L>]) -> Vec<Contender<'a>> {
        let powers = |terms: &[(Uint<L>, Uint<L>)]| {
            let terms = terms.iter().zip(self.lengths);
            let powers = terms.map(|((base, exponent), bits)| match self.method.is_public() {
                true => self.form(base).pow_vartime(exponent),
                false => self.form(base).pow_amm_bounded_exp(exponent, *bits),
            });
            let product = powers.reduce(|a, b| a.mul(&b)).expect("a term");
            product.retrieve()
        };
        let shared = |terms: &[(Uint<L>, Uint<L>)]| {
            let terms = terms
                .iter()
                .map(|(base, exponent)| (self.form(base), *exponent));
            let terms: Vec<_> = terms.collect();
            let longest = *self.lengths.iter().max().expect("a term");
            FixedMontyForm::multi_exponentiate_bounded_exp(&terms[..], longest).retrieve()
        };
        let mut contenders = vec![self.one_by_one(powers, expected)];
        if self.lengths.len() > 1 {
            contenders.push(self.one_by_one(shared, expected));
        }
        contenders
    }

    fn one_by_one<'a>(
        &'a self,
        compute: impl Fn(&[(Uint<L>, Uint<L>)]) -> Uint<L> + 'a,
        expected: &[Uint<L>],
    ) -> Contender<'a> {
        for (terms, expected) in self.terms.iter().zip(expected) {
            assert_eq!(compute(terms), *expected);
        }
        let mut next = self.terms.iter().cycle();
        Contender::new("crypto-bigint", 1, move || {
            for terms in next.by_ref().take(1) {
                black_box(compute(black_box(terms)));
            }
        })
    }

    #[cfg(feature = "gmp")]
    fn gmp<'a>(&'a self, expected: &[Uint<L>]) -> Contender<'a> {
        let octets = |number: &Uint<L>| -> Vec<u8> {
            let limbs = number.as_limbs().iter();
            limbs.flat_map(|limb| limb.0.to_le_bytes()).collect()
        };
        let mpz = |number: &Uint<L>| Mpz::new(&octets(number));
        let instance = |terms: &Vec<(Uint<L>, Uint<L>)>| -> Vec<[Mpz; 2]> {
            let terms = terms.iter();
            terms
                .map(|(base, exponent)| [mpz(base), mpz(exponent)])
                .collect()
        };
        let instances: Vec<_> = self.terms.iter().map(instance).collect();
        let mut powers = Powers {
            modulus: mpz(self.params.modulus().as_ref()),
            are_public: self.method.is_public(),
            power: mpz(&Uint::ZERO),
            product: mpz(&Uint::ZERO),
        };
        for (terms, expected) in instances.iter().zip(expected) {
            powers.compute(terms.iter().map(|[base, exponent]| (base, exponent)));
            let product = powers.product.to_le_bytes(L * 8);
            assert_eq!(product, octets(expected), "GMP against crypto-bigint");
        }
        let mut next = 0;
        Contender::new("GMP", 1, move || {
            let terms = black_box(&instances[next]).iter();
            powers.compute(terms.map(|[base, exponent]| (base, exponent)));
            next = (next + 1) % instances.len();
        })
    }
}

/// Computes a batch.
type Compute<'a, const L: usize> = Box<dyn FnMut(&mut [Uint<L>]) -> Result<(), Error> + 'a>;

/// The prime of group 16 of RFC 3526, in as many limbs.
fn rfc3526_prime<const L: usize>() -> Uint<L> {
    let prime = BigNum::get_rfc3526_prime_4096().expect("a prime");
    Uint::from_be_slice(&prime.to_vec())
}
