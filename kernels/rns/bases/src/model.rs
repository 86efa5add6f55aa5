//! The kernels' arithmetic on the host, word for word, for one instance at a time.
//!
//! Names and steps are those of `kernels/rns/*.cuh`. Sums and products that must not exceed their
//! words use operators that panic on overflow in debug builds. Others use `wrapping_` methods.

mod modulus;

pub use modulus::Modulus;

use crate::{Bases, Constants, Public};

/// The four byte columns of a residue, as `low + 2^16 high`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Columns {
    /// The columns of bytes 0 and 1.
    pub low: u32,
    /// The columns of bytes 2 and 3.
    pub high: u32,
}

impl Columns {
    /// The sums of the byte columns. If these are large, column 1 has its upper bits in `high`.
    fn new(sums: [u32; 4], are_large: bool) -> Self {
        let (second, carry) = match are_large {
            true => (sums[1] & 255, sums[1] >> 8),
            false => (sums[1], 0),
        };
        Self {
            low: sums[0] + (second << 8),
            high: sums[2] + (sums[3] << 8) + carry,
        }
    }
}

/// The constants of an instance's modulus.
#[derive(Clone, Debug)]
pub struct InstanceModulus {
    /// `M / A mod b_j`.
    pub residues: Vec<u32>,
    /// `-M^-1 (A / a_i)^-1 B^2 mod a_i`; 0 for each `a_i` that divides M.
    pub factors: Vec<u32>,
    quotients: Vec<u32>,
}

/// The kernels' arithmetic for a pair of bases.
#[derive(Debug)]
pub struct Model {
    a: Vec<Modulus>,
    b: Vec<Modulus>,
    constants: Constants,
    words: usize,
    sums_are_large: bool,
    folds_loosely: bool,
}

impl Model {
    /// Makes the model for these bases.
    #[must_use]
    pub fn new(bases: &Bases) -> Self {
        let constants = Constants::new(bases);
        let moduli = |distances: &[u32]| {
            let modulus = |&distance| Modulus { distance };
            distances.iter().map(modulus).collect()
        };
        Self {
            a: moduli(&constants.distance_a),
            b: moduli(&constants.distance_b),
            words: bases.bits as usize / 32,
            sums_are_large: bases.count() > 72,
            folds_loosely: bases.count() <= 36 || bases.count() > 72,
            constants,
        }
    }

    /// The moduli of base A.
    #[must_use]
    pub fn base_a(&self) -> &[Modulus] {
        &self.a
    }

    /// The moduli of base B.
    #[must_use]
    pub fn base_b(&self) -> &[Modulus] {
        &self.b
    }

    /// Reduces columns for a product. With few or many moduli, the reduction is looser than
    /// elsewhere.
    #[must_use]
    pub fn fold_for_product(&self, m: Modulus, columns: Columns) -> u32 {
        let fold = match self.folds_loosely {
            true => Modulus::fold_loosely,
            false => Modulus::fold,
        };
        fold(m, columns.low, columns.high)
    }

    /// A product on the tensor cores: the columns of residue or word `column`, from the bytes of
    /// `operand`.
    ///
    /// A row of `matrix` is for byte 0. The row for byte q is `2^(8 q)` times that, modulo
    /// `modulus`.
    fn product(
        &self,
        operand: &[u32],
        matrix: &[Vec<u32>],
        column: usize,
        modulus: Modulus,
    ) -> Columns {
        let mut sums = [0u32; 4];
        for (&word, row) in operand.iter().zip(matrix) {
            let mut value = row[column];
            for byte in word.to_le_bytes() {
                for (sum, part) in sums.iter_mut().zip(value.to_le_bytes()) {
                    *sum += u32::from(byte) * u32::from(part);
                }
                let quotient = value >> 21;
                let next = (value << 8).wrapping_add(quotient.wrapping_mul(modulus.minus()));
                value = modulus.subtract_once(next);
            }
        }
        Columns::new(sums, self.sums_are_large)
    }

