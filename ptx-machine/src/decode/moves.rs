//! Moves between registers, and conversions.

use super::{Decoder, name_of, width};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Op, Reg, Width};

impl Decoder<'_> {
    pub(super) fn moves(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let kind = parts[parts.len() - 1];
        match (parts[0], operands) {
            ("mov", [to, Operand::Vector(halves)]) if kind == "b64" => {
                let [low, high] = halves.as_slice() else {
                    return Err(Problem::Operands);
                };
                Ok(vec![Op::Pack {
                    to: self.result(to)?,
                    low: self.value(low)?,
                    high: self.value(high)?,
                }])
            }
            ("mov", [Operand::Vector(halves), from]) if kind == "b64" => {
                let [low, high] = halves.as_slice() else {
                    return Err(Problem::Operands);
                };
                Ok(vec![Op::Unpack {
                    from: self.value_of(from)?,
                    low: self.half(low)?,
                    high: self.half(high)?,
                }])
            }
            ("mov" | "cvta", [to, from]) => {
                let width = width(kind)?;
                Ok(vec![Op::Convert {
                    to: self.result(to)?,
                    from: self.value_of(from)?,
                    bits: width.0,
                    signed: false,
                    width,
                }])
            }
            ("cvt", [to, from]) => self.convert(parts, to, from),
            _ => Err(Problem::Operands),
        }
    }

    fn convert(
        &mut self,
        parts: &[&str],
        to: &Operand,
        from: &Operand,
    ) -> Result<Vec<Op>, Problem> {
        let (name, to, from) = (name_of(to)?, self.result(to)?, self.value_of(from)?);
        let source = parts[parts.len() - 1];
        let (bits, signed) = (width(source)?.0, source.starts_with('s'));
        if let ["cvt", "rn", "f64", _] = parts {
            // Extend a 32-bit source first, so that bits above it do no harm.
            let whole = self.fresh();
            let extend = Op::Convert {
                to: whole,
                from,
                bits,
                signed,
                width: Width(64),
            };
            let from = whole;
            return Ok(vec![extend, Op::ToDouble { to, from, signed }]);
        }
        let mut ops = vec![Op::Convert {
            to,
            from,
            bits,
            signed,
            width: width(parts[1])?,
        }];
        self.widen(&mut ops, name, to, parts[1])?;
        Ok(ops)
    }

    /// A half that an instruction writes, or `_`.
    fn half(&mut self, name: &str) -> Result<Option<Reg>, Problem> {
        match name {
            "_" => Ok(None),
            name => self.register(name).map(Some),
        }
    }
}
