//! The constants of a pair of bases in the kernels.

use num_bigint::BigUint;

use crate::Bases;

/// Constants of a pair of bases A and B of n moduli each. `docs/rns.md` explains their use. The
/// kernels compute the matrices themselves; the other fields are their [table](Self::flat).
#[derive(Clone, Debug)]
pub struct Constants {
    /// `2^29 - a_i`.
    pub distance_a: Vec<u32>,
    /// `2^29 - b_j`.
    pub distance_b: Vec<u32>,
    /// `A (B / b_j)^-1 mod b_j`.
    pub kappa: Vec<u32>,
    /// Row i, column j: `(A / a_i) A^-1 mod b_j`, which is `a_i^-1 mod b_j`.
    pub a_to_b: Vec<Vec<u32>>,
    /// Row j, column i: `kappa_j (B / b_j) (-B^-1) mod a_i`.
    pub b_to_a: Vec<Vec<u32>>,
    /// Row k, column j, for each 32-bit word k of a number: `2^(32 k) A^-1 mod b_j`.
    pub enter: Vec<Vec<u32>>,
    /// Row j: the low 32-bit words of `kappa_j (B / b_j)`, one more than the words of a number.
    pub leave: Vec<Vec<u32>>,
    /// The low words of `-B`, as many as in a row of `leave`.
    pub minus_b: Vec<u32>,
    /// The low and the high word of `floor(kappa_j 2^48 / b_j)`.
    pub weight: Vec<[u32; 2]>,
    /// `(A / a_i)^-1 B mod a_i`.
    pub gamma: Vec<u32>,
    /// The integers that turn `r2` into `A^2 mod M`.
    pub public: Vec<Public>,
}

/// A public integer K in the representation of the kernels.
#[derive(Clone, Debug)]
pub struct Public {
    /// `K (-B^-1) mod a_i`.
    pub in_a: Vec<u32>,
    /// `K A^-1 mod b_j`.
    pub in_b: Vec<u32>,
}

impl Constants {
    /// Computes all constants from their definitions.
    #[must_use]
    pub fn new(bases: &Bases) -> Self {
        let (product_a, product_b) = (bases.product_a(), bases.product_b());
        let words = bases.bits as usize / 32 + 1;
        let distance = |m: &u32| (1 << 29) - m;
        let kappa = kappa(bases);
        let cofactor_b = |j: usize| &product_b / bases.b[j];
        let a_to_b = bases.a.iter().map(|&a| {
            let cofactor = &product_a / a;
            let column = |&b: &u32| product_mod(&[&cofactor, &inverse(&product_a, b)], b);
            bases.b.iter().map(column).collect()
        });
        let b_to_a = (0..bases.count()).map(|j| {
            let column = |&a: &u32| {
                let value = product_mod(&[&kappa[j], &cofactor_b(j), &inverse(&product_b, a)], a);
                (a - value) % a
            };
            bases.a.iter().map(column).collect()
        });
        let enter = (0..words - 1).map(|k| {
            let place = BigUint::from(1u32) << (32 * k);
            let column = |&b: &u32| product_mod(&[&place, &inverse(&product_a, b)], b);
            bases.b.iter().map(column).collect()
        });
        let leave = (0..bases.count()).map(|j| digits(&(&kappa[j] * cofactor_b(j)), words));
        let power = BigUint::from(1u32) << (32 * words);
        let weight = (0..bases.count()).map(|j| {
            let weight = digits(&((&kappa[j] << 48u32) / bases.b[j]), 2);
            [weight[0], weight[1]]
        });
        let gamma = bases.a.iter().map(|&a| {
            let cofactor = &product_a / a;
            product_mod(&[&inverse(&cofactor, a), &product_b], a)
        });
        Self {
            distance_a: bases.a.iter().map(distance).collect(),
            distance_b: bases.b.iter().map(distance).collect(),
            kappa: kappa.iter().map(|kappa| low(kappa) as u32).collect(),
            a_to_b: a_to_b.collect(),
            b_to_a: b_to_a.collect(),
            enter: enter.collect(),
            leave: leave.collect(),
            minus_b: digits(&(&power - &product_b % &power), words),
            weight: weight.collect(),
            gamma: gamma.collect(),
            public: entry_constants(bases)
                .iter()
                .map(|k| Public::new(bases, k))
                .collect(),
        }
    }

    /// The kernels' table: distances, kappa, weights, gamma, public integers, and `-B`.
    #[must_use]
    pub fn flat(&self) -> Vec<u32> {
        let mut all = [self.distance_a.as_slice(), &self.distance_b, &self.kappa].concat();
        all.extend(self.weight.iter().flatten());
        all.extend(&self.gamma);
        for public in &self.public {
            all.extend(public.in_a.iter().chain(&public.in_b));
        }
        all.extend(&self.minus_b);
        all
    }
}

impl Public {
    /// The residues of an integer.
    #[must_use]
    pub fn new(bases: &Bases, integer: &BigUint) -> Self {
        let (product_a, product_b) = (bases.product_a(), bases.product_b());
        let in_a = |&a: &u32| (a - product_mod(&[integer, &inverse(&product_b, a)], a)) % a;
        let in_b = |&b: &u32| product_mod(&[integer, &inverse(&product_a, b)], b);
        Self {
            in_a: bases.a.iter().map(in_a).collect(),
            in_b: bases.b.iter().map(in_b).collect(),
        }
    }
}

/// `1, c_0, l, h, c_2` with `A^4 = c_2 R^2 + (h A + l) R + c_0`, where `R = 2^(2 bits)` and each is
/// as small as possible; then `2^bits`.
pub(crate) fn entry_constants(bases: &Bases) -> [BigUint; 6] {
    let (a, r) = (bases.product_a(), BigUint::from(1u32) << (2 * bases.bits));
    let fourth = a.pow(4);
    let (rest, c0) = (&fourth / &r, &fourth % &r);
    let (c2, c1) = (&rest / &r, &rest % &r);
    let one = BigUint::from(1u32);
    let power = &one << bases.bits;
    [one, c0, &c1 % &a, &c1 / &a, c2, power]
}

/// `A (B / b_j)^-1 mod b_j` for each j. The residue of `x / A`, multiplied by this, is the digit of
/// x in base B.
pub(crate) fn kappa(bases: &Bases) -> Vec<BigUint> {
    let (product_a, product_b) = (bases.product_a(), bases.product_b());
    let kappa = |&b: &u32| product_mod(&[&product_a, &inverse(&(&product_b / b), b)], b).into();
    bases.b.iter().map(kappa).collect()
}

/// The inverse modulo a prime.
fn inverse(number: &BigUint, prime: u32) -> BigUint {
    number.modpow(&BigUint::from(prime - 2), &BigUint::from(prime))
}

fn product_mod(factors: &[&BigUint], modulus: u32) -> u32 {
    let product = factors.iter().fold(1, |product, &f| {
        product * low(&(f % modulus)) % u64::from(modulus)
    });
    product as u32
}

/// A number below `2^64`.
fn low(number: &BigUint) -> u64 {
    number.try_into().expect("a residue is small")
}

/// The low `count` words of a number.
fn digits(number: &BigUint, count: usize) -> Vec<u32> {
    let mut digits = number.to_u32_digits();
    digits.resize(count, 0);
    digits
}