    /// The exact quotient of an extension from base B, as `low + 2^16 high`.
    #[must_use]
    pub fn quotient(&self, z: &[u32]) -> Columns {
        let mut sums = [0u32; 6];
        for (&residue, &[low, high]) in z.iter().zip(&self.constants.weight) {
            let weight = u64::from(high) << 32 | u64::from(low);
            for (q, byte) in residue.to_le_bytes().into_iter().enumerate() {
                let weight = (weight >> (24 - 8 * q)).to_le_bytes();
                for (sum, part) in sums.iter_mut().zip(weight) {
                    *sum += u32::from(byte) * u32::from(part);
                }
            }
        }
        let [first, second, third] = [0, 2, 4].map(|column| {
            let sums = [sums[column], sums[column + 1], 0, 0];
            Columns::new(sums, self.sums_are_large)
        });
        let [bits_0, bits_16] = [first.low, second.low + first.high];
        let [bits_32, bits_48] = [third.low + second.high, third.high];
        let lowest = bits_0 + ((bits_16 & 255) << 16) + (1 << 23);
        Columns {
            low: (lowest >> 24) + (bits_16 >> 8) + ((bits_32 & 255) << 8),
            high: (bits_32 >> 8) + (bits_48 << 8),
        }
    }

    /// The columns of the residues in base A, including the quotient.
    #[must_use]
    pub fn columns_in_a(&self, z: &[u32]) -> Vec<Columns> {
        let theta = self.quotient(z);
        let columns = self.a.iter().enumerate().map(|(i, &m)| {
            let columns = self.product(z, &self.constants.b_to_a, i, m);
            Columns {
                low: columns.low + theta.low,
                high: columns.high + theta.high,
            }
        });
        columns.collect()
    }

    /// The columns of the extension of quotient digits to base B.
    #[must_use]
    pub fn columns_in_b(&self, x: &[u32]) -> Vec<Columns> {
        let columns = self.b.iter().enumerate();
        columns
            .map(|(j, &m)| self.product(x, &self.constants.a_to_b, j, m))
            .collect()
    }

    /// `-z / B mod a_i` from `z / A mod b_j`.
    #[must_use]
    pub fn extend(&self, z: &[u32]) -> Vec<u32> {
        let columns = self.columns_in_a(z);
        let folded = self.a.iter().zip(columns);
        folded.map(|(&m, c)| self.fold_for_product(m, c)).collect()
    }

    /// `x / A mod b_j` from the words of x.
    ///
    /// # Panics
    ///
    /// If x has another width.
    #[must_use]
    pub fn from_words(&self, words: &[u32]) -> Vec<u32> {
        assert_eq!(words.len(), self.words, "the number has another width");
        let residue = |(j, &m): (usize, &Modulus)| {
            let columns = self.product(words, &self.constants.enter, j, m);
            m.fold(columns.low, columns.high)
        };
        self.b.iter().enumerate().map(residue).collect()
    }

    /// The constants of a modulus.
    #[must_use]
    pub fn modulus(&self, words: &[u32]) -> InstanceModulus {
        let z = self.from_words(words);
        let in_a = self.extend(&z);
        let canonical = self.b.iter().zip(&z);
        let factors: Vec<_> = (self.a.iter().zip(in_a).zip(&self.constants.gamma))
            .map(|((m, residue), &gamma)| {
                let factor = m.times(m.inverse(residue), gamma);
                m.subtract_once(m.subtract_twice(factor))
            })
            .collect();
        let quotients = self.a.iter().zip(&factors);
        InstanceModulus {
            residues: canonical.map(|(m, &z)| m.subtract_twice(z)).collect(),
            quotients: quotients.map(|(m, &f)| m.quotient_of_factor(f)).collect(),
            factors,
        }
    }

    /// `z y / A` modulo the modulus.
    #[must_use]
    pub fn multiply(&self, z: &[u32], y: &[u32], modulus: &InstanceModulus) -> Vec<u32> {
        self.multiply_by(z, &self.extend(y), y, modulus)
    }

    /// `z y / A` modulo the modulus, for a public integer y.
    #[must_use]
    pub fn multiply_public(&self, z: &[u32], y: &Public, modulus: &InstanceModulus) -> Vec<u32> {
        self.multiply_by(z, &y.in_a, &y.in_b, modulus)
    }

