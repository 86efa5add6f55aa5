//! Integer instructions, moves and conversions: values and taint.

use super::Warp;
use crate::fault::Fault;
use crate::program::{Binary, Comparison, Reg, Width};
use crate::taint::{self, Lanes};

/// A rule of [`taint`]: from the values and taints of both operands to the taint of the result. A
/// trait rather than a function pointer, which would cost a call for each lane.
trait Rule: Fn(u64, u64, u64, u64) -> u64 {}

impl<F: Fn(u64, u64, u64, u64) -> u64> Rule for F {}

impl Warp<'_> {
    pub(super) fn binary(
        &mut self,
        op: Binary,
        width: Width,
        [to, a, b]: [Reg; 3],
        lanes: u32,
    ) -> Result<(), Fault> {
        let mask = width.mask();
        let signed = |x: u64| extend(x, width.0, true) as i64;
        let value = match op {
            Binary::Add => self.map2(a, b, |x, y| x.wrapping_add(y) & mask),
            Binary::Sub => self.map2(a, b, |x, y| x.wrapping_sub(y) & mask),
            Binary::MulLow => self.map2(a, b, |x, y| x.wrapping_mul(y) & mask),
            Binary::MulHigh64 => {
                self.map2(a, b, |x, y| ((u128::from(x) * u128::from(y)) >> 64) as u64)
            }
            Binary::And => self.map2(a, b, |x, y| x & y & mask),
            Binary::Or => self.map2(a, b, |x, y| (x | y) & mask),
            Binary::Xor => self.map2(a, b, |x, y| (x ^ y) & mask),
            Binary::ShiftLeft => self.map2(a, b, |x, y| shift_left(x, y) & mask),
            Binary::ShiftRight => self.map2(a, b, |x, y| shift_right(x & mask, y)),
            Binary::MinUnsigned => self.map2(a, b, |x, y| (x & mask).min(y & mask)),
            Binary::MaxUnsigned => self.map2(a, b, |x, y| (x & mask).max(y & mask)),
            Binary::MinSigned => self.map2(a, b, |x, y| signed(x).min(signed(y)) as u64 & mask),
            Binary::MaxSigned => self.map2(a, b, |x, y| signed(x).max(signed(y)) as u64 & mask),
            // PTX does not define division by zero. The hardware returns all ones.
            Binary::DivUnsigned => self.map2(a, b, |x, y| {
                (x & mask).checked_div(y & mask).unwrap_or(mask)
            }),
            Binary::RemUnsigned => self.map2(a, b, |x, y| {
                (x & mask).checked_rem(y & mask).unwrap_or(x & mask)
            }),
            Binary::DivSigned => self.map2(a, b, |x, y| {
                signed(x)
                    .checked_div(signed(y))
                    .map_or(mask, |q| q as u64 & mask)
            }),
            Binary::RemSigned => self.map2(a, b, |x, y| {
                signed(x)
                    .checked_rem(signed(y))
                    .map_or(x & mask, |r| r as u64 & mask)
            }),
        };
        let (tx, ty) = (self.taint[a], self.taint[b]);
        let tainted = if tx | ty == 0 {
            0
        } else {
            match op {
                Binary::Add => self.rule_above(taint::add, a, b, mask),
                Binary::Sub => self.rule_above(taint::sub, a, b, mask),
                Binary::And => self.rule(taint::and, a, b),
                Binary::Or => self.rule(taint::or, a, b),
                Binary::Xor => tx | ty,
                Binary::MulLow => self.rule(taint::mul, a, b),
                Binary::ShiftLeft if ty == 0 => self.shifted_taint(a, b, shift_left),
                Binary::ShiftRight if ty == 0 => {
                    self.shifted_taint(a, b, |tx, y| shift_right(tx & mask, y))
                }
                Binary::MulHigh64
                | Binary::ShiftLeft
                | Binary::ShiftRight
                | Binary::MinUnsigned
                | Binary::MaxUnsigned
                | Binary::MinSigned
                | Binary::MaxSigned => u64::MAX,
                Binary::DivUnsigned
                | Binary::RemUnsigned
                | Binary::DivSigned
                | Binary::RemSigned => return Err(Fault::SecretLatency),
            }
        };
        self.set(to, value, tainted & mask, lanes);
        Ok(())
    }

    pub(super) fn shift_right_signed(&mut self, width: Width, [to, a, b]: [Reg; 3], lanes: u32) {
        let shift = |x: u64, y: u64| {
            let extended = extend(x, width.0, true) as i64;
            (extended >> y.min(63)) as u64 & width.mask()
        };
        let value = self.map2(a, b, shift);
        let tainted = match self.taint[b] {
            0 => self.shifted_taint(a, b, shift),
            _ => width.mask(),
        };
        self.set(to, value, tainted, lanes);
    }

    pub(super) fn convert(
        &mut self,
        [to, from]: [Reg; 2],
        bits: u32,
        signed: bool,
        width: Width,
        lanes: u32,
    ) {
        let convert = |x: u64| extend(x, bits, signed) & width.mask();
        let value = self.map(from, convert);
        // Copies of a tainted sign bit are tainted too.
        self.set(to, value, convert(self.taint[from]), lanes);
    }

    pub(super) fn pack(&mut self, [to, low, high]: [Reg; 3], lanes: u32) {
        let pack = |low: u64, high: u64| low & u64::from(u32::MAX) | high << 32;
        let value = self.map2(low, high, pack);
        self.set(to, value, pack(self.taint[low], self.taint[high]), lanes);
    }

    pub(super) fn unpack(&mut self, low: Option<Reg>, high: Option<Reg>, from: Reg, lanes: u32) {
        let (value, tainted) = (self.regs[from], self.taint[from]);
        for (to, shift) in [(low, 0), (high, 32)] {
            let part = |x: u64| x >> shift & u64::from(u32::MAX);
            if let Some(to) = to {
                self.set(to, value.map(part), part(tainted), lanes);
            }
        }
    }

    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        signed: bool,
        width: Width,
        [to, a, b]: [Reg; 3],
        lanes: u32,
    ) {
        let value = self.map2(a, b, |x, y| compare(comparison, signed, width, x, y));
        let tainted = taint::any(self.taint[a] | self.taint[b]) & 1;
        self.set(to, value, tainted, lanes);
    }

    pub(super) fn select(&mut self, width: Width, [to, set, clear, by]: [Reg; 4], lanes: u32) {
        let chosen: Lanes = core::array::from_fn(|lane| {
            let from = if self.regs[by][lane] & 1 == 1 {
                set
            } else {
                clear
            };
            self.regs[from][lane] & width.mask()
        });
        let mut tainted = self.taint[set] | self.taint[clear];
        if self.taint[by] != 0 {
            // Bits that are equal on both sides do not reveal which side was chosen.
            tainted |= or_all(self.map2(set, clear, |x, y| x ^ y));
        }
        self.set(to, chosen, tainted & width.mask(), lanes);
    }

    pub(super) fn insert_field(
        &mut self,
        width: Width,
        [to, field, rest, position, length]: [Reg; 5],
        lanes: u32,
    ) {
        let insert = |field: u64, rest: u64, lane: usize| {
            let (position, length) = (self.regs[position][lane], self.regs[length][lane]);
            let mask = shift_left(low_bits(length & 0xff), position & 0xff);
            (rest & !mask | shift_left(field, position & 0xff) & mask) & width.mask()
        };
        let value = core::array::from_fn(|lane| {
            insert(self.regs[field][lane], self.regs[rest][lane], lane)
        });
        let tainted = match self.taint[position] | self.taint[length] {
            0 => or_all(core::array::from_fn(|lane| {
                insert(self.taint[field], self.taint[rest], lane)
            })),
            _ => width.mask(),
        };
        self.set(to, value, tainted, lanes);
    }

    pub(super) fn extract_field(
        &mut self,
        width: Width,
        [to, from, position, length]: [Reg; 4],
        lanes: u32,
    ) {
        let extract = |from: u64, lane: usize| {
            let (position, length) = (self.regs[position][lane], self.regs[length][lane]);
            shift_right(from & width.mask(), position & 0xff) & low_bits(length & 0xff)
        };
        let value = core::array::from_fn(|lane| extract(self.regs[from][lane], lane));
        let tainted = match self.taint[position] | self.taint[length] {
            0 => or_all(core::array::from_fn(|lane| extract(self.taint[from], lane))),
            _ => width.mask(),
        };
        self.set(to, value, tainted, lanes);
    }

    /// [`Warp::rule`] for rules that taint at least the tainted bits of either operand. Full taint
    /// then needs no evaluation.
    fn rule_above(&self, rule: impl Rule, a: Reg, b: Reg, mask: u64) -> u64 {
        if (self.taint[a] | self.taint[b]) & mask == mask {
            return mask;
        }
        self.rule(rule, a, b)
    }

    /// The union of a rule's taint over all lanes. The rule uses only public bits. If these are
    /// equal in all lanes, which is frequent, it is evaluated once.
    fn rule(&self, rule: impl Rule, a: Reg, b: Reg) -> u64 {
        let (tx, ty) = (self.taint[a], self.taint[b]);
        let (x, y) = (self.regs[a][0], self.regs[b][0]);
        let differing = or_all(self.map2(a, b, |other_x, other_y| {
            (x ^ other_x) & !tx | (y ^ other_y) & !ty
        }));
        match differing {
            0 => rule(x, tx, y, ty),
            _ => or_all(self.map2(a, b, |x, y| rule(x, tx, y, ty))),
        }
    }

    /// The taint of `a` shifted by the public `b`, which is usually equal in all lanes.
    fn shifted_taint(&self, a: Reg, b: Reg, shift: impl Fn(u64, u64) -> u64) -> u64 {
        let (tainted, by) = (self.taint[a], self.regs[b][0]);
        match or_all(self.map(b, |other| by ^ other)) {
            0 => shift(tainted, by),
            _ => or_all(self.map(b, |y| shift(tainted, y))),
        }
    }
}

fn or_all(lanes: Lanes) -> u64 {
    lanes.into_iter().fold(0, |all, x| all | x)
}

/// Shifts left. A shift by the operand's width or more gives zero.
fn shift_left(x: u64, by: u64) -> u64 {
    x.unbounded_shl(by as u32)
}

fn shift_right(x: u64, by: u64) -> u64 {
    x.unbounded_shr(by as u32)
}

fn low_bits(count: u64) -> u64 {
    !u64::MAX.unbounded_shl(count as u32)
}

/// The low `bits` bits of `x`, extended to 64.
fn extend(x: u64, bits: u32, signed: bool) -> u64 {
    let unused = 64 - bits;
    if signed {
        ((x << unused) as i64 >> unused) as u64
    } else {
        x << unused >> unused
    }
}

fn compare(comparison: Comparison, signed: bool, width: Width, x: u64, y: u64) -> u64 {
    let order = if signed {
        (extend(x, width.0, true) as i64).cmp(&(extend(y, width.0, true) as i64))
    } else {
        (x & width.mask()).cmp(&(y & width.mask()))
    };
    u64::from(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}
