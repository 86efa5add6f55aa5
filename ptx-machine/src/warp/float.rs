//! Double-precision arithmetic: a tainted bit of an operand taints the whole result.

use super::{Warp, active_lanes};
use crate::fault::Fault;
use crate::float::fma_rz;
use crate::program::{Float, Reg};
use crate::taint;

impl Warp<'_> {
    pub(super) fn fma_toward_zero(
        &mut self,
        [to, a, b, c]: [Reg; 4],
        lanes: u32,
    ) -> Result<(), Fault> {
        let (x, y, z) = (&self.regs[a], &self.regs[b], &self.regs[c]);
        let value = core::array::from_fn(|l| fma_rz(x[l], y[l], z[l]));
        let tainted = self.taint[a] | self.taint[b] | self.taint[c];
        self.set_float(to, value, tainted, lanes)
    }

    pub(super) fn float(
        &mut self,
        op: Float,
        [to, a, b]: [Reg; 3],
        lanes: u32,
    ) -> Result<(), Fault> {
        let (x, y) = (&self.regs[a], &self.regs[b]);
        let value = core::array::from_fn(|l| float_op(op, x[l], y[l]));
        self.set_float(to, value, self.taint[a] | self.taint[b], lanes)
    }

    pub(super) fn negate_float(&mut self, [to, from]: [Reg; 2], lanes: u32) {
        let value = self.map(from, |x| x ^ 1 << 63);
        self.set(to, value, self.taint[from], lanes);
    }

    pub(super) fn convert_to_double(&mut self, [to, from]: [Reg; 2], signed: bool, lanes: u32) {
        let value = self.map(from, |x| match signed {
            true => (x as i64 as f64).to_bits(),
            false => (x as f64).to_bits(),
        });
        self.set(to, value, taint::any(self.taint[from]), lanes);
    }

    /// Writes floating-point results. A tainted bit of an operand taints all of their bits.
    fn set_float(
        &mut self,
        to: Reg,
        value: [Option<u64>; 32],
        tainted: u64,
        lanes: u32,
    ) -> Result<(), Fault> {
        let mut finite = [0; 32];
        for lane in active_lanes(lanes) {
            finite[lane] = self.in_lane(lane, value[lane].ok_or(Fault::NotFinite))?;
        }
        self.set(to, finite, taint::any(tainted), lanes);
        Ok(())
    }
}

/// Computes an operation. `None` if an operand or the result is not finite.
fn float_op(op: Float, a: u64, b: u64) -> Option<u64> {
    const ONE: u64 = 1023 << 52;
    const SIGN: u64 = 1 << 63;
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let to_nearest = |result: f64| result.is_finite().then_some(result.to_bits());
    match op {
        Float::AddToNearest => to_nearest(x + y),
        Float::SubToNearest => to_nearest(x - y),
        Float::MulToNearest => to_nearest(x * y),
        Float::AddTowardZero => fma_rz(a, ONE, b),
        Float::SubTowardZero => fma_rz(a, ONE, b ^ SIGN),
        // Adding a zero with the product's sign does not change the product.
        Float::MulTowardZero => fma_rz(a, b, (a ^ b) & SIGN),
    }
}
