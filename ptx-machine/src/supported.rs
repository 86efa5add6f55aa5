//! The supported instructions. The decoder accepts these and no others.

use core::fmt;

/// Instructions with the same spelling and the same operands.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The part of the machine that executes them.
    pub family: Family,
    /// The opcode. `{a,b}` means one of `a` and `b`, and `[.c]` is optional.
    pub spelling: &'static str,
    /// The operands. `d` to `g` are results or stored values, `p` and `q` predicates, and `a` to
    /// `c`, `m` and `n` values, which may be numbers. `{d, ..}` are the results that the opcode
    /// has.
    pub operands: &'static str,
}

/// A part of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Family {
    /// Arithmetic, logic and comparisons of integers and bits.
    Integer,
    /// Integer arithmetic with a carry in the carry flag.
    Carry,
    /// Double-precision arithmetic.
    Float,
    /// Moves between registers, and conversions.
    Move,
    /// Loads and stores.
    Memory,
    /// Instructions that involve several lanes of a warp.
    Warp,
    /// Branches, the end of a kernel, and the barrier of a block.
    Control,
    /// Products of matrices, and the fences around them.
    Matrix,
    /// Bulk copies to shared memory, and their barriers.
    Copy,
}

/// All supported instructions.
pub const SUPPORTED: &[Form] = &[
    integer("{add,sub}.{u16,u32,u64,s16,s32,s64}", "d, a, b"),
    integer("mul.lo.{u16,u32,u64,s16,s32,s64}", "d, a, b"),
    integer("mul.hi.{u32,s32,u64}", "d, a, b"),
    integer("mul.wide.{u32,s32}", "d, a, b"),
    integer("mad.lo.{u16,u32,u64,s16,s32,s64}", "d, a, b, c"),
    integer("mad.hi.{u32,s32,u64}", "d, a, b, c"),
    integer("mad.wide.{u32,s32}", "d, a, b, c"),
    integer("{div,rem}.{u16,u32,u64,s16,s32,s64}", "d, a, b"),
    integer("{min,max}.{u16,u32,u64,s16,s32,s64}", "d, a, b"),
    integer("neg.{s16,s32,s64}", "d, a"),
    integer("{and,or,xor}.{pred,b16,b32,b64}", "d, a, b"),
    integer("not.{pred,b16,b32,b64}", "d, a"),
    integer("shl.{b16,b32,b64}", "d, a, b"),
    integer("shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}", "d, a, b"),
    integer("bfi.{b32,b64}", "d, a, b, c, n"),
    integer("bfe.{u32,u64}", "d, a, b, c"),
    integer("prmt.b32", "d, a, b, c"),
    integer("shf.{l,r}.wrap.b32", "d, a, b, c"),
    integer(
        "selp.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}",
        "d, a, b, p",
    ),
    integer(
        "setp.{eq,ne}.{b16,b32,b64,u16,u32,u64,s16,s32,s64}",
        "p, a, b",
    ),
    integer(
        "setp.{eq,ne}.{and,or,xor}.{b16,b32,b64,u16,u32,u64,s16,s32,s64}",
        "p, a, b, q",
    ),
    integer("setp.{lt,le,gt,ge}.{u16,u32,u64,s16,s32,s64}", "p, a, b"),
    integer(
        "setp.{lt,le,gt,ge}.{and,or,xor}.{u16,u32,u64,s16,s32,s64}",
        "p, a, b, q",
    ),
    integer("setp.{lo,ls,hi,hs}.{u16,u32,u64}", "p, a, b"),
    integer(
        "setp.{lo,ls,hi,hs}.{and,or,xor}.{u16,u32,u64}",
        "p, a, b, q",
    ),
    carry("{add,sub}.cc.{u32,s32}", "d, a, b"),
    carry("{addc,subc}[.cc].{u32,s32}", "d, a, b"),
    carry("mad.{lo,hi}.cc.u32", "d, a, b, c"),
    carry("madc.{lo,hi}[.cc].u32", "d, a, b, c"),
    float("fma.rz.f64", "d, a, b, c"),
    float("{add,sub,mul}[.{rn,rz}].f64", "d, a, b"),
    float("neg.f64", "d, a"),
    moves(
        "mov.{pred,b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}",
        "d, a",
    ),
    moves("mov.b64", "d, {a, b}"),
    moves("mov.b64", "{d, e}, a"),
    moves(
        "cvt.{u16,u32,u64,s16,s32,s64}.{u8,u16,u32,u64,s8,s16,s32,s64}",
        "d, a",
    ),
    moves("cvt.u8.{u16,u32,u64,s16,s32,s64}", "d, a"),
    moves("cvt.rn.f64.{u32,u64,s64}", "d, a"),
    moves("cvta.to.global.u64", "d, a"),
    memory(
        "ld.param.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "d, [param]",
    ),
    memory(
        "ld[.volatile].{global,shared}.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "d, [a]",
    ),
    memory(
        "ld[.volatile].{global,shared}.v2.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "{d, e}, [a]",
    ),
    memory(
        "ld[.volatile].{global,shared}.v4.{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}",
        "{d, e, f, g}, [a]",
    ),
    memory(
        "ld.global.{ca,cg,cs,lu,cv,nc}.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "d, [a]",
    ),
    memory(
        "ld.global.{ca,cg,cs,lu,cv,nc}.v2.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "{d, e}, [a]",
    ),
    memory(
        "ld.global.{ca,cg,cs,lu,cv,nc}.v4.{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}",
        "{d, e, f, g}, [a]",
    ),
    memory(
        "st[.volatile].{global,shared}.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "[a], d",
    ),
    memory(
        "st[.volatile].{global,shared}.v2.{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}",
        "[a], {d, e}",
    ),
    memory(
        "st[.volatile].{global,shared}.v4.{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}",
        "[a], {d, e, f, g}",
    ),
    memory("prefetch.global.{L1,L2}", "[a]"),
    warp("shfl.sync.{idx,up,down,bfly}.b32", "d, a, b, c, m"),
    warp("shfl.sync.{idx,up,down,bfly}.b32", "d|p, a, b, c, m"),
    warp("bar.warp.sync", "m"),
    control("{bar,barrier}.sync", "0"),
    control("bra[.uni]", "label"),
    control("ret[.uni]", ""),
    control("exit", ""),
    matrix("wgmma.fence.sync.aligned", ""),
    matrix("wgmma.commit_group.sync.aligned", ""),
    matrix("wgmma.wait_group.sync.aligned", "0"),
    matrix(
        "wgmma.mma_async.sync.aligned.{m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n48k32,m64n64k32,m64n80k32,\
         m64n96k32,m64n112k32,m64n128k32,m64n144k32,m64n160k32,m64n176k32,m64n192k32,m64n208k32,m64n224k32,\
         m64n240k32,m64n256k32}.s32.u8.u8",
        "{d, ..}, {a, b, c, e}, m, p",
    ),
    matrix("fence.proxy.async[.{global,shared::cta}]", ""),
    matrix(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
        "{d, e, f, g}, {a, b, c, m}, {a, b}, {c, d, e, f}",
    ),
    copy("mbarrier.init.{shared,shared::cta}.b64", "[a], 1"),
    copy(
        "mbarrier.arrive.expect_tx.{shared,shared::cta}.b64",
        "_, [a], n",
    ),
    copy(
        "mbarrier.try_wait.parity.{shared,shared::cta}.b64",
        "p, [a], n",
    ),
    copy(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "[a], [b], n, [m]",
    ),
];

