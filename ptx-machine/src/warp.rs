//! Executes one warp: 32 lanes in lockstep.
//!
//! If lanes take different sides of a branch, the groups run in turn, those furthest behind first,
//! and join where they meet. The condition of such a branch must be public like any other.

mod access;
mod copy;
mod float;
mod integer;
mod matrix;
mod product;
mod shuffle;

use crate::fault::{Fault, Location};
use crate::memory::{Buffer, Global, Variables};
use crate::program::{Instruction, Op, Program, Reg, Special};
use crate::race::Touched;
use crate::taint::Lanes;
use matrix::Products;

/// The mask of all lanes.
const ALL: u32 = u32::MAX;

/// The reason why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pause {
    Barrier,
    /// It waits for copies that no warp has started yet.
    Copies,
    Finished,
}

/// The position of a warp in its grid.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) warp: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) block: u32,
    pub(crate) blocks: u32,
}

/// The memory that a warp accesses.
pub(crate) struct Memory<'a> {
    pub(crate) params: &'a Buffer,
    pub(crate) shared: &'a mut Buffer,
    /// The accesses to shared memory so far, and the number of the running warp.
    pub(crate) touched: &'a mut Touched,
    pub(crate) warp: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) variables: &'a mut Variables,
    pub(crate) global: &'a mut Global,
}

