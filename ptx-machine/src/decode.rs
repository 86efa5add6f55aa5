//! Decodes statements to instructions on numbered registers. Each family of instructions has its
//! own file.
//!
//! [`SUPPORTED`](crate::SUPPORTED) decides which opcodes are accepted, so a family need not check
//! parts that its forms lack. An instruction that multiplies and adds becomes two.

use std::collections::HashMap;

mod carry;
mod control;
mod copy;
mod float;
mod integer;
mod matrix;
mod memory;
mod moves;
mod warp;

use crate::error::{Problem, PtxError};
use crate::memory::Variables;
use crate::module::{Entry, Operand, Statement};
use crate::program::{Instruction, Op, Program, Reg, Special, Width};
use crate::supported::{self, Family};

/// Decodes an entry point.
pub(crate) fn program(entry: &Entry) -> Result<Program, PtxError> {
    let mut decoder = Decoder::new(entry);
    let mut starts = Vec::new();
    let mut instructions = Vec::new();
    let mut origins = Vec::new();
    for (number, statement) in entry.statements.iter().enumerate() {
        let fail = |problem| PtxError::new(statement.line, &statement.text, problem);
        starts.push(instructions.len());
        let ops = decoder.decode(statement).map_err(fail)?;
        let guard = statement.guard.as_ref();
        let guard = guard.map(|(name, negated)| Ok((decoder.register(name)?, !negated)));
        let guard = guard.transpose().map_err(fail)?;
        for op in ops {
            instructions.push(Instruction::new(guard, op));
            origins.push(number);
        }
    }
    // The end of the body also ends the kernel, and may have a label.
    starts.push(instructions.len());
    origins.push(entry.statements.len());
    instructions.push(Instruction::new(None, Op::Exit));
    for instruction in &mut instructions {
        if let Op::Branch { target } = &mut instruction.op {
            *target = starts[*target];
        }
    }
    let statements = entry.statements.iter();
    let mut statements: Vec<_> = statements.map(|s| (s.line, s.text.clone())).collect();
    statements.push((statements.last().map_or(0, |last| last.0), "}".to_owned()));
    let Decoder {
        count,
        constants,
        specials,
        variables,
        ..
    } = decoder;
    Ok(Program {
        name: entry.name().to_owned(),
        parameters: entry.parameters().to_vec(),
        threads: entry.threads(),
        dynamic_start: entry.dynamic_start(),
        instructions,
        register_count: count,
        constants: constants
            .into_iter()
            .map(|(value, reg)| (reg, value))
            .collect(),
        specials: specials.into_values().collect(),
        variables,
        origins,
        statements,
    })
}

struct Decoder<'a> {
    entry: &'a Entry,
    parameters: HashMap<&'a str, usize>,
    families: HashMap<&'a str, Option<Family>>,
    names: HashMap<String, Reg>,
    constants: HashMap<u64, Reg>,
    specials: HashMap<&'static str, (Reg, Special)>,
    variables: Variables,
    /// The addresses of the variables in use.
    addresses: HashMap<String, u64>,
    /// The register of the carry flag, if it is used.
    flag: Option<Reg>,
    count: usize,
}

/// The supported special registers.
const SPECIALS: [(&str, Special); 5] = [
    ("%tid.x", Special::ThreadInBlock),
    ("%ntid.x", Special::ThreadsPerBlock),
    ("%ctaid.x", Special::Block),
    ("%nctaid.x", Special::Blocks),
    ("%laneid", Special::Lane),
];

impl<'a> Decoder<'a> {
    fn new(entry: &'a Entry) -> Self {
        let parameters = entry.parameters().iter();
        Self {
            entry,
            parameters: parameters.map(|p| (p.name.as_str(), p.offset)).collect(),
            families: HashMap::new(),
            names: HashMap::new(),
            constants: HashMap::new(),
            specials: HashMap::new(),
            variables: Variables::default(),
            addresses: HashMap::new(),
            flag: None,
            count: 0,
        }
    }

    fn decode(&mut self, statement: &'a Statement) -> Result<Vec<Op>, Problem> {
        let opcode = statement.opcode.as_str();
        let family = *self
            .families
            .entry(opcode)
            .or_insert_with(|| supported::family(opcode));
        let parts: Vec<_> = opcode.split('.').collect();
        let operands = &statement.operands;
        match family.ok_or(Problem::Instruction)? {
            Family::Integer => self.integer(&parts, operands),
            Family::Carry => self.carried(&parts, operands),
            Family::Float => self.float(&parts, operands),
            Family::Move => self.moves(&parts, operands),
            Family::Memory => self.memory(&parts, operands),
            Family::Warp => self.warp(&parts, operands),
            Family::Control => self.control(&parts, operands),
            Family::Matrix => self.matrix(&parts, operands),
            Family::Copy => self.copy(&parts, operands),
        }
    }

