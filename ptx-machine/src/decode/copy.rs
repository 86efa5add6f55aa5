//! Bulk copies to shared memory, and their barriers (PTX ISA, "cp.async.bulk" and "mbarrier").

use super::{Decoder, name_of};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{BulkCopy, Op, Place};

impl Decoder<'_> {
    pub(super) fn copy(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let op = match (parts[0], parts[1], operands) {
            // The machine only supports one arrival in a phase.
            ("mbarrier", "init", [barrier, Operand::Name(count)]) if count == "1" => {
                Op::InitBarrier(self.place(barrier)?)
            }
            ("mbarrier", "arrive", [Operand::Name(state), barrier, bytes]) if state == "_" => {
                Op::ExpectCopies {
                    barrier: self.place(barrier)?,
                    bytes: self.value_of(bytes)?,
                }
            }
            ("mbarrier", "try_wait", [complete, barrier, parity]) => Op::WaitForCopies {
                complete: self.register(name_of(complete)?)?,
                barrier: self.place(barrier)?,
                parity: self.value_of(parity)?,
            },
            ("cp", "async", [to, from, bytes, barrier]) => Op::BulkCopy(Box::new(BulkCopy {
                to: self.place(to)?,
                from: self.place(from)?,
                bytes: self.value_of(bytes)?,
                barrier: self.place(barrier)?,
            })),
            _ => return Err(Problem::Operands),
        };
        Ok(vec![op])
    }

    fn place(&mut self, operand: &Operand) -> Result<Place, Problem> {
        let Operand::Address(base, offset) = operand else {
            return Err(Problem::Operands);
        };
        Ok(Place {
            base: self.value(base)?,
            offset: *offset,
        })
    }
}
