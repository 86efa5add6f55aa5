//! From the text of a PTX module to its kernels, statement by statement.
//!
//! Only the PTX that NVRTC writes for our kernels is understood; anything else is an error that quotes
//! the line (PTX ISA 7.0, chapters 4 and 5).

use std::collections::HashMap;

/// A kernel in text form.
#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// Offset and size in bytes of each parameter, in order.
    pub(crate) params: Vec<Param>,
    pub(crate) statements: Vec<Statement>,
    /// Index of the statement that a label stands before.
    pub(crate) labels: HashMap<String, usize>,
    /// Bytes of statically allocated shared memory.
    pub(crate) shared_bytes: usize,
    /// Offset in shared memory of each of its variables.
    pub(crate) shared: HashMap<String, usize>,
    /// `.maxntid` or `.reqntid`: the most threads that a block may have.
    pub(crate) max_threads: Option<u32>,
}

pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// One instruction: `@!%p1 op a, {b, c}, [d+4];`
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) text: String,
    /// The guard's predicate, and whether it is negated.
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

/// All kernels of a module.
pub(crate) fn module(text: &str) -> Result<Vec<Kernel>, String> {
    let mut kernels = Vec::new();
    let mut dynamic = Vec::new();
    let mut current: Option<Kernel> = None;
    let mut depth = 0;
    for (line, piece) in pieces(text) {
        let fail = |what: &str| Err(format!("line {line}: {what}: {piece}"));
        if depth == 0 {
            if let Some((_, header)) = piece.split_once(".entry ") {
                current = Some(header_of(header).map_err(|e| format!("line {line}: {e}"))?);
            } else if piece == "{" {
                depth = 1;
            } else if piece.starts_with(".extern .shared") {
                dynamic.push(variable(&piece)?.0);
            } else if piece.contains(".func") || piece.contains(".shared") {
                return fail("functions and shared variables outside kernels are not supported");
            }
            continue;
        }
        let Some(kernel) = current.as_mut() else {
            return fail("a body without a header");
        };
        if piece == "{" {
            depth += 1;
        } else if piece == "}" {
            depth -= 1;
            if depth == 0 {
                // Dynamic shared memory begins behind the static variables.
                let end = kernel.shared_bytes.next_multiple_of(16);
                kernel
                    .shared
                    .extend(dynamic.iter().map(|name| (String::clone(name), end)));
                kernels.extend(current.take());
            }
        } else if let Some(label) = piece.strip_suffix(':') {
            let next = kernel.statements.len();
            kernel.labels.insert(label.to_owned(), next);
        } else if piece.starts_with(".shared") {
            let (name, bytes, align) = variable(&piece)?;
            let offset = kernel.shared_bytes.next_multiple_of(align);
            kernel.shared_bytes = offset + bytes;
            kernel.shared.insert(name, offset);
        } else if piece.starts_with(".reg") || piece.starts_with(".pragma") {
            // Registers come into being where they are first used.
        } else if piece.starts_with('.') {
            return fail("this directive is not supported");
        } else {
            kernel.statements.push(statement(line, &piece)?);
        }
    }
    Ok(kernels)
}

/// Cuts the text at semicolons, labels and the braces of bodies; comments are dropped and white space is
/// made single. A kernel's header, with its directives, is one piece.
fn pieces(text: &str) -> Vec<(u32, String)> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut start = 0;
    let mut finish = |line: u32, piece: &mut String, last: &str| {
        let words: Vec<_> = piece.split_whitespace().collect();
        let text = words.join(" ") + last;
        if !text.is_empty() {
            pieces.push((line, text));
        }
        piece.clear();
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default();
        // Module directives without a semicolon are of no interest here.
        if [".version", ".target", ".address_size"]
            .iter()
            .any(|directive| line.starts_with(directive))
        {
            continue;
        }
        for c in line.chars() {
            if piece.trim().is_empty() {
                start = number;
            }
            // A brace opens or closes a body where no instruction has begun, and after a header.
            let begun = piece.trim();
            let in_statement = !begun.is_empty() && !begun.contains(".entry ");
            match c {
                ';' => finish(start, &mut piece, ""),
                '{' | '}' if !in_statement => {
                    finish(start, &mut piece, "");
                    finish(number, &mut piece, if c == '{' { "{" } else { "}" });
                }
                ':' if !begun.contains(' ') && begun.starts_with(['$', 'L', '_']) => {
                    finish(start, &mut piece, ":");
                }
                _ => piece.push(c),
            }
        }
        piece.push(' ');
    }
    pieces
}

/// `name( .param .u64 a, .param .align 8 .b8 b[16] ) .maxntid 128, 1, 1`
fn header_of(header: &str) -> Result<Kernel, String> {
    let (name, rest) = header.split_once('(').unwrap_or((header, ")"));
    let (params, directives) = rest.split_once(')').ok_or("a header without )")?;
    let mut kernel = Kernel {
        name: name.trim().to_owned(),
        ..Kernel::default()
    };
    let mut end = 0;
    for param in params.split(',').filter(|p| !p.trim().is_empty()) {
        let (name, bytes, align) = variable(param)?;
        let offset = usize::next_multiple_of(end, align);
        end = offset + bytes;
        kernel.params.push(Param {
            name,
            offset,
            bytes,
        });
    }
    let mut words = directives.split([' ', ',']).filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        if word == ".maxntid" || word == ".reqntid" {
            kernel.max_threads = words.next().and_then(|n| n.parse().ok());
        }
    }
    Ok(kernel)
}