    fn multiply_by(
        &self,
        z: &[u32],
        y_in_a: &[u32],
        y_in_b: &[u32],
        modulus: &InstanceModulus,
    ) -> Vec<u32> {
        let in_a = self.extend(z);
        let digits: Vec<_> = (0..self.a.len())
            .map(|i| {
                let product = self.a[i].times(in_a[i], y_in_a[i]);
                self.a[i].times_constant(product, modulus.factors[i], modulus.quotients[i])
            })
            .collect();
        let columns = self.columns_in_b(&digits);
        let residue = |j: usize| {
            let m = self.b[j];
            let quotient = self.fold_for_product(m, columns[j]);
            let product = u64::from(z[j]) * u64::from(y_in_b[j]);
            m.reduce(product + u64::from(quotient) * u64::from(modulus.residues[j]))
        };
        (0..self.b.len()).map(residue).collect()
    }

    /// `A^2` modulo the modulus. `r2` is the output of `from_words`.
    #[must_use]
    pub fn a_squared(&self, r2: &[u32], modulus: &InstanceModulus) -> Vec<u32> {
        let [one, c0, l, h, c2, _] = self.constants.public.as_slice() else {
            unreachable!("there are six constants");
        };
        let add = |x, y: &[u32]| self.add(x, y);
        let sum = self.multiply_public(&one.in_b, c0, modulus);
        let sum = add(self.multiply_public(r2, l, modulus), &sum);
        let sum = self.multiply_public(&sum, one, modulus);
        let sum = add(self.multiply_public(r2, h, modulus), &sum);
        let square = self.multiply(r2, r2, modulus);
        add(self.multiply_public(&square, c2, modulus), &sum)
    }

    /// `(upper 2^bits + lower) A` modulo the modulus. Both parts are outputs of `from_words`; the
    /// last operand is that of `a_squared`.
    #[must_use]
    pub fn two_parts(
        &self,
        lower: &[u32],
        upper: &[u32],
        a_squared: &[u32],
        modulus: &InstanceModulus,
    ) -> Vec<u32> {
        let upper = self.multiply(upper, a_squared, modulus);
        let upper = self.multiply_public(&upper, &self.constants.public[5], modulus);
        self.multiply(&self.add(upper, lower), a_squared, modulus)
    }

    fn add(&self, x: Vec<u32>, y: &[u32]) -> Vec<u32> {
        let sums = self.b.iter().zip(x.iter().zip(y));
        sums.map(|(m, (x, y))| m.reduce_word(x + y)).collect()
    }

    /// The words of the integer that z represents, before the reduction modulo M: one more than the
    /// words of a number.
    #[must_use]
    pub fn to_words(&self, z: &[u32]) -> Vec<u32> {
        let theta = self.quotient(z);
        let theta = u64::from(theta.low) + (u64::from(theta.high) << 16);
        let mut carry = 0u64;
        let word = |w: usize| {
            let mut sum = 0u64;
            for (&residue, row) in z.iter().zip(&self.constants.leave) {
                let below = if w == 0 { 0 } else { row[w - 1] };
                let pair = u64::from(row[w]) << 32 | u64::from(below);
                for (q, byte) in residue.to_le_bytes().into_iter().enumerate() {
                    let moved = (pair >> (32 - 8 * q)) as u32;
                    sum += u64::from(byte) * u64::from(moved);
                }
            }
            let minus_b = u64::from(self.constants.minus_b[w]);
            let product = (theta & 0xffff_ffff) * minus_b;
            carry += sum;
            let low = (carry & 0xffff_ffff) + (product & 0xffff_ffff);
            carry = (carry >> 32) + (low >> 32) + (product >> 32) + (theta >> 32) * minus_b;
            low as u32
        };
        (0..=self.words).map(word).collect()
    }

    /// The public integer 1 as residues in base B.
    #[must_use]
    pub fn one(&self) -> &Public {
        &self.constants.public[0]
    }
}
