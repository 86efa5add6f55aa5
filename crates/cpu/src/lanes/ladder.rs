//! Powers. The ladder for secret exponents has a fixed window, and a multiplication for every digit,
//! 0 included. A public exponent has sliding windows.

use core::mem;
use core::ops::Range;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::engine::{Moduli, SecretPowers};
use batch_modexp_core::secret::scrubbed;
use batch_modexp_core::window::{Window, recode_into};
use crypto_bigint::Limb;

use super::convert::{flat, of_lane, set_power_of_two};
use super::workspace::{Buffer, Operands, Workspace};
use super::{Lanes, MAX_LANES};

/// Computes powers with secret exponents.
pub(super) fn powers<L: Lanes>(lanes: L, powers: SecretPowers<'_>) {
    let Some(first) = powers.moduli.first() else {
        return;
    };
    let (size, width) = (first.limbs.len(), first.width());
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let exponent_bits = powers.exponent_bits;
        let window = window::<L>(exponent_bits);
        let mut workspace = Workspace::with_table(lanes, L::limb_count(width), window);
        // The digits of one exponent, and of all lanes: the least significant ones, then the next.
        let mut recoded = Buffer::zeros(window.digit_count(exponent_bits));
        let mut digits = Buffer::zeros(recoded.len() * L::COUNT);
        let exponents = powers.exponents.chunks(L::COUNT);
        for ((group, range), exponents) in groups::<L>(powers.moduli).zip(exponents) {
            workspace.prepare_for_powers(group);
            workspace.load(flat(&powers.bases[range.clone()], size));
            let exponent = |lane| *of_lane(exponents, lane);
            recode::<L>(exponent, exponent_bits, window, &mut recoded, &mut digits);
            workspace.ladder(window, &digits);
            workspace.store(powers.out[range].chunks_exact_mut(size));
        }
    });
}

/// Groups of moduli, at most one for each lane, and their ranges in a flat buffer.
pub(super) fn groups<L: Lanes>(
    moduli: Moduli<'_>,
) -> impl Iterator<Item = (Moduli<'_>, Range<usize>)> {
    let size = moduli.first().map_or(0, |first| first.limbs.len());
    let starts = (0..).step_by(L::COUNT);
    moduli
        .chunks(L::COUNT)
        .zip(starts)
        .map(move |(group, start)| (group, start * size..(start + group.len()) * size))
}

impl<L: Lanes> Workspace<'_, L> {
    /// Replaces bases by powers, both in ordinary form. The powers are at most
    /// `(BOUND - 1) * modulus`.
    ///
    /// The order of operations and addresses depends only on the exponent length.
    fn ladder(&mut self, window: Window, digits: &[u8]) {
        let lanes = self.lanes;
        let x = &mut self.operands();
        x.fill_table();
        lanes.extend_entries(x);
        let mut digits = digits.rchunks(L::COUNT);
        // Without digits, start with entry 0, which is one.
        let top = digits.next().unwrap_or(&[0; MAX_LANES][..L::COUNT]);
        lanes.select(x.entry, x.table, top);
        let limbs = x.value.len();
        x.value.copy_from_slice(&x.entry[..limbs]);
        for digit in digits {
            lanes.step(window.bits(), digit, x);
        }
        x.retrieve();
    }
}

impl<L: Lanes> Operands<'_, L> {
    /// Fills the table with `value^0, value^1, ..` in Montgomery form. The value is in ordinary
    /// form.
    pub(super) fn fill_table(&mut self) {
        let (lanes, modulus, limbs) = (self.lanes, self.modulus, self.value.len());
        let entry_len = self.entry.len();
        set_power_of_two::<L>(self.factor, 0);
        let (zeroth, rest) = self.table.split_at_mut(entry_len);
        let first = &mut rest[..limbs];
        lanes.mul(
            &mut zeroth[..limbs],
            self.r2,
            self.factor,
            modulus,
            self.scratch,
        );
        lanes.mul(first, self.r2, self.value, modulus, self.scratch);
        for i in 2..self.table.len() / entry_len {
            let (powers, rest) = self.table.split_at_mut(i * entry_len);
            let power = |i: usize| &powers[i * entry_len..][..limbs];
            let out = &mut rest[..limbs];
            match i % 2 {
                0 => lanes.square(out, power(i / 2), modulus, self.scratch),
                _ => lanes.mul(out, power(i - 1), power(1), modulus, self.scratch),
            }
        }
    }
}

