//! Products of matrices by the tensor cores, and the fences around them (PTX ISA, "Asynchronous warpgroup level matrix
//! instructions").

use super::{Decoder, name_of};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{MatrixProduct, Op};

impl Decoder<'_> {
    pub(super) fn matrix(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let op = match (parts[0], parts[1], operands) {
            ("wgmma", "fence", []) => Op::MatrixFence,
            ("wgmma", "commit_group", []) => Op::MatrixCommit,
            ("wgmma", "wait_group", [Operand::Name(pending)]) => Op::MatrixWait {
                pending: pending.parse().map_err(|_| Problem::Number)?,
            },
            ("fence", "proxy", []) => Op::ProxyFence,
            (
                "wgmma",
                "mma_async",
                [Operand::Vector(sums), Operand::Vector(rows), matrix, keep],
            ) => {
                let columns = parts[4].strip_prefix("m64n");
                let columns = columns.and_then(|part| part.strip_suffix("k32"));
                let columns: usize = columns
                    .and_then(|columns| columns.parse().ok())
                    .ok_or(Problem::Instruction)?;
                if 2 * sums.len() != columns {
                    return Err(Problem::Operands);
                }
                let sums: Result<_, _> = sums.iter().map(|name| self.register(name)).collect();
                let rows: Result<Vec<_>, _> = rows.iter().map(|name| self.value(name)).collect();
                Op::MatrixProduct(Box::new(MatrixProduct {
                    sums: sums?,
                    rows: rows?.try_into().map_err(|_| Problem::Operands)?,
                    matrix: self.value_of(matrix)?,
                    keep: self.register(name_of(keep)?)?,
                }))
            }
            _ => return Err(Problem::Operands),
        };
        Ok(vec![op])
    }
}
