//! Parses instructions.

use crate::error::{Problem, PtxError};

/// One instruction, such as `@!%p1 op a, {b, c}, [d+4];`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) text: String,
    /// The predicate of the guard, and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Operand {
    /// A register, number, label or symbol.
    Name(String),
    /// `{a, b}`
    Vector(Vec<String>),
    /// `[base+offset]`
    Address(String, i64),
    /// `%r1|%p1`
    Pair(String, String),
}

/// The maximum number of operands of an instruction, also within a vector: the sums of a matrix
/// product.
const MAX_OPERANDS: usize = 128;

impl Statement {
    pub(super) fn parse(line: u32, text: String) -> Result<Self, PtxError> {
        let mut rest = text.as_str();
        let mut guard = None;
        if let Some(guarded) = rest.strip_prefix('@') {
            let (predicate, instruction) = guarded.split_once(' ').unwrap_or((guarded, ""));
            let name = predicate.strip_prefix('!');
            guard = Some((name.unwrap_or(predicate).to_owned(), name.is_some()));
            rest = instruction;
        }
        let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let operands = operands_of(operands).map_err(|e| PtxError::new(line, &text, e))?;
        Ok(Self {
            line,
            guard,
            opcode: opcode.to_owned(),
            operands,
            text,
        })
    }
}

pub(super) fn operands_of(text: &str) -> Result<Vec<Operand>, Problem> {
    let mut operands = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let closing = match rest.as_bytes()[0] {
            b'{' => Some('}'),
            b'[' => Some(']'),
            _ => None,
        };
        let (operand, after) = if let Some(closing) = closing {
            let (inside, after) = rest[1..].split_once(closing).ok_or(Problem::Operands)?;
            let operand = if closing == '}' {
                let parts = inside.split(',').take(MAX_OPERANDS + 1);
                Operand::Vector(parts.map(|part| part.trim().to_owned()).collect())
            } else {
                address(inside)?
            };
            let after = after.trim_start();
            let next = after.strip_prefix(',');
            if next.is_none() && !after.is_empty() {
                return Err(Problem::Operands);
            }
            (operand, next.unwrap_or(""))
        } else {
            let (name, after) = rest.split_once(',').unwrap_or((rest, ""));
            let operand = match name.split_once('|') {
                Some((a, b)) => Operand::Pair(a.trim().to_owned(), b.trim().to_owned()),
                None => Operand::Name(name.trim().to_owned()),
            };
            (operand, after)
        };
        operands.push(operand);
        if operands.len() > MAX_OPERANDS {
            return Err(Problem::Operands);
        }
        rest = after.trim_start();
    }
    Ok(operands)
}

fn address(inside: &str) -> Result<Operand, Problem> {
    let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
    let offset = offset.trim().parse().map_err(|_| Problem::Number)?;
    Ok(Operand::Address(base.trim().to_owned(), offset))
}
