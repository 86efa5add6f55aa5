//! Matrix products on tensor cores, and their fences (PTX ISA, "Asynchronous warpgroup level matrix
//! instructions", and `mma` in "Warp level matrix multiply-accumulate instructions").

use super::{Decoder, name_of};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{MatrixProduct, Op, Reg, WarpProduct};

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
            ("fence", "proxy", []) => Op::ProxyFence {
                global: !parts.contains(&"shared::cta"),
                shared: !parts.contains(&"global"),
            },
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
            (
                "mma",
                "sync",
                [
                    Operand::Vector(to),
                    Operand::Vector(rows),
                    Operand::Vector(column),
                    Operand::Vector(from),
                ],
            ) => {
                let to: Result<Vec<_>, _> = to.iter().map(|name| self.register(name)).collect();
                Op::WarpProduct(Box::new(WarpProduct {
                    to: to?.try_into().map_err(|_| Problem::Operands)?,
                    rows: self.values(rows)?,
                    column: self.values(column)?,
                    from: self.values(from)?,
                }))
            }
            _ => return Err(Problem::Operands),
        };
        Ok(vec![op])
    }

    /// Exactly `N` values.
    fn values<const N: usize>(&mut self, names: &[String]) -> Result<[Reg; N], Problem> {
        let values: Result<Vec<_>, _> = names.iter().map(|name| self.value(name)).collect();
        values?.try_into().map_err(|_| Problem::Operands)
    }
}
