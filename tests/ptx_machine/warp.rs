//! One warp: 32 lanes in lockstep.
//!
//! Lanes that take different sides of a branch are run in turn, those that are further behind first, and
//! join where they meet again. Such a branch must be public like every other.

use super::decode::{Comparison, Float, Instruction, Op, Program, Reg, Special, Width};
use super::fault::Fault;
use super::float;
use super::memory::{Buffer, Global};
use super::race::Touched;
use super::taint::{self, Lanes};

/// All lanes.
const ALL: u32 = u32::MAX;

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pause {
    Barrier,
    Finished,
}

/// Where a warp stands in its grid.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) warp: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) block: u32,
    pub(crate) blocks: u32,
}

/// What a warp works on.
pub(crate) struct Memory<'a> {
    pub(crate) params: &'a Buffer,
    pub(crate) shared: &'a mut Buffer,
    /// Who touched shared memory, and the number of the warp that runs.
    pub(crate) touched: &'a mut Touched,
    pub(crate) warp: u32,
    pub(crate) global: &'a mut Global,
}

pub(crate) struct Warp<'a> {
    program: &'a Program,
    pub(super) regs: Vec<Lanes>,
    /// For each register, the bits that may depend on a secret in any lane.
    pub(super) taint: Vec<u64>,
    /// The instruction that the active lanes execute next.
    at: usize,
    pub(super) active: u32,
    /// Groups of lanes that wait at other instructions.
    waiting: Vec<(usize, u32)>,
    pub(crate) steps: u64,
}

impl<'a> Warp<'a> {
    pub(crate) fn new(program: &'a Program, place: Place) -> Self {
        let mut warp = Self {
            program,
            regs: vec![[0; 32]; program.register_count],
            taint: vec![0; program.register_count],
            at: 0,
            active: ALL,
            waiting: Vec::new(),
            steps: 0,
        };
        for &(reg, value) in &program.constants {
            warp.regs[reg] = [value; 32];
        }
        for &(reg, special) in &program.specials {
            warp.regs[reg] = core::array::from_fn(|lane| match special {
                Special::ThreadInBlock => u64::from(place.warp * 32) + lane as u64,
                Special::ThreadsPerBlock => u64::from(place.threads_per_block),
                Special::Block => u64::from(place.block),
                Special::Blocks => u64::from(place.blocks),
                Special::Lane => lane as u64,
            });
        }
        warp
    }

    /// Line and text of the instruction that runs next, or that failed.
    pub(crate) fn origin(&self) -> (u32, String) {
        self.program.origins[self.at].clone()
    }

    /// Runs until a barrier, the end, a fault, or for at most `max_steps` instructions in all.
    pub(crate) fn run(&mut self, memory: &mut Memory<'_>, max_steps: u64) -> Result<Pause, Fault> {
        let program = self.program;
        loop {
            if !self.waiting.is_empty() {
                self.choose_group();
            }
            if self.steps == max_steps {
                return Err(Fault::TooLong);
            }
            self.steps += 1;
            let instruction = &program.instructions[self.at];
            let lanes = self.guarded(instruction)?;
            match instruction.op {
                Op::Branch { target } => self.branch(lanes, target),
                Op::Exit => {
                    self.active &= !lanes;
                    self.at += 1;
                    if self.active == 0 {
                        match self.waiting.pop() {
                            Some((at, lanes)) => (self.at, self.active) = (at, lanes),
                            None => return Ok(Pause::Finished),
                        }
                    }
                }
                Op::BlockBarrier => {
                    if lanes != self.active || !self.waiting.is_empty() {
                        return Err(Fault::NotConverged);
                    }
                    self.at += 1;
                    return Ok(Pause::Barrier);
                }
                ref op => {
                    self.execute(op, lanes, memory)?;
                    self.at += 1;
                }
            }
        }
    }

