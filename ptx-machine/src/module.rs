//! Parses the text of a PTX module to its entry points, statement by statement (PTX ISA 7.0,
//! chapters 4 and 5).
//!
//! Functions are skipped, as are variables in constant memory, and global ones whose initial values
//! are not numbers. An entry point that uses them cannot be decoded.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

mod declaration;
mod pieces;
mod statement;

pub(crate) use declaration::type_bytes;
pub(crate) use statement::{Operand, Statement};

use crate::decode;
use crate::error::{Problem, PtxError};
use crate::program::Program;
use declaration::{GlobalVariable, Registers};
use pieces::Piece;

/// The entry points of a PTX module.
#[derive(Debug)]
pub struct Module {
    entries: Vec<Entry>,
}

/// An entry point, not yet decoded.
#[derive(Debug, Default)]
pub struct Entry {
    name: String,
    parameters: Vec<Parameter>,
    threads: Option<Threads>,
    shared_bytes: usize,
    /// The line of the header.
    line: u32,
    /// The first problem in the body.
    problem: Option<PtxError>,
    pub(crate) statements: Vec<Statement>,
    /// For each label the index of the statement after it.
    pub(crate) labels: HashMap<String, usize>,
    /// The offset of each variable in shared memory.
    shared: HashMap<String, usize>,
    pub(crate) registers: Registers,
    /// Names of the variables for dynamic shared memory, common to the whole module.
    dynamic: Arc<HashSet<String>>,
    /// Global variables by name, common to the whole module.
    variables: Arc<HashMap<String, GlobalVariable>>,
}

/// A parameter of an entry point.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameter {
    /// Its name in the PTX.
    pub name: String,
    /// Its type, such as `u64`, or `b8[16]` for an array.
    pub kind: String,
    /// The offset in the parameter block, in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub bytes: usize,
}

/// The number of threads that a block may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Threads {
    /// `.maxntid`: the maximum.
    AtMost(u32),
    /// `.reqntid`: the exact number.
    Exactly(u32),
}

/// Limits for the memory and time of the parser.
const MAX_TEXT: usize = 16 << 20;
const MAX_STATEMENTS: usize = 1 << 20;
const MAX_ENTRIES: usize = 4096;
const MAX_DEPTH: usize = 64;

impl Module {
    /// Parses a module. Unsupported statements in the body of an entry point are only reported by
    /// [`Entry::decode`], so that other entry points can be used.
    ///
    /// # Errors
    ///
    /// The line at which the text is not a PTX module: unmatched braces, an unreadable header, a
    /// duplicate name, or a premature end. Also if it has more than 16 MiB, a million statements or
    /// 4,096 entry points.
    pub fn parse(text: &str) -> Result<Self, PtxError> {
        if text.len() > MAX_TEXT {
            return Err(PtxError::new(0, "", Problem::TooLarge("text")));
        }
        let mut parser = Parser::default();
        for piece in pieces::pieces(text)? {
            parser.take(piece)?;
        }
        parser.finish()
    }

    /// The entry points, in the order of the text.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry point of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl Entry {
    /// The name of the entry point.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters, in order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The threads that a block may have, if the text specifies them.
    #[must_use]
    pub fn threads(&self) -> Option<Threads> {
        self.threads
    }

    /// Bytes of shared memory that the entry point declares.
    #[must_use]
    pub fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Whether the entry point uses dynamic shared memory, whose size the launch specifies.
    #[must_use]
    pub fn uses_dynamic_shared(&self) -> bool {
        let mut operands = self.statements.iter().flat_map(|s| &s.operands);
        operands.any(|operand| match operand {
            Operand::Name(name) | Operand::Address(name, _) => self.dynamic.contains(name),
            _ => false,
        })
    }

    /// Decodes the entry point, so that it can run.
    ///
    /// # Errors
    ///
    /// The first line that is not supported.
    pub fn decode(&self) -> Result<Program, PtxError> {
        match &self.problem {
            Some(problem) => Err(problem.clone()),
            None => decode::program(self),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(threads) => write!(f, "at most {threads} threads"),
            Self::Exactly(threads) => write!(f, "exactly {threads} threads"),
        }
    }
}

/// The state of parsing.
#[derive(Default)]
struct Parser {
    entries: Vec<Entry>,
    /// Names of `.extern .shared` variables.
    dynamic: HashSet<String>,
    variables: HashMap<String, GlobalVariable>,
    variable_bytes: usize,
    /// The entry point whose body is being read. `None` in the body of a function.
    current: Option<Entry>,
    depth: usize,
    statements: usize,
}

impl Parser {
    fn take(&mut self, piece: Piece) -> Result<(), PtxError> {
        match piece {
            Piece::Open { line, header } => self.open(line, &header),
            Piece::Close { line } => self.close(line),
            Piece::Statement { line, text } if self.depth == 0 => self.outside(line, &text),
            Piece::Label { line, name } if self.depth == 0 => {
                Err(PtxError::new(line, &name, Problem::Unexpected))
            }
            inside => {
                self.statements += 1;
                if self.statements > MAX_STATEMENTS {
                    let too_large = Problem::TooLarge("statements");
                    return Err(PtxError::new(inside.line(), "", too_large));
                }
                if let Some(entry) = self.current.as_mut().filter(|e| e.problem.is_none())
                    && let Err(problem) = entry.take(inside)
                {
                    entry.problem = Some(problem);
                }
                Ok(())
            }
        }
    }