/// Recodes the exponent of each lane to `digits`, by way of `recoded`, which is as long as one of
/// them.
pub(super) fn recode<'n, L: Lanes>(
    exponent: impl Fn(usize) -> &'n [Limb],
    exponent_bits: u32,
    window: Window,
    recoded: &mut [u8],
    digits: &mut [u8],
) {
    for lane in 0..L::COUNT {
        recode_into(exponent(lane), exponent_bits, window, recoded);
        let digits = digits.iter_mut().skip(lane).step_by(L::COUNT);
        for (digit, recoded) in digits.zip(&*recoded) {
            *digit = *recoded;
        }
    }
}

/// The largest window of the ladder, in bits.
pub(crate) const LARGEST_WINDOW: u32 = 5;

/// `(largest exponent_bits, window bits)`: the cheapest window. A window of `w` bits costs
/// `2^w - 2` multiplications for the table. It then costs `ceil(exponent_bits / w) - 1`
/// multiplications, each with a look-up among `2^w` entries.
const WINDOWS: [(u32, u32); 3] = [(4, 1), (24, 2), (100, 3)];

/// The window for exponents of `exponent_bits` bits, which is public. Above 100 bits it is 4 bits,
/// and above [`LONG_EXPONENT_BITS`](Lanes::LONG_EXPONENT_BITS) [`LARGEST_WINDOW`].
pub(super) fn window<L: Lanes>(exponent_bits: u32) -> Window {
    let longest = if exponent_bits <= L::LONG_EXPONENT_BITS {
        4
    } else {
        LARGEST_WINDOW
    };
    let bits = WINDOWS
        .iter()
        .find(|(longest_exponent, _)| exponent_bits <= *longest_exponent)
        .map_or(longest, |(_, bits)| *bits);
    Window::new(bits).expect("a window of 1 to 5 bits")
}

/// Raises number `base(i)` to `exponent` modulo `moduli[i]`, for equally wide moduli.
pub(super) fn public_powers<'a, L: Lanes>(
    lanes: L,
    moduli: Moduli<'_>,
    exponent: &PublicExponent,
    base: impl Fn(usize) -> &'a [Limb],
    mut out: impl Iterator<Item = &'a mut [Limb]>,
) {
    let Some(first) = moduli.first() else {
        return;
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let limbs = L::limb_count(first.width());
        let mut workspace = Workspace::for_public_powers(lanes, limbs, exponent);
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            workspace.prepare_for_powers(group);
            let base = |lane: usize| base(start + lane.min(group.len() - 1));
            workspace.load(base);
            workspace.operands().public_pow(exponent);
            workspace.store(&mut out);
        }
    });
}

impl<L: Lanes> Operands<'_, L> {
    /// Replaces `value` by its power, both in ordinary form. Leaves the result in `spare` too.
    ///
    /// The last product leaves Montgomery form: its factor is an ordinary number, the base or one.
    /// The workspace must be [for this exponent](Workspace::for_public_powers).
    pub(super) fn public_pow(&mut self, exponent: &PublicExponent) {
        let (lanes, modulus, limbs) = (self.lanes, self.modulus, self.value.len());
        let chain = exponent.chain();
        let (base, odd_powers) = mem::take(&mut self.table).split_at_mut(limbs);
        base.copy_from_slice(self.value);
        lanes.mul(
            &mut odd_powers[..limbs],
            base,
            self.r2,
            modulus,
            self.scratch,
        );
        if chain.odd_powers > 1 {
            let square = &mut *self.factor;
            lanes.square(square, &odd_powers[..limbs], modulus, self.scratch);
            for odd in 1..chain.odd_powers {
                let (powers, next) = odd_powers.split_at_mut(odd * limbs);
                let last = &powers[(odd - 1) * limbs..];
                lanes.mul(&mut next[..limbs], last, square, modulus, self.scratch);
            }
        }
        let odd_power = |odd: usize| &odd_powers[odd * limbs..][..limbs];
        match chain.first {
            Some(odd) => self.value.copy_from_slice(odd_power(odd)),
            None => self.set_one(),
        }
        for step in &chain.steps {
            self.square(step.squarings);
            if let Some(odd) = step.odd {
                self.multiply(odd_power(odd));
            }
        }
        match chain.last_squarings {
            Some(squarings) => {
                self.square(squarings);
                self.multiply(base);
                self.end();
            }
            None => self.retrieve(),
        }
    }
}
