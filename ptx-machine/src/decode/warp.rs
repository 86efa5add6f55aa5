//! Instructions that involve several lanes of a warp.

use super::{Decoder, name_of};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Op, Shuffle};

impl Decoder<'_> {
    pub(super) fn warp(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let op = match (parts[0], operands) {
            ("bar", [members]) => Op::WarpBarrier {
                members: self.value_of(members)?,
            },
            ("shfl", [to, from, lane, clamp, members]) => {
                let (to, valid) = match to {
                    Operand::Pair(to, valid) => (to.as_str(), Some(self.register(valid)?)),
                    to => (name_of(to)?, None),
                };
                Op::Shuffle {
                    mode: mode(parts[2])?,
                    to: self.register(to)?,
                    valid,
                    from: self.value_of(from)?,
                    lane: self.value_of(lane)?,
                    clamp: self.value_of(clamp)?,
                    members: self.value_of(members)?,
                }
            }
            _ => return Err(Problem::Operands),
        };
        Ok(vec![op])
    }
}

fn mode(part: &str) -> Result<Shuffle, Problem> {
    match part {
        "idx" => Ok(Shuffle::Index),
        "up" => Ok(Shuffle::Up),
        "down" => Ok(Shuffle::Down),
        "bfly" => Ok(Shuffle::Butterfly),
        _ => Err(Problem::Instruction),
    }
}