pub(crate) struct Warp<'a> {
    program: &'a Program,
    regs: Vec<Lanes>,
    /// For each register, the bits that may depend on a secret in any lane.
    taint: Vec<u64>,
    /// The instruction that the active lanes execute next.
    at: usize,
    active: u32,
    /// Groups of lanes that wait at other instructions.
    waiting: Vec<(usize, u32)>,
    failed_lane: Option<u32>,
    products: Products,
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
            failed_lane: None,
            products: Products::new(program),
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

    /// Line and text of the next instruction, or of the one that failed.
    pub(crate) fn origin(&self) -> (u32, String) {
        self.program.statements[self.program.origins[self.at]].clone()
    }

    /// The lane in which the last instruction failed. `None` if the whole warp failed.
    pub(crate) fn failed_lane(&self) -> Option<u32> {
        self.failed_lane
    }

    /// Runs until a barrier, a copy that has not started, the end, a fault, or `max_steps`
    /// instructions in all.
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
            self.products.check(instruction, self.steps)?;
            match instruction.op {
                Op::Branch { target } => self.branch(lanes, target),
                Op::Exit => {
                    self.active &= !lanes;
                    if self.active != 0 {
                        self.at += 1;
                    } else if let Some((at, lanes)) = self.waiting.pop() {
                        (self.at, self.active) = (at, lanes);
                    } else {
                        return self.products.none_left().map(|()| Pause::Finished);
                    }
                }
                // Nothing is executed, neither a barrier nor a fence.
                _ if lanes == 0 => self.at += 1,
                Op::WaitForCopies {
                    complete,
                    barrier,
                    parity,
                } => {
                    if !self.wait_for_copies(complete, barrier, parity, lanes, memory)? {
                        // The warp will execute it again.
                        self.steps -= 1;
                        return Ok(Pause::Copies);
                    }
                    self.at += 1;
                }
                Op::BlockBarrier => {
                    if lanes != self.active || !self.waiting.is_empty() {
                        return Err(Fault::NotConverged);
                    }
                    self.products.none_left()?;
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

    /// The active lanes for which the guard of the instruction holds.
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

    /// Continues with the lanes that are furthest behind, joined with all others at the same
    /// instruction.
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
            Op::Binary(op, width, regs) => self.binary(op, width, regs, lanes),
            Op::ShiftRightSigned(width, regs) => {
                self.shift_right_signed(width, regs, lanes);
                Ok(())
            }
            Op::Convert {
                to,
                from,
                bits,
                signed,
                width,
            } => {
                self.convert([to, from], bits, signed, width, lanes);
                Ok(())
            }
            Op::Pack { to, low, high } => {
                self.pack([to, low, high], lanes);
                Ok(())
            }
            Op::Unpack { low, high, from } => {
                self.unpack(low, high, from, lanes);
                Ok(())
            }
            Op::Select(width, regs) => {
                self.select(width, regs, lanes);
                Ok(())
            }
            Op::InsertField(width, regs) => {
                self.insert_field(width, regs, lanes);
                Ok(())
            }
            Op::ExtractField(width, regs) => {
                self.extract_field(width, regs, lanes);
                Ok(())
            }
            Op::Compare {
                comparison,
                signed,
                width,
                to,
                a,
                b,
            } => {
                self.compare(comparison, signed, width, [to, a, b], lanes);
                Ok(())
            }
            Op::FmaTowardZero(regs) => self.fma_toward_zero(regs, lanes),
            Op::Float(op, regs) => self.float(op, regs, lanes),
            Op::NegateFloat(regs) => {
                self.negate_float(regs, lanes);
                Ok(())
            }
            Op::ToDouble { to, from, signed } => {
                self.convert_to_double([to, from], signed, lanes);
                Ok(())
            }
            Op::Parameter { to, bytes, offset } => {
                let read = match bytes {
                    1 => memory.params.read::<1>(offset),
                    2 => memory.params.read::<2>(offset),
                    4 => memory.params.read::<4>(offset),
                    _ => memory.params.read::<8>(offset),
                };
                let (value, tainted) =
                    read.map_err(|denied| denied.at(Location::Parameters(offset)))?;
                self.set(to, [value; 32], tainted, lanes);
                Ok(())
            }
            Op::Load(ref access) => self.load(access, lanes, memory),
            Op::Store(ref access) => self.store(access, lanes, memory),
            Op::Prefetch { base, offset } => self.prefetch(base, offset, lanes, memory),
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
                self.shuffle(mode, to, valid, [from, lane, clamp], lanes)
            }
            Op::WarpBarrier { members } => self.converged(members, lanes),
            Op::Permute(regs) => {
                self.permute(regs, lanes);
                Ok(())
            }
            Op::MatrixProduct(ref product) => self.matrix_product(product, lanes, memory),
            Op::WarpProduct(ref product) => self.warp_product(product, lanes),
            Op::MatrixFence => {
                self.products.fence(self.steps);
                Ok(())
            }
            Op::MatrixCommit => {
                self.products.commit();
                Ok(())
            }
            Op::MatrixWait { pending } => {
                self.products.wait(pending);
                Ok(())
            }
            Op::ProxyFence { global, shared } => {
                // The fence of a lane is not about the stores of others.
                if lanes == ALL && shared {
                    memory.touched.proxy_fence(memory.warp);
                }
                if lanes == ALL && global {
                    memory.touched.copies.fence(memory.warp);
                }
                Ok(())
            }
            Op::InitBarrier(place) => self.init_barrier(place, lanes, memory),
            Op::ExpectCopies { barrier, bytes } => {
                self.expect_copies(barrier, bytes, lanes, memory)
            }
            Op::BulkCopy(ref copy) => self.bulk_copy(copy, lanes, memory),
            Op::Branch { .. } | Op::Exit | Op::BlockBarrier | Op::WaitForCopies { .. } => {
                unreachable!("handled by run")
            }
        }
    }

    /// Checks that the lanes that an instruction names are those that execute it.
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

    /// Writes `value` in `lanes`. The values of other lanes keep their taint.
    fn set(&mut self, to: Reg, value: Lanes, tainted: u64, lanes: u32) {
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

    /// Returns `result` of an instruction in one lane, and records the lane if it is a fault.
    #[inline]
    fn in_lane<T>(&mut self, lane: usize, result: Result<T, Fault>) -> Result<T, Fault> {
        if result.is_err() {
            self.failed_lane = Some(lane as u32);
        }
        result
    }

    fn map(&self, a: Reg, f: impl Fn(u64) -> u64) -> Lanes {
        let x = &self.regs[a];
        core::array::from_fn(|lane| f(x[lane]))
    }

    fn map2(&self, a: Reg, b: Reg, f: impl Fn(u64, u64) -> u64) -> Lanes {
        let (x, y) = (&self.regs[a], &self.regs[b]);
        core::array::from_fn(|lane| f(x[lane], y[lane]))
    }
}

/// The numbers of the lanes in a mask.
fn active_lanes(lanes: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1)
}

/// The lanes in which a predicate is set.
fn mask_of(predicate: &Lanes) -> u32 {
    (0..32).fold(0, |mask, lane| {
        mask | ((predicate[lane] & 1) as u32) << lane
    })
}