    /// A result and `N - 1` values.
    fn operands<const N: usize>(&mut self, operands: &[Operand]) -> Result<[Reg; N], Problem> {
        let [to, from @ ..] = operands else {
            return Err(Problem::Operands);
        };
        let mut regs = vec![self.result(to)?];
        for operand in from {
            regs.push(self.value_of(operand)?);
        }
        regs.try_into().map_err(|_| Problem::Operands)
    }

    /// The register that an instruction writes.
    fn result(&mut self, operand: &Operand) -> Result<Reg, Problem> {
        self.register(name_of(operand)?)
    }

    fn value_of(&mut self, operand: &Operand) -> Result<Reg, Problem> {
        self.value(name_of(operand)?)
    }

    /// The register with the value of an operand: a register, a number, a special register, or the
    /// address of a variable in shared or global memory.
    fn value(&mut self, name: &str) -> Result<Reg, Problem> {
        if let Some(&(known, special)) = SPECIALS.iter().find(|(known, _)| *known == name) {
            if let Some(&(reg, _)) = self.specials.get(known) {
                return Ok(reg);
            }
            let reg = self.fresh();
            self.specials.insert(known, (reg, special));
            return Ok(reg);
        }
        if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let value = number(name).ok_or(Problem::Number)?;
            return Ok(self.constant(value));
        }
        // A register may hide a variable of the module.
        self.register(name).or_else(|unknown| {
            let shared = self.entry.shared_offset(name).map(|offset| offset as u64);
            let address = shared.or_else(|| self.variable(name)).ok_or(unknown)?;
            Ok(self.constant(address))
        })
    }

    /// The address of a variable of the module in global memory.
    fn variable(&mut self, name: &str) -> Option<u64> {
        if let Some(address) = self.addresses.get(name) {
            return Some(*address);
        }
        let variable = self.entry.variable(name)?;
        let read_only = variable.is_initialised;
        let address = self.variables.push(&variable.bytes, read_only);
        self.addresses.insert(name.to_owned(), address);
        Some(address)
    }

    fn register(&mut self, name: &str) -> Result<Reg, Problem> {
        if let Some(reg) = self.names.get(name) {
            return Ok(*reg);
        }
        self.width_of(name)?;
        let reg = self.fresh();
        self.names.insert(name.to_owned(), reg);
        Ok(reg)
    }

    /// The declared width of a register.
    fn width_of(&self, name: &str) -> Result<Width, Problem> {
        let bits = self.entry.registers.width(name);
        let unknown = || Problem::UnknownName(name.to_owned());
        bits.map(Width).ok_or_else(unknown)
    }

    fn constant(&mut self, value: u64) -> Reg {
        if let Some(reg) = self.constants.get(&value) {
            return *reg;
        }
        let reg = self.fresh();
        self.constants.insert(value, reg);
        reg
    }

    /// Truncates a negative number to the width of an unsigned operand. Registers need no
    /// truncation.
    fn narrowed(&mut self, reg: Reg, width: Width) -> Reg {
        let is_it = |constant: &(&u64, &Reg)| *constant.1 == reg && *constant.0 > width.mask();
        match self.constants.iter().find(is_it).map(|(value, _)| *value) {
            Some(value) => self.constant(value & width.mask()),
            None => reg,
        }
    }

    fn fresh(&mut self) -> Reg {
        self.count += 1;
        self.count - 1
    }

    /// Extends a result of type `kind` to the whole width of its register, with copies of the sign.
    /// Unsigned results are already zero-extended.
    fn widen(&self, ops: &mut Vec<Op>, name: &str, to: Reg, kind: &str) -> Result<(), Problem> {
        let (bits, width) = (width(kind)?.0, self.width_of(name)?);
        if kind.starts_with('s') && width.0 > bits {
            ops.push(Op::Convert {
                to,
                from: to,
                bits,
                signed: true,
                width,
            });
        }
        Ok(())
    }
}

fn name_of(operand: &Operand) -> Result<&str, Problem> {
    match operand {
        Operand::Name(name) => Ok(name),
        _ => Err(Problem::Operands),
    }
}

/// A decimal or hexadecimal integer, or a double as `0d` and its bits.
fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let magnitude = match digits.get(..2) {
        Some("0d" | "0D") if digits.len() == 18 && !negative => {
            u64::from_str_radix(&digits[2..], 16).ok()?
        }
        Some("0x" | "0X") => {
            let digits = digits[2..].strip_suffix('U').unwrap_or(&digits[2..]);
            u64::from_str_radix(digits, 16).ok()?
        }
        // Refuse octal and binary numbers, which would be read as decimal ones.
        Some(start) if start.starts_with('0') && start != "0U" => return None,
        _ => digits.strip_suffix('U').unwrap_or(digits).parse().ok()?,
    };
    Some(if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

fn width(kind: &str) -> Result<Width, Problem> {
    match kind {
        "pred" => Ok(Width(1)),
        _ => crate::module::type_bytes(kind)
            .map(|bytes| Width(8 * bytes as u32))
            .ok_or(Problem::Instruction),
    }
}

#[cfg(test)]
mod tests;
