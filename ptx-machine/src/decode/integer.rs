//! Arithmetic, logic and comparisons of integers and bits. All operands are registers.

use super::{Decoder, width};
use crate::error::Problem;
use crate::module::Operand;
use crate::program::{Binary, Comparison, Op, Reg, Width};

impl Decoder<'_> {
    pub(super) fn integer(
        &mut self,
        parts: &[&str],
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let kind = parts[parts.len() - 1];
        let (width, signed) = (width(kind)?, kind.starts_with('s'));
        let binary = match (parts[0], signed) {
            ("add", _) => Binary::Add,
            ("sub", _) => Binary::Sub,
            ("and", _) => Binary::And,
            ("or", _) => Binary::Or,
            ("xor", _) => Binary::Xor,
            ("shl", _) => Binary::ShiftLeft,
            ("shr", false) => Binary::ShiftRight,
            ("min", false) => Binary::MinUnsigned,
            ("max", false) => Binary::MaxUnsigned,
            ("min", true) => Binary::MinSigned,
            ("max", true) => Binary::MaxSigned,
            ("div", false) => Binary::DivUnsigned,
            ("div", true) => Binary::DivSigned,
            ("rem", false) => Binary::RemUnsigned,
            ("rem", true) => Binary::RemSigned,
            _ => return self.not_binary(parts, width, signed, operands),
        };
        Ok(vec![Op::Binary(binary, width, self.operands(operands)?)])
    }

    fn not_binary(
        &mut self,
        parts: &[&str],
        width: Width,
        signed: bool,
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let op = match parts[0] {
            "shr" => Op::ShiftRightSigned(width, self.operands(operands)?),
            "neg" => {
                let [to, a] = self.operands(operands)?;
                Op::Binary(Binary::Sub, width, [to, self.constant(0), a])
            }
            "not" => {
                let [to, a] = self.operands(operands)?;
                Op::Binary(Binary::Xor, width, [to, a, self.constant(width.mask())])
            }
            "selp" => Op::Select(width, self.operands(operands)?),
            "bfi" => Op::InsertField(width, self.operands(operands)?),
            "bfe" => Op::ExtractField(width, self.operands(operands)?),
            "prmt" => Op::Permute(self.operands(operands)?),
            "shf" => return self.funnel_shift(parts[1] == "l", operands),
            "mul" | "mad" => return self.multiply(parts, width, signed, operands),
            "setp" => return self.compare(parts, width, signed, operands),
            _ => return Err(Problem::Instruction),
        };
        Ok(vec![op])
    }

    /// A funnel shift by less than 32: the high word of two after a left shift, or the low one
    /// after a right shift.
    fn funnel_shift(&mut self, left: bool, operands: &[Operand]) -> Result<Vec<Op>, Problem> {
        let [to, low, high, distance] = self.operands(operands)?;
        let (both, within) = (self.fresh(), self.fresh());
        let (word, pair) = (Width(32), Width(64));
        let mut ops = vec![
            Op::Pack {
                to: both,
                low,
                high,
            },
            Op::Binary(Binary::And, word, [within, distance, self.constant(31)]),
        ];
        if left {
            let word_up = self.constant(32);
            ops.push(Op::Binary(Binary::ShiftLeft, pair, [both, both, within]));
            ops.push(Op::Binary(Binary::ShiftRight, pair, [to, both, word_up]));
        } else {
            ops.push(Op::Binary(Binary::ShiftRight, pair, [both, both, within]));
            ops.push(Op::Binary(
                Binary::And,
                word,
                [to, both, self.constant(word.mask())],
            ));
        }
        Ok(ops)
    }

    /// `mul` and `mad` as a product in 64 bits, a shift for the high half, and a sum.
    fn multiply(
        &mut self,
        parts: &[&str],
        width: Width,
        signed: bool,
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let ([to, a, b], addend) = if parts[0] == "mad" {
            let [to, a, b, addend] = self.operands(operands)?;
            ([to, a, b], addend)
        } else {
            (self.operands(operands)?, self.constant(0))
        };
        let mut ops = Vec::new();
        let mut extended = |decoder: &mut Self, from: Reg| {
            if !signed || width == Width(64) {
                return decoder.narrowed(from, width);
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
                let shift = [product, whole, half];
                ops.push(Op::Binary(Binary::MulLow, Width(64), [whole, a, b]));
                ops.push(Op::Binary(Binary::ShiftRight, Width(64), shift));
                width
            }
            ("hi", 64) if !signed => {
                ops.push(Op::Binary(Binary::MulHigh64, width, [product, a, b]));
                width
            }
            _ => return Err(Problem::Instruction),
        };
        ops.push(Op::Binary(Binary::Add, result_width, [to, product, addend]));
        Ok(ops)
    }

    /// `setp.lt.u32 p, a, b` and `setp.lt.and.u32 p, a, b, q`.
    fn compare(
        &mut self,
        parts: &[&str],
        width: Width,
        signed: bool,
        operands: &[Operand],
    ) -> Result<Vec<Op>, Problem> {
        let comparison = match parts[1] {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" | "lo" => Comparison::Less,
            "le" | "ls" => Comparison::LessOrEqual,
            "gt" | "hi" => Comparison::Greater,
            "ge" | "hs" => Comparison::GreaterOrEqual,
            _ => return Err(Problem::Instruction),
        };
        let compare = |to, a, b| Op::Compare {
            comparison,
            signed,
            width,
            to,
            a,
            b,
        };
        if parts.len() == 3 {
            let [to, a, b] = self.operands(operands)?;
            return Ok(vec![compare(to, a, b)]);
        }
        let combine = match parts[2] {
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            _ => return Err(Problem::Instruction),
        };
        let [to, a, b, with] = self.operands(operands)?;
        let compared = self.fresh();
        let combined = Op::Binary(combine, Width(1), [to, compared, with]);
        Ok(vec![compare(compared, a, b), combined])
    }
}