    /// The active lanes in which the instruction's guard holds.
    fn guarded(&self, instruction: &Instruction) -> Result<u32, Fault> {
        let Some((predicate, wanted)) = instruction.guard else {
            return Ok(self.active);
        };
        if self.taint[predicate] != 0 {
            return Err(Fault::SecretBranch);
        }
        let set = mask_of(&self.regs[predicate]);
        Ok(self.active & if wanted { set } else { !set })
    }

    fn branch(&mut self, taken: u32, target: usize) {
        let stay = self.active & !taken;
        if taken == 0 {
            self.at += 1;
        } else if stay == 0 {
            self.at = target;
        } else {
            self.waiting.push((target, taken));
            (self.at, self.active) = (self.at + 1, stay);
        }
    }

    /// Continues with the lanes that are furthest behind, joined with all others at the same place.
    fn choose_group(&mut self) {
        self.waiting.push((self.at, self.active));
        let least = self.waiting.iter().map(|group| group.0).min();
        self.at = least.unwrap_or(self.at);
        self.active = 0;
        let (at, active) = (self.at, &mut self.active);
        self.waiting.retain(|group| {
            let here = group.0 == at;
            *active |= if here { group.1 } else { 0 };
            !here
        });
    }

    fn execute(&mut self, op: &Op, lanes: u32, memory: &mut Memory<'_>) -> Result<(), Fault> {
        match *op {
            Op::Binary(op, width, regs) => return self.binary(op, width, regs, lanes),
            Op::ShiftRightSigned(width, regs) => self.shift_right_signed(width, regs, lanes),
            Op::Convert {
                to,
                from,
                bits,
                signed,
                width,
            } => {
                let convert = |x: u64| extend(x, bits, signed) & width.mask();
                let value = self.map(from, convert);
                // The copies of a tainted sign bit are tainted too.
                self.set(to, value, convert(self.taint[from]), lanes);
            }
            Op::Pack { to, low, high } => {
                let pack = |low: u64, high: u64| low & u64::from(u32::MAX) | high << 32;
                let value = self.map2(low, high, pack);
                self.set(to, value, pack(self.taint[low], self.taint[high]), lanes);
            }
            Op::Unpack { low, high, from } => {
                let (value, tainted) = (self.regs[from], self.taint[from]);
                for (to, shift) in [(low, 0), (high, 32)] {
                    let part = |x: u64| x >> shift & u64::from(u32::MAX);
                    if let Some(to) = to {
                        self.set(to, value.map(part), part(tainted), lanes);
                    }
                }
            }
            Op::Select(width, regs) => self.select(width, regs, lanes),
            Op::InsertField(width, regs) => self.insert_field(width, regs, lanes),
            Op::ExtractField(width, regs) => self.extract_field(width, regs, lanes),
            Op::Compare {
                comparison,
                signed,
                width,
                to,
                a,
                b,
            } => {
                let value = self.map2(a, b, |x, y| compare(comparison, signed, width, x, y));
                let tainted = taint::any(self.taint[a] | self.taint[b]) & 1;
                self.set(to, value, tainted, lanes);
            }
            Op::FmaTowardZero([to, a, b, c]) => {
                let (x, y, z) = (&self.regs[a], &self.regs[b], &self.regs[c]);
                let value = core::array::from_fn(|l| float::fma_rz(x[l], y[l], z[l]));
                let tainted = self.taint[a] | self.taint[b] | self.taint[c];
                return self.set_float(to, value, tainted, lanes);
            }
            Op::Float(op, [to, a, b]) => {
                let (x, y) = (&self.regs[a], &self.regs[b]);
                let value = core::array::from_fn(|l| float_op(op, x[l], y[l]));
                return self.set_float(to, value, self.taint[a] | self.taint[b], lanes);
            }
            Op::NegateFloat([to, from]) => {
                let value = self.map(from, |x| x ^ 1 << 63);
                self.set(to, value, self.taint[from], lanes);
            }
            Op::ToDouble { to, from, signed } => {
                let value = self.map(from, |x| match signed {
                    true => (x as i64 as f64).to_bits(),
                    false => (x as f64).to_bits(),
                });
                self.set(to, value, taint::any(self.taint[from]), lanes);
            }
            Op::Parameter { to, bytes, offset } => {
                let (value, tainted) = match bytes {
                    4 => memory.params.read::<4>(offset as u64)?,
                    _ => memory.params.read::<8>(offset as u64)?,
                };
                self.set(to, [value; 32], tainted, lanes);
            }
            Op::Load(ref access) => return self.load(access, lanes, memory),
            Op::Store(ref access) => return self.store(access, lanes, memory),
            Op::Shuffle {
                mode,
                to,
                valid,
                from,
                lane,
                clamp,
                members,
            } => {
                self.converged(members, lanes)?;
                return self.shuffle(mode, to, valid, [from, lane, clamp], lanes);
            }
            Op::WarpBarrier { members } => return self.converged(members, lanes),
            Op::Branch { .. } | Op::Exit | Op::BlockBarrier => unreachable!("handled by run"),
        }
        Ok(())
    }

