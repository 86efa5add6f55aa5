//! Double-precision arithmetic.

use super::Decoder;
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Float, Op};

impl Decoder<'_> {
    pub(super) fn float(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let float = match parts {
            ["fma", "rz", _] => return Ok(vec![Op::FmaTowardZero(self.operands(operands)?)]),
            ["neg", _] => return Ok(vec![Op::NegateFloat(self.operands(operands)?)]),
            ["add", "rn", _] | ["add", _] => Float::AddToNearest,
            ["sub", "rn", _] | ["sub", _] => Float::SubToNearest,
            ["mul", "rn", _] | ["mul", _] => Float::MulToNearest,
            ["add", "rz", _] => Float::AddTowardZero,
            ["sub", "rz", _] => Float::SubTowardZero,
            ["mul", "rz", _] => Float::MulTowardZero,
            _ => return Err(Problem::Instruction),
        };
        Ok(vec![Op::Float(float, self.operands(operands)?)])
    }
}