/// Name, bytes and alignment of `.shared .align 16 .b8 name[128]` or `.param .u64 name`.
fn variable(declaration: &str) -> Result<(String, usize, usize), String> {
    let fail = || format!("cannot read the declaration: {declaration}");
    let words: Vec<_> = declaration.split_whitespace().collect();
    let after = |word: &str| {
        let at = words.iter().position(|w| *w == word)?;
        words.get(at + 1)?.parse().ok()
    };
    let name = words.last().ok_or_else(fail)?;
    let kind = words.get(words.len().wrapping_sub(2)).ok_or_else(fail)?;
    let size = type_bytes(kind.trim_start_matches('.')).ok_or_else(fail)?;
    let (name, count) = match name.split_once('[') {
        None => (*name, 1),
        Some((name, "]")) => (name, 0),
        Some((name, count)) => (
            name,
            count.trim_end_matches(']').parse().map_err(|_| fail())?,
        ),
    };
    Ok((
        name.to_owned(),
        size * count,
        after(".align").unwrap_or(size),
    ))
}

/// The size in bytes of a type such as `u32` or `f64`.
pub(crate) fn type_bytes(kind: &str) -> Option<usize> {
    match kind.get(1..)?.parse().ok()? {
        8 => Some(1),
        16 => Some(2),
        32 => Some(4),
        64 => Some(8),
        _ => None,
    }
}

fn statement(line: u32, text: &str) -> Result<Statement, String> {
    let mut rest = text;
    let mut guard = None;
    if let Some(guarded) = rest.strip_prefix('@') {
        let (predicate, instruction) = guarded.split_once(' ').unwrap_or((guarded, ""));
        let name = predicate.trim_start_matches('!');
        guard = Some((name.to_owned(), name != predicate));
        rest = instruction.trim();
    }
    let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    Ok(Statement {
        line,
        text: text.to_owned(),
        guard,
        opcode: opcode.to_owned(),
        operands: operands_of(operands).map_err(|e| format!("line {line}: {e}: {text}"))?,
    })
}

fn operands_of(text: &str) -> Result<Vec<Operand>, String> {
    let mut operands = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let closing = match rest.as_bytes()[0] {
            b'{' => Some('}'),
            b'[' => Some(']'),
            _ => None,
        };
        let (operand, after) = if let Some(closing) = closing {
            let (inside, after) = rest[1..].split_once(closing).ok_or("no closing bracket")?;
            let operand = if closing == '}' {
                Operand::Vector(inside.split(',').map(|x| x.trim().to_owned()).collect())
            } else {
                address(inside)?
            };
            (operand, after.trim_start().trim_start_matches(','))
        } else {
            let (name, after) = rest.split_once(',').unwrap_or((rest, ""));
            let operand = match name.split_once('|') {
                Some((a, b)) => Operand::Pair(a.trim().to_owned(), b.trim().to_owned()),
                None => Operand::Name(name.trim().to_owned()),
            };
            (operand, after)
        };
        operands.push(operand);
        rest = after.trim();
    }
    Ok(operands)
}

fn address(inside: &str) -> Result<Operand, String> {
    let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
    let offset = offset
        .trim()
        .parse()
        .map_err(|_| "cannot read the offset")?;
    Ok(Operand::Address(base.trim().to_owned(), offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands() {
        let name = |n: &str| Operand::Name(n.to_owned());
        assert_eq!(
            operands_of("{%r1, %r2}, %rd3").unwrap(),
            [
                Operand::Vector(vec!["%r1".to_owned(), "%r2".to_owned()]),
                name("%rd3")
            ]
        );
        assert_eq!(
            operands_of("[%rd1+-8], 0d4330000000000000").unwrap(),
            [
                Operand::Address("%rd1".to_owned(), -8),
                name("0d4330000000000000")
            ]
        );
        assert_eq!(
            operands_of("%r1|%p1, %r2, 0").unwrap(),
            [
                Operand::Pair("%r1".to_owned(), "%p1".to_owned()),
                name("%r2"),
                name("0")
            ]
        );
    }

    #[test]
    fn a_kernel_with_everything() {
        let text = "
.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(
	.param .u64 k_param_0,
	.param .u32 k_param_1,
	.param .align 8 .b8 k_param_2[16]
)
.maxntid 128, 1, 1
{
	.reg .pred 	%p<2>;
	.shared .align 4 .b8 table[24];
	ld.param.u64 	%rd1, [k_param_0]; // a comment
	{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }
$L__BB0_1:
	@!%p1 bra 	$L__BB0_1;
	ret;
}
";
        let kernels = module(text).unwrap();
        let kernel = &kernels[0];
        assert_eq!((kernels.len(), kernel.name.as_str()), (1, "k"));
        let offsets: Vec<_> = kernel.params.iter().map(|p| (p.offset, p.bytes)).collect();
        assert_eq!(offsets, [(0, 8), (8, 4), (16, 16)]);
        assert_eq!(kernel.max_threads, Some(128));
        assert_eq!(kernel.shared_bytes, 24);
        assert_eq!(kernel.shared["table"], 0);
        assert_eq!(kernel.shared["dynamic"], 32);
        let opcodes: Vec<_> = kernel
            .statements
            .iter()
            .map(|s| s.opcode.as_str())
            .collect();
        assert_eq!(opcodes, ["ld.param.u64", "mov.b64", "bra", "ret"]);
        assert_eq!(kernel.labels["$L__BB0_1"], 2);
        let branch = &kernel.statements[2];
        assert_eq!(branch.guard, Some(("%p1".to_owned(), true)));
        assert_eq!(branch.line, 18);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(module(".func f() { ret; }").is_err());
        let body = |line: &str| format!(".visible .entry k()\n{{\n{line}\n}}\n");
        assert!(module(&body(".local .b8 depot[8];")).is_err());
        assert!(module(&body("ret;")).is_ok());
    }
}
