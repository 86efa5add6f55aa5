//! Branches, the end of a kernel, and the barrier of a block.

use super::Decoder;
use crate::error::Problem;
use crate::module::Operand;
use crate::program::Op;

impl Decoder<'_> {
    pub(super) fn control(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let op = match (parts[0], operands) {
            ("bra", [Operand::Name(label)]) => {
                let target = self.entry.labels.get(label);
                let unknown = || Problem::UnknownLabel(label.clone());
                Op::Branch {
                    target: *target.ok_or_else(unknown)?,
                }
            }
            ("ret" | "exit", []) => Op::Exit,
            // Other numbers are separate barriers, which the machine does not support.
            ("bar" | "barrier", [Operand::Name(number)]) if number == "0" => Op::BlockBarrier,
            _ => return Err(Problem::Operands),
        };
        Ok(vec![op])
    }
}
