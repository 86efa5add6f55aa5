//! One step of the ladder: squarings, the look-up of a table entry, and a multiplication by it.

use core::mem;

use super::halves::MulEntry;
use super::look_up::{MERGED, STORED, Select, Share, stores_entries, suffice};
use super::madd52::{Kernel, Limb, Madd52};
use super::size::{keeps_columns, may_have_halves};
use super::squarings::Squarings;
use super::tiles::{Mul, Square};
use crate::lanes;
use crate::lanes::Modulus;

/// See [`Lanes::step`](crate::lanes::Lanes::step).
pub(super) struct Step<'a, 'v, L> {
    pub(super) step: lanes::Step<'a, 'v, L>,
    pub(super) digits: [u8; 8],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for Step<'_, '_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if const { keeps_columns::<T>(B) } && stores_entries(t, self.modulus.limbs.len()) {
            self.by_shares::<T, B, STORED>(t);
        } else {
            self.by_shares::<T, B, MERGED>(t);
        }
    }
}

impl<L: Limb> Step<'_, '_, L> {
    /// Looks up in shares of `E` entries, [`STORED`] or [`MERGED`].
    #[inline(always)]
    fn by_shares<T: Madd52<Limb = L>, const B: usize, const E: usize>(&mut self, t: T) {
        let (digits, modulus) = (self.digits, self.modulus);
        let squarings = self.step.squarings;
        let interleaves = suffice(E, squarings);
        let (limbs, entry_len) = (modulus.limbs.len(), self.step.entry.len());
        let fuses = t.tuning().fuses_squarings && interleaves;
        let alone = const { keeps_columns::<T>(B) } && limbs == B && fuses;
        let step = &mut self.step;
        if interleaves && T::MERGES_INTO_ZERO {
            step.entry.fill(L::ZERO);
        }
        if alone && const { may_have_halves::<T>(B) } && entry_len > limbs {
            t.run::<_, B>(&mut Squarings::<_, 2, E> {
                step,
                digits,
                modulus,
            });
        } else if alone {
            t.run::<_, B>(&mut Squarings::<_, 1, E> {
                step,
                digits,
                modulus,
            });
        }
        if alone && const { E == STORED } {
            // The function has computed the product too.
            return;
        }
        let lanes::Step {
            table,
            ref mut entry,
            ref mut value,
            ref mut spare,
            ..
        } = *step;
        let (mut value, mut spare) = (&mut **value, &mut **spare);
        if !alone {
            for squaring in 0..squarings {
                t.run::<_, B>(&mut Square::<_, E> {
                    out: spare,
                    a: value,
                    modulus,
                    scratch: self.scratch,
                    share: interleaves.then(|| Share::new(squaring, entry, table, digits)),
                });
                mem::swap(&mut value, &mut spare);
            }
        } else if !squarings.is_multiple_of(2) {
            mem::swap(&mut value, &mut spare);
        }
        if !interleaves {
            t.run::<_, B>(&mut Select {
                out: entry,
                table,
                digits,
            });
        }
        if entry.len() > value.len() {
            t.run::<_, B>(&mut MulEntry {
                out: spare,
                a: value,
                entry,
                modulus,
                scratch: self.scratch,
            });
        } else {
            t.run::<_, B>(&mut Mul {
                out: spare,
                a: value,
                b: entry,
                modulus,
                scratch: self.scratch,
            });
        }
    }
}
