//! Sums, differences and products with a carry in the flag `CC.CF` (PTX ISA, "Extended-Precision
//! Integer Arithmetic Instructions").

use super::Decoder;
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Binary, Op, Reg, Width};

const WORD: Width = Width(32);
const PAIR: Width = Width(64);

impl Decoder<'_> {
    /// Decodes an instruction as a sum or difference of words in 64 bits. The flag is a register
    /// like any other, tainted by the bits that it is computed from.
    pub(super) fn carried(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let (name, takes_flag) = match parts[0].strip_suffix('c') {
            Some(name) => (name, true),
            None => (parts[0], false),
        };
        let mut ops = Vec::new();
        let [to, a, b] = match name {
            "mad" => self.product(parts[1] == "hi", operands, &mut ops)?,
            _ => self.operands(operands)?,
        };
        // The bits above the words give the carry or borrow.
        let (op, above) = match name {
            "sub" => (Binary::Sub, 63),
            _ => (Binary::Add, 32),
        };
        let (a, b) = (self.narrowed(a, WORD), self.narrowed(b, WORD));
        let (whole, flag, above) = (self.fresh(), self.flag(), self.constant(above));
        ops.push(Op::Binary(op, PAIR, [whole, a, b]));
        if takes_flag {
            ops.push(Op::Binary(op, PAIR, [whole, whole, flag]));
        }
        let word = self.constant(WORD.mask());
        ops.push(Op::Binary(Binary::And, WORD, [to, whole, word]));
        if parts.contains(&"cc") {
            ops.push(Op::Binary(Binary::ShiftRight, PAIR, [flag, whole, above]));
        }
        Ok(ops)
    }

    /// The result's register, half of the product of the first two operands, and the third operand.
    fn product(
        &mut self,
        high: bool,
        operands: &[Operand],
        ops: &mut Vec<Op>,
    ) -> Result<[Reg; 3], Problem> {
        let [to, a, b, addend] = self.operands(operands)?;
        let (a, b) = (self.narrowed(a, WORD), self.narrowed(b, WORD));
        let half = self.fresh();
        if high {
            let shift = [half, half, self.constant(32)];
            ops.push(Op::Binary(Binary::MulLow, PAIR, [half, a, b]));
            ops.push(Op::Binary(Binary::ShiftRight, PAIR, shift));
        } else {
            ops.push(Op::Binary(Binary::MulLow, WORD, [half, a, b]));
        }
        Ok([to, half, addend])
    }

    /// The register of the flag.
    fn flag(&mut self) -> Reg {
        let flag = self.flag.unwrap_or_else(|| self.fresh());
        self.flag = Some(flag);
        flag
    }
}
