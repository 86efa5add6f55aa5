//! Parses headers, variables and registers.

use std::collections::{HashMap, HashSet};

use super::{Entry, Parameter, Threads};
use crate::error::{Problem, PtxError};

/// The maximum size of shared memory, and of all parameters together, in bytes: more than on any
/// chip.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The maximum size of all variables of a module together, in bytes.
pub(super) const MAX_VARIABLE_BYTES: usize = 64 << 20;

/// A variable, such as `.shared .align 16 .b8 name[128]` or `.param .u64 name`.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) bytes: usize,
    pub(super) align: usize,
}

/// A variable of a module in global memory.
#[derive(Debug)]
pub(crate) struct GlobalVariable {
    /// The initial value.
    pub(crate) bytes: Vec<u8>,
    /// Whether the module specifies the initial value. It is zero otherwise.
    pub(crate) is_initialised: bool,
}

/// The registers that an entry point declares.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    /// Width in bits of registers that are declared by their full names.
    single: HashMap<String, u32>,
    /// For `%r<121>`: the name without its number, the count, and the width in bits.
    ranges: HashMap<String, (u32, u32)>,
    /// Names declared in the open blocks.
    scopes: Vec<HashSet<String>>,
}

/// Parses `name( .param .u64 a, .param .align 8 .b8 b[16] ) .maxntid 128, 1, 1`.
pub(super) fn header(line: u32, text: &str) -> Result<Entry, PtxError> {
    let fail = |problem| PtxError::new(line, text, problem);
    let name_end = text.find(['(', ' ']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let rest = rest.trim_start();
    let (params, directives) = match rest.strip_prefix('(') {
        Some(rest) => rest
            .split_once(')')
            .ok_or_else(|| fail(Problem::Declaration))?,
        None => ("", rest),
    };
    let mut entry = Entry {
        name: name.to_owned(),
        line,
        ..Entry::default()
    };
    if name.is_empty() {
        return Err(fail(Problem::Declaration));
    }
    let mut names = HashSet::new();
    let mut end = 0;
    for param in params.split(',').filter(|p| !p.trim().is_empty()) {
        let variable = variable(line, param)?;
        if !names.insert(variable.name.clone()) {
            return Err(fail(Problem::DuplicateName(variable.name)));
        }
        let offset = usize::next_multiple_of(end, variable.align);
        end = offset + variable.bytes;
        if end > MAX_BYTES {
            return Err(fail(Problem::TooLarge("parameters")));
        }
        entry.parameters.push(Parameter {
            name: variable.name,
            kind: variable.kind,
            offset,
            bytes: variable.bytes,
        });
    }
    entry.threads = threads(directives).map_err(fail)?;
    Ok(entry)
}

/// Parses `.maxntid 128, 1, 1` and `.reqntid 128, 1, 1`.
fn threads(directives: &str) -> Result<Option<Threads>, Problem> {
    let mut threads = None;
    for directive in directives.split('.').filter(|d| !d.trim().is_empty()) {
        let (word, values) = directive.split_once(' ').unwrap_or((directive, ""));
        let parse = |value: &str| value.trim().parse::<u32>().map_err(|_| Problem::Number);
        let values = || values.split(',').map(parse).collect::<Result<Vec<_>, _>>();
        match word {
            "maxntid" => {
                let product = values()?.into_iter().fold(1, u32::saturating_mul);
                threads = threads.or(Some(Threads::AtMost(product)));
            }
            "reqntid" => match values()?[..] {
                [x] | [x, 1] | [x, 1, 1] => threads = Some(Threads::Exactly(x)),
                // Only one-dimensional blocks are supported.
                _ => return Err(Problem::Directive),
            },
            "minnctapersm" | "maxnreg" | "pragma" => {}
            _ => return Err(Problem::Directive),
        }
    }
    Ok(threads)
}

/// Parses the declaration of one variable.
pub(super) fn variable(line: u32, declaration: &str) -> Result<Variable, PtxError> {
    let fail = || PtxError::new(line, declaration.trim(), Problem::Declaration);
    let words: Vec<_> = declaration.split_whitespace().collect();
    let types = |word: &&str| word.strip_prefix('.').and_then(type_bytes).is_some();
    let kind = words.iter().copied().find(types).ok_or_else(fail)?;
    let kind = kind.trim_start_matches('.');
    let size = type_bytes(kind).ok_or_else(fail)?;
    // `.ptr .global .align 16` is the alignment of the target of a pointer, not of its parameter.
    let own = words.iter().position(|w| *w == ".ptr");
    let own = &words[..own.unwrap_or(words.len())];
    let align = match own.iter().position(|w| *w == ".align") {
        None => size,
        Some(at) => own
            .get(at + 1)
            .and_then(|align| align.parse().ok())
            .filter(|align: &usize| align.is_power_of_two() && *align <= 4096)
            .ok_or_else(fail)?,
    };
    let name = words.last().ok_or_else(fail)?;
    let (name, array) = match name.split_once('[') {
        None => (*name, None),
        Some((name, array)) => (name, Some(array.strip_suffix(']').ok_or_else(fail)?)),
    };
    let count = match array {
        None => 1,
        Some("") => 0,
        Some(count) => count.parse().map_err(|_| fail())?,
    };
    if name.is_empty() || name.starts_with('.') {
        return Err(fail());
    }
    let bytes = usize::checked_mul(size, count).filter(|&bytes| bytes <= MAX_VARIABLE_BYTES);
    let too_large = || PtxError::new(line, declaration.trim(), Problem::TooLarge("bytes"));
    Ok(Variable {
        name: name.to_owned(),
        kind: match array {
            None => kind.to_owned(),
            Some(count) => format!("{kind}[{count}]"),
        },
        bytes: bytes.ok_or_else(too_large)?,
        align,
    })
}

/// Parses `.global .align 4 .b8 name[8] = {1, 2, 3}`, `.global .u32 name = 7` and
/// `.global .u32 name`.
///
/// `None` for other statements, for initial values that are not numbers, and for variables of other
/// modules. Missing values are 0.
pub(super) fn global(line: u32, text: &str) -> Result<Option<(String, GlobalVariable)>, PtxError> {
    let has = |word| text.split(' ').any(|other| other == word);
    if !has(".global") || has(".extern") {
        return Ok(None);
    }
    let (left, right) = match text.split_once('=') {
        Some((left, right)) => (left, Some(right)),
        None => (text, None),
    };
    let variable = match variable(line, left) {
        Err(error) if right.is_none() && error.problem == Problem::Declaration => return Ok(None),
        variable => variable?,
    };
    let element = variable.kind.split('[').next().and_then(type_bytes);
    let element = element.unwrap_or(1);
    let values = right.map(|right| right.trim().trim_start_matches('{').trim_end_matches('}'));
    let mut bytes = Vec::new();
    for value in values.into_iter().flat_map(|values| values.split(',')) {
        let Ok(value) = value.trim().parse::<i128>() else {
            return Ok(None);
        };
        bytes.extend_from_slice(&value.to_le_bytes()[..element]);
    }
    if bytes.len() > variable.bytes {
        return Err(PtxError::new(line, left.trim(), Problem::Declaration));
    }
    bytes.resize(variable.bytes, 0);
    let is_initialised = right.is_some();
    Ok(Some((
        variable.name,
        GlobalVariable {
            bytes,
            is_initialised,
        },
    )))
}

impl Registers {
    /// The width of a register in bits; 1 for predicates.
    pub(crate) fn width(&self, name: &str) -> Option<u32> {
        if let Some(bits) = self.single.get(name) {
            return Some(*bits);
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let (count, bits) = self.ranges.get(prefix)?;
        let number = name[prefix.len()..].parse::<u32>().ok()?;
        (number < *count).then_some(*bits)
    }

    /// Begins a block.
    pub(super) fn open(&mut self) {
        self.scopes.push(HashSet::new());
    }

    /// Ends the innermost block. Adjacent blocks may reuse a name for registers of the same width.
    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// Parses `.b32 %r<121>, %extra`.
    pub(super) fn declare(&mut self, line: u32, declaration: &str) -> Result<(), PtxError> {
        let fail = |problem| PtxError::new(line, declaration, problem);
        let (kind, names) = declaration
            .split_once(' ')
            .ok_or_else(|| fail(Problem::Declaration))?;
        let bits = match kind {
            ".pred" => 1,
            _ => kind
                .strip_prefix('.')
                .and_then(type_bytes)
                .map(|bytes| 8 * bytes as u32)
                .ok_or_else(|| fail(Problem::Declaration))?,
        };
        for name in names.split(',').map(str::trim) {
            let (name, before) = match name.split_once('<') {
                Some((prefix, count)) => {
                    let count = count.strip_suffix('>').and_then(|count| count.parse().ok());
                    let count = count.ok_or_else(|| fail(Problem::Declaration))?;
                    let before = self.ranges.insert(prefix.to_owned(), (count, bits));
                    (prefix, before.map(|(_, bits)| bits))
                }
                None => (name, self.single.insert(name.to_owned(), bits)),
            };
            let is_open = self.scopes.iter().any(|scope| scope.contains(name));
            if name.is_empty() {
                return Err(fail(Problem::Declaration));
            }
            if is_open || before.is_some_and(|before| before != bits) {
                return Err(fail(Problem::DuplicateName(name.to_owned())));
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name.to_owned());
            }
        }
        Ok(())
    }
}

/// The size in bytes of a type such as `u32` or `f64`.
pub(crate) fn type_bytes(kind: &str) -> Option<usize> {
    let bits = kind.strip_prefix(['b', 'u', 's', 'f'])?;
    match bits {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        _ => None,
    }
}