    fn open(&mut self, line: u32, header: &str) -> Result<(), PtxError> {
        let unexpected = || PtxError::new(line, header, Problem::Unexpected);
        match (self.depth, header.split_once(".entry ")) {
            (0, Some((_, entry))) => {
                let entry = declaration::header(line, entry)?;
                if self.entries.iter().any(|other| other.name == entry.name) {
                    let twice = Problem::DuplicateName(entry.name);
                    return Err(PtxError::new(line, header, twice));
                }
                if self.entries.len() == MAX_ENTRIES {
                    let too_many = Problem::TooLarge("entry points");
                    return Err(PtxError::new(line, header, too_many));
                }
                self.current = Some(entry);
            }
            (0, None) if header.contains(".func") => {}
            (0, None) => return Err(unexpected()),
            _ if !header.is_empty() => return Err(unexpected()),
            _ => {}
        }
        if self.depth == MAX_DEPTH {
            let too_deep = Problem::TooLarge("blocks in each other");
            return Err(PtxError::new(line, "{", too_deep));
        }
        self.depth += 1;
        if let Some(entry) = &mut self.current {
            entry.registers.open();
        }
        Ok(())
    }

    fn close(&mut self, line: u32) -> Result<(), PtxError> {
        let unexpected = || PtxError::new(line, "}", Problem::Unexpected);
        self.depth = self.depth.checked_sub(1).ok_or_else(unexpected)?;
        if let Some(entry) = &mut self.current {
            entry.registers.close();
        }
        if self.depth == 0 {
            self.entries.extend(self.current.take());
        }
        Ok(())
    }

    /// Reads a statement outside of bodies: dynamic shared memory and global variables matter, and
    /// others are skipped.
    fn outside(&mut self, line: u32, text: &str) -> Result<(), PtxError> {
        if text.starts_with(".extern .shared ") {
            self.dynamic.insert(declaration::variable(line, text)?.name);
            Ok(())
        } else if let Some((name, variable)) = declaration::global(line, text)? {
            self.variable_bytes += variable.bytes.len();
            if self.variable_bytes > declaration::MAX_VARIABLE_BYTES {
                let too_large = Problem::TooLarge("bytes of variables");
                return Err(PtxError::new(line, text, too_large));
            }
            self.variables.insert(name, variable);
            Ok(())
        } else if text.starts_with('.') {
            Ok(())
        } else {
            Err(PtxError::new(line, text, Problem::Unexpected))
        }
    }

    fn finish(mut self) -> Result<Module, PtxError> {
        if self.depth > 0 {
            let entry = self.current.unwrap_or_default();
            return Err(PtxError::new(entry.line, &entry.name, Problem::EndOfText));
        }
        let dynamic = Arc::new(self.dynamic);
        let variables = Arc::new(self.variables);
        for entry in &mut self.entries {
            entry.dynamic = Arc::clone(&dynamic);
            entry.variables = Arc::clone(&variables);
        }
        Ok(Module {
            entries: self.entries,
        })
    }
}

impl Entry {
    /// The offset of a variable in shared memory. All dynamic ones are at the same place.
    pub(crate) fn shared_offset(&self, name: &str) -> Option<usize> {
        let dynamic = || self.dynamic.contains(name).then(|| self.dynamic_start());
        self.shared.get(name).copied().or_else(dynamic)
    }

    /// A variable of the module in global memory.
    pub(crate) fn variable(&self, name: &str) -> Option<&GlobalVariable> {
        self.variables.get(name)
    }

    /// The offset of dynamic shared memory, behind the static variables.
    pub(crate) fn dynamic_start(&self) -> usize {
        self.shared_bytes.next_multiple_of(16)
    }

    /// Adds a piece of the body.
    fn take(&mut self, piece: Piece) -> Result<(), PtxError> {
        match piece {
            Piece::Label { line, name } => {
                let next = self.statements.len();
                match self.labels.insert(name.clone(), next) {
                    None => Ok(()),
                    Some(_) => {
                        let twice = Problem::DuplicateName(name.clone());
                        Err(PtxError::new(line, &name, twice))
                    }
                }
            }
            Piece::Statement { line, text } if text.starts_with('.') => self.directive(line, &text),
            Piece::Statement { line, text } => {
                self.statements.push(Statement::parse(line, text)?);
                Ok(())
            }
            Piece::Open { .. } | Piece::Close { .. } => Ok(()),
        }
    }

    fn directive(&mut self, line: u32, text: &str) -> Result<(), PtxError> {
        if let Some(registers) = text.strip_prefix(".reg ") {
            return self.registers.declare(line, registers);
        }
        if text.starts_with(".shared ") {
            let variable = declaration::variable(line, text)?;
            let offset = self.shared_bytes.next_multiple_of(variable.align);
            self.shared_bytes = offset
                .checked_add(variable.bytes)
                .filter(|&bytes| bytes <= declaration::MAX_BYTES)
                .ok_or_else(|| PtxError::new(line, text, Problem::TooLarge("shared memory")))?;
            return match self.shared.insert(variable.name.clone(), offset) {
                None => Ok(()),
                Some(_) => {
                    let twice = Problem::DuplicateName(variable.name);
                    Err(PtxError::new(line, text, twice))
                }
            };
        }
        match text.split(' ').next() {
            Some(".pragma") => Ok(()),
            _ => Err(PtxError::new(line, text, Problem::Directive)),
        }
    }
}

#[cfg(test)]
mod tests;
