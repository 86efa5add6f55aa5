//! Products of matrices that a warp does by itself: `mma.sync`, `m16n8k32` ("Matrix fragments for mma.m16n8k32" in the PTX ISA).

use super::{ALL, Warp};
use crate::fault::Fault;
use crate::program::{Reg, WarpProduct};
use crate::taint;

impl Warp<'_> {
    pub(super) fn warp_product(&mut self, product: &WarpProduct, lanes: u32) -> Result<(), Fault> {
        if lanes != ALL {
            return Err(Fault::NotConverged);
        }
        let byte = |reg: Reg, lane: usize, number: usize| -> u32 {
            self.regs[reg][lane].to_le_bytes()[number].into()
        };
        // Lane 4 g + t has of the rows g and g + 8 and of column g the bytes from 4 t on, and those 16 further on.
        let term = |row: usize, column: usize, k: usize| {
            let (half, t, number) = (k / 16, k % 16 / 4, k % 4);
            let left = byte(product.rows[row / 8 + 2 * half], row % 8 * 4 + t, number);
            left * byte(product.column[half], column * 4 + t, number)
        };
        let sums: [[u64; 32]; 4] = core::array::from_fn(|number| {
            core::array::from_fn(|lane| {
                let (row, column) = (lane / 4 + 8 * (number / 2), 2 * (lane % 4) + number % 2);
                let terms: u32 = (0..32).map(|k| term(row, column, k)).sum();
                u64::from((self.regs[product.from[number]][lane] as u32).wrapping_add(terms))
            })
        });
        let factors = product.rows.iter().chain(&product.column);
        let secret = factors.fold(0, |all, &reg| all | self.taint[reg]);
        let taints = product.from.map(|from| {
            let secret = taint::any(secret | self.taint[from]);
            secret & u64::from(u32::MAX)
        });
        for ((to, sum), taint) in product.to.into_iter().zip(sums).zip(taints) {
            self.set(to, sum, taint, lanes);
        }
        Ok(())
    }
}