    /// Whether the lanes that an instruction names are the ones that execute it.
    fn converged(&self, members: Reg, lanes: u32) -> Result<(), Fault> {
        if self.taint[members] != 0 {
            return Err(Fault::SecretLane);
        }
        let named = |lane: usize| self.regs[members][lane] as u32 == lanes;
        if active_lanes(lanes).all(named) {
            Ok(())
        } else {
            Err(Fault::NotConverged)
        }
    }

    /// Writes `value` in `lanes`. What the other lanes keep stays as tainted as it was.
    pub(super) fn set(&mut self, to: Reg, value: Lanes, tainted: u64, lanes: u32) {
        if lanes == ALL {
            self.regs[to] = value;
            self.taint[to] = tainted;
        } else {
            for lane in active_lanes(lanes) {
                self.regs[to][lane] = value[lane];
            }
            self.taint[to] |= tainted;
        }
    }

    /// Writes floating-point results, all bits of which are tainted by any tainted bit of an operand.
    fn set_float(
        &mut self,
        to: Reg,
        value: [Option<u64>; 32],
        tainted: u64,
        lanes: u32,
    ) -> Result<(), Fault> {
        let mut finite = [0; 32];
        for lane in active_lanes(lanes) {
            finite[lane] = value[lane].ok_or(Fault::NotFinite)?;
        }
        self.set(to, finite, taint::any(tainted), lanes);
        Ok(())
    }

    pub(super) fn map(&self, a: Reg, f: impl Fn(u64) -> u64) -> Lanes {
        let x = &self.regs[a];
        core::array::from_fn(|lane| f(x[lane]))
    }

    pub(super) fn map2(&self, a: Reg, b: Reg, f: impl Fn(u64, u64) -> u64) -> Lanes {
        let (x, y) = (&self.regs[a], &self.regs[b]);
        core::array::from_fn(|lane| f(x[lane], y[lane]))
    }
}

/// The numbers of the lanes in a mask.
pub(super) fn active_lanes(lanes: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1)
}

/// The lanes in which a predicate is set.
fn mask_of(predicate: &Lanes) -> u32 {
    (0..32).fold(0, |mask, lane| {
        mask | ((predicate[lane] & 1) as u32) << lane
    })
}

/// The low `bits` bits of `x`, extended to 64.
pub(super) fn extend(x: u64, bits: u32, signed: bool) -> u64 {
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

/// `None` if an operand or the result is not finite.
fn float_op(op: Float, a: u64, b: u64) -> Option<u64> {
    const ONE: u64 = 1023 << 52;
    const SIGN: u64 = 1 << 63;
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let to_nearest = |result: f64| result.is_finite().then_some(result.to_bits());
    match op {
        Float::AddToNearest => to_nearest(x + y),
        Float::SubToNearest => to_nearest(x - y),
        Float::MulToNearest => to_nearest(x * y),
        Float::AddTowardZero => float::fma_rz(a, ONE, b),
        Float::SubTowardZero => float::fma_rz(a, ONE, b ^ SIGN),
        // A zero of the product's sign leaves the product as it is.
        Float::MulTowardZero => float::fma_rz(a, b, (a ^ b) & SIGN),
    }
}