impl Form {
    /// Whether an opcode matches the spelling.
    #[must_use]
    pub fn matches(&self, opcode: &str) -> bool {
        matches(&[".", self.spelling].concat(), &[".", opcode].concat())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "integer",
            Self::Carry => "carry",
            Self::Float => "double",
            Self::Move => "move",
            Self::Memory => "memory",
            Self::Warp => "warp",
            Self::Control => "control",
            Self::Matrix => "matrix",
            Self::Copy => "copy",
        })
    }
}

/// The family of an opcode.
pub(crate) fn family(opcode: &str) -> Option<Family> {
    let form = SUPPORTED.iter().find(|form| form.matches(opcode));
    form.map(|form| form.family)
}

/// Matches `opcode` against `pattern`. Each is empty or begins with a dot.
fn matches(pattern: &str, opcode: &str) -> bool {
    if let Some((optional, rest)) = pattern.strip_prefix('[').and_then(|p| p.split_once(']')) {
        return matches(rest, opcode) || matches(&[optional, rest].concat(), opcode);
    }
    let (Some(pattern), Some(opcode)) = (pattern.strip_prefix('.'), opcode.strip_prefix('.'))
    else {
        return pattern.is_empty() && opcode.is_empty();
    };
    let choices_end = pattern.find('}').map_or(0, |end| end + 1);
    let (choices, rest) = match pattern.strip_prefix('{') {
        Some(_) => pattern.split_at(choices_end),
        None => pattern.split_at(pattern.find(['.', '[']).unwrap_or(pattern.len())),
    };
    let (part, opcode) = opcode.split_at(opcode.find('.').unwrap_or(opcode.len()));
    let mut choices = choices.trim_matches(['{', '}']).split(',');
    choices.any(|choice| choice == part) && matches(rest, opcode)
}

const fn integer(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Integer, spelling, operands)
}

const fn carry(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Carry, spelling, operands)
}

const fn float(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Float, spelling, operands)
}

const fn moves(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Move, spelling, operands)
}

const fn memory(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Memory, spelling, operands)
}

const fn warp(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Warp, spelling, operands)
}

const fn matrix(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Matrix, spelling, operands)
}

const fn copy(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Copy, spelling, operands)
}

const fn control(spelling: &'static str, operands: &'static str) -> Form {
    form(Family::Control, spelling, operands)
}

const fn form(family: Family, spelling: &'static str, operands: &'static str) -> Form {
    Form {
        family,
        spelling,
        operands,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        assert!(matches(".{add,sub}[.{rn,rz}].f64", ".add.f64"));
        assert!(matches(".{add,sub}[.{rn,rz}].f64", ".sub.rz.f64"));
        assert!(matches(".ret[.uni]", ".ret"));
        assert!(matches(".ret[.uni]", ".ret.uni"));
        for wrong in [
            ".add",
            ".add.rm.f64",
            ".add.rn.rz.f64",
            ".add.f64.",
            ".addx.f64",
            "",
            ".",
            ".{add,sub}.f64",
        ] {
            assert!(!matches(".{add,sub}[.{rn,rz}].f64", wrong), "{wrong}");
        }
        assert_eq!(family("add.f32"), None);
        assert_eq!(family("add.s32"), Some(Family::Integer));
        assert_eq!(family("mad.lo.cc.u32"), Some(Family::Carry));
        assert_eq!(family("mad.lo.cc.u64"), None);
    }
}
