//! Loads, stores and prefetches.

use super::{Decoder, name_of, width};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Access, Op, Space};

impl Decoder<'_> {
    pub(super) fn memory(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        if parts[0] == "prefetch" {
            return self.prefetch(operands);
        }
        let kind = parts[parts.len() - 1];
        let count = match parts[parts.len() - 2] {
            "v2" => 2,
            "v4" => 4,
            _ => 1,
        };
        let [first, second] = operands else {
            return Err(Problem::Operands);
        };
        if parts[1] == "param" {
            return self.parameter(kind, first, second);
        }
        let is_load = parts[0] == "ld";
        let (value, address) = if is_load {
            (first, second)
        } else {
            (second, first)
        };
        let Operand::Address(base, offset) = address else {
            return Err(Problem::Operands);
        };
        let names = match value {
            Operand::Vector(names) if count > 1 && names.len() == count => names.as_slice(),
            Operand::Name(name) if count == 1 => core::slice::from_ref(name),
            _ => return Err(Problem::Operands),
        };
        let mut values = Vec::new();
        for name in names {
            values.push(if is_load {
                self.register(name)?
            } else {
                self.value(name)?
            });
        }
        let access = Access {
            space: if parts.contains(&"shared") {
                Space::Shared
            } else {
                Space::Global
            },
            bytes: width(kind)?.0 as usize / 8,
            values: values.clone(),
            base: self.value(base)?,
            offset: *offset,
        };
        if !is_load {
            return Ok(vec![Op::Store(access)]);
        }
        let mut ops = vec![Op::Load(access)];
        for (name, to) in names.iter().zip(values) {
            self.widen(&mut ops, name, to, kind)?;
        }
        Ok(ops)
    }

    fn prefetch(&mut self, operands: &[Operand]) -> Result<Vec<Op>, Problem> {
        let [Operand::Address(base, offset)] = operands else {
            return Err(Problem::Operands);
        };
        Ok(vec![Op::Prefetch {
            base: self.value(base)?,
            offset: *offset,
        }])
    }

    fn parameter(&mut self, kind: &str, to: &Operand, from: &Operand) -> Result<Vec<Op>, Problem> {
        let Operand::Address(name, offset) = from else {
            return Err(Problem::Operands);
        };
        let unknown = || Problem::UnknownParameter(name.clone());
        let start = *self.parameters.get(name.as_str()).ok_or_else(unknown)?;
        let to_name = name_of(to)?;
        let to = self.result(to)?;
        let mut ops = vec![Op::Parameter {
            to,
            bytes: width(kind)?.0 as usize / 8,
            offset: (start as u64).wrapping_add_signed(*offset),
        }];
        self.widen(&mut ops, to_name, to, kind)?;
        Ok(ops)
    }
}
