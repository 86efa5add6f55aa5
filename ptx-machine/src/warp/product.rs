//! Synchronous matrix products of a warp: `mma.sync`, `m16n8k32` ("Matrix fragments for
//! mma.m16n8k32" in the PTX ISA).

use super::matrix::inner_product;
use super::{ALL, Warp};
use crate::fault::Fault;
use crate::program::WarpProduct;
use crate::taint;

impl Warp<'_> {
    pub(super) fn warp_product(&mut self, product: &WarpProduct, lanes: u32) -> Result<(), Fault> {
        if lanes != ALL {
            return Err(Fault::NotConverged);
        }
        let (rows, columns) = (self.rows(&product.rows), self.columns(&product.column));
        // In rows g and g + 8, lane 4 g + t has the sums of columns 2 t and 2 t + 1.
        let sums: [[u64; 32]; 4] = core::array::from_fn(|number| {
            let from = &self.regs[product.from[number]];
            core::array::from_fn(|lane| {
                let row = &rows[lane / 4 + 8 * (number / 2)];
                let column = &columns[2 * (lane % 4) + number % 2];
                u64::from((from[lane] as u32).wrapping_add(inner_product(row, column)))
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
