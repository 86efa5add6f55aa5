//! From statements to instructions on numbered registers.
//!
//! Constants, special registers and the addresses of shared variables are registers too, which are set
//! once and never written again; so every operand is a register number. An instruction that is a product
//! and a sum in one becomes two.

use std::collections::HashMap;

use super::parse::{self, Operand, Statement};

/// A register number.
pub(crate) type Reg = usize;

/// A kernel that is ready to run.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) params: Vec<parse::Param>,
    pub(crate) shared_bytes: usize,
    pub(crate) max_threads: Option<u32>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) register_count: usize,
    pub(crate) constants: Vec<(Reg, u64)>,
    pub(crate) specials: Vec<(Reg, Special)>,
    /// Line and text of each instruction.
    pub(crate) origins: Vec<(u32, String)>,
}

/// Registers that the launch sets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    ThreadInBlock,
    ThreadsPerBlock,
    Block,
    Blocks,
    Lane,
}

pub(crate) struct Instruction {
    /// The predicate's register, and the value with which it lets a lane take part.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) op: Op,
}

pub(crate) enum Op {
    Binary(Binary, Width, [Reg; 3]),
    /// Shift right, keeping the sign.
    ShiftRightSigned(Width, [Reg; 3]),
    /// `to, from`, from this many bits, sign-extended where told.
    Convert {
        to: Reg,
        from: Reg,
        bits: u32,
        signed: bool,
        width: Width,
    },
    Pack {
        to: Reg,
        low: Reg,
        high: Reg,
    },
    Unpack {
        low: Option<Reg>,
        high: Option<Reg>,
        from: Reg,
    },
    /// `to, if set, if clear, predicate`
    Select(Width, [Reg; 4]),
    /// `to, field, rest, position, length`
    InsertField(Width, [Reg; 5]),
    /// `to, from, position, length`
    ExtractField(Width, [Reg; 4]),
    Compare {
        comparison: Comparison,
        signed: bool,
        width: Width,
        to: Reg,
        a: Reg,
        b: Reg,
    },
    /// `to, a, b, c`: `a * b + c` toward zero.
    FmaTowardZero([Reg; 4]),
    /// `to, a, b`
    Float(Float, [Reg; 3]),
    /// `to, from`: turns the sign.
    NegateFloat([Reg; 2]),
    /// `to, from`: a 64-bit integer as a double, to nearest.
    ToDouble {
        to: Reg,
        from: Reg,
        signed: bool,
    },
    Parameter {
        to: Reg,
        bytes: usize,
        offset: usize,
    },
    Load(Access),
    Store(Access),
    Shuffle {
        mode: Shuffle,
        to: Reg,
        valid: Option<Reg>,
        from: Reg,
        lane: Reg,
        clamp: Reg,
        members: Reg,
    },
    Branch {
        target: usize,
    },
    Exit,
    BlockBarrier,
    WarpBarrier {
        members: Reg,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Binary {
    Add,
    Sub,
    MulLow,
    MulHigh64,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    /// Divisions take longer for some operands than for others.
    DivUnsigned,
    RemUnsigned,
    DivSigned,
    RemSigned,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Float {
    AddToNearest,
    SubToNearest,
    MulToNearest,
    AddTowardZero,
    SubTowardZero,
    MulTowardZero,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

/// Bits of an integer operation: 1 for predicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Width(pub(crate) u32);

impl Width {
    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Space {
    Global,
    Shared,
}

/// A load or store of 1, 2 or 4 consecutive elements.
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) values: Vec<Reg>,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// Decodes a kernel. The error quotes the statement that is not understood.
pub(crate) fn program(kernel: parse::Kernel) -> Result<Program, String> {
    let mut decoder = Decoder::new(&kernel);
    let mut starts = Vec::new();
    let mut instructions = Vec::new();
    let mut origins = Vec::new();
    for statement in &kernel.statements {
        starts.push(instructions.len());
        let ops = decoder.decode(statement).map_err(|reason| {
            let Statement { line, text, .. } = statement;
            format!("line {line}: {reason}: {text}")
        })?;
        let guard = statement.guard.as_ref();
        let guard = guard.map(|(name, negated)| (decoder.register(name), !negated));
        for op in ops {
            instructions.push(Instruction { guard, op });
            origins.push((statement.line, statement.text.clone()));
        }
    }
    for instruction in &mut instructions {
        if let Op::Branch { target } = &mut instruction.op {
            *target = *starts
                .get(*target)
                .ok_or("a label at the end of a kernel")?;
        }
    }
    let Decoder {
        count,
        constants,
        specials,
        ..
    } = decoder;
    Ok(Program {
        name: kernel.name,
        params: kernel.params,
        shared_bytes: kernel.shared_bytes,
        max_threads: kernel.max_threads,
        instructions,
        register_count: count,
        constants: constants
            .into_iter()
            .map(|(value, reg)| (reg, value))
            .collect(),
        specials,
        origins,
    })
}

struct Decoder<'a> {
    kernel: &'a parse::Kernel,
    names: HashMap<String, Reg>,
    constants: HashMap<u64, Reg>,
    specials: Vec<(Reg, Special)>,
    count: usize,
}

const UNKNOWN: &str = "this instruction is not supported";

impl<'a> Decoder<'a> {
    fn new(kernel: &'a parse::Kernel) -> Self {
        Self {
            kernel,
            names: HashMap::new(),
            constants: HashMap::new(),
            specials: Vec::new(),
            count: 0,
        }
    }

    fn decode(&mut self, statement: &Statement) -> Result<Vec<Op>, String> {
        let parts: Vec<_> = statement.opcode.split('.').collect();
        let operands = &statement.operands;
        let kind = *parts.last().unwrap_or(&"");
        match parts[0] {
            "ld" | "st" => Ok(vec![self.access(&parts, operands)?]),
            "shfl" => Ok(vec![self.shuffle(&parts, operands)?]),
            "bra" => Ok(vec![self.branch(operands)?]),
            "ret" | "exit" => Ok(vec![Op::Exit]),
            "bar" | "barrier" => Ok(vec![self.barrier(&parts, operands)?]),
            "setp" => self.compare(&parts, operands),
            "mov" => Ok(vec![self.mov(kind, operands)?]),
            "cvt" => Ok(vec![self.convert(&parts, operands)?]),
            _ => {
                let regs = self.operands(operands)?;
                match kind {
                    "f64" if parts[0] != "selp" => Ok(vec![float(&parts, &regs)?]),
                    _ => self.integer(&parts, kind, &regs),
                }
            }
        }
    }

    /// Integer arithmetic and logic, whose operands are all registers.
    fn integer(&mut self, parts: &[&str], kind: &str, regs: &[Reg]) -> Result<Vec<Op>, String> {
        let width = width(kind)?;
        let signed = kind.starts_with('s');
        let binary = |op| Ok(vec![Op::Binary(op, width, three(regs)?)]);
        match (parts[0], parts.get(1).copied().unwrap_or("")) {
            ("add", _) if parts.len() == 2 => binary(Binary::Add),
            ("sub", _) if parts.len() == 2 => binary(Binary::Sub),
            ("and", _) => binary(Binary::And),
            ("or", _) => binary(Binary::Or),
            ("xor", _) => binary(Binary::Xor),
            ("shl", _) => binary(Binary::ShiftLeft),
            ("shr", _) if signed => Ok(vec![Op::ShiftRightSigned(width, three(regs)?)]),
            ("shr", _) => binary(Binary::ShiftRight),
            ("min", _) if !signed => binary(Binary::MinUnsigned),
            ("max", _) if !signed => binary(Binary::MaxUnsigned),
            ("min", _) => binary(Binary::MinSigned),
            ("max", _) => binary(Binary::MaxSigned),
            ("div", _) if !signed => binary(Binary::DivUnsigned),
            ("div", _) => binary(Binary::DivSigned),
            ("rem", _) if !signed => binary(Binary::RemUnsigned),
            ("rem", _) => binary(Binary::RemSigned),
            ("neg", _) => {
                let [to, a] = two(regs)?;
                let zero = self.constant(0);
                Ok(vec![Op::Binary(Binary::Sub, width, [to, zero, a])])
            }
            ("not", _) => {
                let [to, a] = two(regs)?;
                let ones = self.constant(width.mask());
                Ok(vec![Op::Binary(Binary::Xor, width, [to, a, ones])])
            }
            ("cvta", _) => {
                let [to, from] = two(regs)?;
                Ok(vec![Op::Convert {
                    to,
                    from,
                    bits: 64,
                    signed: false,
                    width,
                }])
            }
            ("mul" | "mad", "lo" | "wide" | "hi") => self.multiply(parts, width, signed, regs),
            ("selp", _) => Ok(vec![Op::Select(width, exactly(regs)?)]),
            ("bfi", _) => Ok(vec![Op::InsertField(width, exactly(regs)?)]),
            ("bfe", _) if !signed => Ok(vec![Op::ExtractField(width, exactly(regs)?)]),
            _ => Err(UNKNOWN.to_owned()),
        }
    }

    /// `mul` and `mad`, as a product in 64 bits, a shift for the high half, and a sum.
    fn multiply(
        &mut self,
        parts: &[&str],
        width: Width,
        signed: bool,
        regs: &[Reg],
    ) -> Result<Vec<Op>, String> {
        let (to, [a, b]) = (regs[0], exactly::<2>(regs.get(1..3).unwrap_or_default())?);
        let mut ops = Vec::new();
        let mut extended = |decoder: &mut Self, from: Reg| {
            if !signed || width == Width(64) {
                return from;
            }
            let to = decoder.fresh();
            ops.push(Op::Convert {
                to,
                from,
                bits: width.0,
                signed: true,
                width: Width(64),
            });
            to
        };
        let (a, b) = (extended(self, a), extended(self, b));
        let product = self.fresh();
        let result_width = match (parts[1], width.0) {
            ("lo", _) => {
                ops.push(Op::Binary(Binary::MulLow, width, [product, a, b]));
                width
            }
            ("wide", 32) => {
                ops.push(Op::Binary(Binary::MulLow, Width(64), [product, a, b]));
                Width(64)
            }
            ("hi", 32) => {
                let (whole, half) = (self.fresh(), self.constant(32));
                ops.push(Op::Binary(Binary::MulLow, Width(64), [whole, a, b]));
                ops.push(Op::Binary(
                    Binary::ShiftRight,
                    width,
                    [product, whole, half],
                ));
                width
            }
            ("hi", 64) if !signed => {
                ops.push(Op::Binary(Binary::MulHigh64, width, [product, a, b]));
                width
            }
            _ => return Err(UNKNOWN.to_owned()),
        };
        let addend = match parts[0] {
            "mad" => *regs.get(3).ok_or("an operand is missing")?,
            _ => self.constant(0),
        };
        ops.push(Op::Binary(Binary::Add, result_width, [to, product, addend]));
        Ok(ops)
    }

    fn compare(&mut self, parts: &[&str], operands: &[Operand]) -> Result<Vec<Op>, String> {
        let comparison = match *parts.get(1).unwrap_or(&"") {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" | "lo" => Comparison::Less,
            "le" | "ls" => Comparison::LessOrEqual,
            "gt" | "hi" => Comparison::Greater,
            "ge" | "hs" => Comparison::GreaterOrEqual,
            _ => return Err(UNKNOWN.to_owned()),
        };
        let kind = parts[parts.len() - 1];
        if kind.starts_with('f') {
            return Err(UNKNOWN.to_owned());
        }
        let (width, signed) = (width(kind)?, kind.starts_with('s'));
        let regs = self.operands(operands)?;
        let ([to, a, b], rest) = (three(&regs[..regs.len().min(3)])?, &regs[3..]);
        let compared = if parts.len() == 4 { self.fresh() } else { to };
        let mut ops = vec![Op::Compare {
            comparison,
            signed,
            width,
            to: compared,
            a,
            b,
        }];
        match (parts.get(2).copied(), rest) {
            (Some(_), []) if parts.len() == 3 => {}
            (Some(combine), [with]) if parts.len() == 4 => {
                let op = match combine {
                    "and" => Binary::And,
                    "or" => Binary::Or,
                    "xor" => Binary::Xor,
                    _ => return Err(UNKNOWN.to_owned()),
                };
                ops.push(Op::Binary(op, Width(1), [to, compared, *with]));
            }
            _ => return Err(UNKNOWN.to_owned()),
        }
        Ok(ops)
    }

    fn mov(&mut self, kind: &str, operands: &[Operand]) -> Result<Op, String> {
        match operands {
            [Operand::Name(to), Operand::Vector(parts)] if kind == "b64" => {
                let [low, high] = exactly(&self.names(parts)?)?;
                Ok(Op::Pack {
                    to: self.register(to),
                    low,
                    high,
                })
            }
            [Operand::Vector(parts), Operand::Name(from)] if kind == "b64" => {
                let from = self.value(from)?;
                let part = |decoder: &mut Self, name: Option<&String>| match name {
                    Some(name) if name == "_" => Ok(None),
                    Some(name) => Ok(Some(decoder.register(name))),
                    None => Err("two registers are needed".to_owned()),
                };
                let (low, high) = (part(self, parts.first())?, part(self, parts.get(1))?);
                Ok(Op::Unpack { low, high, from })
            }
            [Operand::Name(to), Operand::Name(from)] => {
                let (to, from) = (self.register(to), self.value(from)?);
                let width = if kind == "pred" {
                    Width(1)
                } else {
                    width(kind)?
                };
                Ok(Op::Convert {
                    to,
                    from,
                    bits: width.0,
                    signed: false,
                    width,
                })
            }
            _ => Err(UNKNOWN.to_owned()),
        }
    }

    fn convert(&mut self, parts: &[&str], operands: &[Operand]) -> Result<Op, String> {
        let [to, from] = two(&self.operands(operands)?)?;
        match parts[1..] {
            ["rn", "f64", source @ ("u64" | "u32" | "s64")] => Ok(Op::ToDouble {
                to,
                from,
                signed: source.starts_with('s'),
            }),
            [target, source] if !target.starts_with('f') && !source.starts_with('f') => {
                let (width, bits) = (width(target)?, width(source)?.0);
                Ok(Op::Convert {
                    to,
                    from,
                    bits,
                    signed: source.starts_with('s'),
                    width,
                })
            }
            _ => Err(UNKNOWN.to_owned()),
        }
    }

    fn access(&mut self, parts: &[&str], operands: &[Operand]) -> Result<Op, String> {
        let is = |part: &str| parts.contains(&part);
        let bytes = parse::type_bytes(parts[parts.len() - 1]).ok_or(UNKNOWN)?;
        let (value, address) = match (parts[0], operands) {
            ("ld", [value, address]) | ("st", [address, value]) => (value, address),
            _ => return Err(UNKNOWN.to_owned()),
        };
        let Operand::Address(base, offset) = address else {
            return Err("no address".to_owned());
        };
        if is("param") {
            let param = self.kernel.params.iter().find(|param| param.name == *base);
            let param = param.ok_or("there is no such parameter")?;
            let Operand::Name(to) = value else {
                return Err(UNKNOWN.to_owned());
            };
            let offset = param.offset + usize::try_from(*offset).map_err(|_| "offset")?;
            return Ok(Op::Parameter {
                to: self.register(to),
                bytes,
                offset,
            });
        }
        let space = match (is("global"), is("shared")) {
            (true, false) => Space::Global,
            (false, true) => Space::Shared,
            _ => return Err("only param, global and shared memory are supported".to_owned()),
        };
        let values = match value {
            Operand::Name(name) => vec![self.value(name)?],
            Operand::Vector(names) => self.names(names)?,
            _ => return Err(UNKNOWN.to_owned()),
        };
        let access = Access {
            space,
            bytes,
            values,
            base: self.value(base)?,
            offset: *offset,
        };
        Ok(if parts[0] == "ld" {
            Op::Load(access)
        } else {
            Op::Store(access)
        })
    }

    fn shuffle(&mut self, parts: &[&str], operands: &[Operand]) -> Result<Op, String> {
        let mode = match parts {
            ["shfl", "sync", "idx", "b32"] => Shuffle::Index,
            ["shfl", "sync", "up", "b32"] => Shuffle::Up,
            ["shfl", "sync", "down", "b32"] => Shuffle::Down,
            ["shfl", "sync", "bfly", "b32"] => Shuffle::Butterfly,
            _ => return Err(UNKNOWN.to_owned()),
        };
        let (to, valid) = match operands.first() {
            Some(Operand::Pair(to, valid)) => (to, Some(self.register(valid))),
            Some(Operand::Name(to)) => (to, None),
            _ => return Err(UNKNOWN.to_owned()),
        };
        let to = self.register(to);
        let [from, lane, clamp, members] = exactly(&self.operands(&operands[1..])?)?;
        Ok(Op::Shuffle {
            mode,
            to,
            valid,
            from,
            lane,
            clamp,
            members,
        })
    }

    fn branch(&mut self, operands: &[Operand]) -> Result<Op, String> {
        let [Operand::Name(label)] = operands else {
            return Err(UNKNOWN.to_owned());
        };
        let target = *self
            .kernel
            .labels
            .get(label)
            .ok_or("there is no such label")?;
        Ok(Op::Branch { target })
    }

    fn barrier(&mut self, parts: &[&str], operands: &[Operand]) -> Result<Op, String> {
        match (parts, self.operands(operands)?.as_slice()) {
            (["bar", "sync"] | ["barrier", "sync", ..], [_]) => Ok(Op::BlockBarrier),
            (["bar", "warp", "sync"], &[members]) => Ok(Op::WarpBarrier { members }),
            _ => Err(UNKNOWN.to_owned()),
        }
    }

    fn operands(&mut self, operands: &[Operand]) -> Result<Vec<Reg>, String> {
        let name = |operand: &Operand| match operand {
            Operand::Name(name) => Ok(name.clone()),
            _ => Err(UNKNOWN.to_owned()),
        };
        let names: Vec<_> = operands.iter().map(name).collect::<Result<_, _>>()?;
        self.names(&names)
    }

    fn names(&mut self, names: &[String]) -> Result<Vec<Reg>, String> {
        names.iter().map(|name| self.value(name)).collect()
    }

    /// The register that holds what an operand means: a register, a number, a special register or the
    /// address of a shared variable.
    fn value(&mut self, name: &str) -> Result<Reg, String> {
        let special = match name {
            "%tid.x" => Some(Special::ThreadInBlock),
            "%ntid.x" => Some(Special::ThreadsPerBlock),
            "%ctaid.x" => Some(Special::Block),
            "%nctaid.x" => Some(Special::Blocks),
            "%laneid" => Some(Special::Lane),
            _ if name.starts_with('%') && name.contains('.') => return Err(UNKNOWN.to_owned()),
            _ => None,
        };
        if let Some(special) = special {
            let reg = self.register(name);
            if !self.specials.iter().any(|(known, _)| *known == reg) {
                self.specials.push((reg, special));
            }
            return Ok(reg);
        }
        if let Some(offset) = self.kernel.shared.get(name) {
            return Ok(self.constant(*offset as u64));
        }
        match number(name) {
            Some(value) => Ok(self.constant(value)),
            None if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Err("cannot read the number".to_owned())
            }
            None => Ok(self.register(name)),
        }
    }

    fn register(&mut self, name: &str) -> Reg {
        if let Some(reg) = self.names.get(name) {
            return *reg;
        }
        let reg = self.fresh();
        self.names.insert(name.to_owned(), reg);
        reg
    }

    fn constant(&mut self, value: u64) -> Reg {
        if let Some(reg) = self.constants.get(&value) {
            return *reg;
        }
        let reg = self.fresh();
        self.constants.insert(value, reg);
        reg
    }

    fn fresh(&mut self) -> Reg {
        self.count += 1;
        self.count - 1
    }
}

fn float(parts: &[&str], regs: &[Reg]) -> Result<Op, String> {
    let float = match parts {
        ["fma", "rz", "f64"] => return Ok(Op::FmaTowardZero(exactly(regs)?)),
        ["neg", "f64"] => return Ok(Op::NegateFloat(two(regs)?)),
        ["add", "rn", "f64"] | ["add", "f64"] => Float::AddToNearest,
        ["sub", "rn", "f64"] | ["sub", "f64"] => Float::SubToNearest,
        ["mul", "rn", "f64"] | ["mul", "f64"] => Float::MulToNearest,
        ["add", "rz", "f64"] => Float::AddTowardZero,
        ["sub", "rz", "f64"] => Float::SubTowardZero,
        ["mul", "rz", "f64"] => Float::MulTowardZero,
        _ => return Err(UNKNOWN.to_owned()),
    };
    Ok(Op::Float(float, three(regs)?))
}

/// A decimal or hexadecimal integer, or a double as `0d` and its bits.
fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = match digits.get(..2) {
        Some("0d" | "0D" | "0x" | "0X") => u64::from_str_radix(&digits[2..], 16).ok()?,
        _ => digits.trim_end_matches('U').parse().ok()?,
    };
    Some(if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

fn width(kind: &str) -> Result<Width, String> {
    match (kind, parse::type_bytes(kind)) {
        ("pred", _) => Ok(Width(1)),
        (_, Some(bytes)) => Ok(Width(8 * bytes as u32)),
        _ => Err(UNKNOWN.to_owned()),
    }
}

fn two(regs: &[Reg]) -> Result<[Reg; 2], String> {
    exactly(regs)
}

fn three(regs: &[Reg]) -> Result<[Reg; 3], String> {
    exactly(regs)
}

fn exactly<const N: usize>(regs: &[Reg]) -> Result<[Reg; N], String> {
    regs.try_into()
        .map_err(|_| format!("{} operands instead of {N}", regs.len()))
}
