//! Runs launches: the blocks of a grid one after another, each with its warps and its shared
//! memory.

use crate::error::{LaunchError, RunError};
use crate::fault::{Fault, Stop};
use crate::memory::{Buffer, Global, Pointer, Variables};
use crate::module::Threads;
use crate::program::{Instruction, Op, Program};
use crate::race::Touched;
use crate::warp::{Memory, Pause, Place, Warp};

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// Blocks in the one-dimensional grid.
    pub blocks: u32,
    /// Threads in a one-dimensional block.
    pub threads_per_block: u32,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
    /// Instructions that all warps together may execute before
    /// [`Fault::TooLong`](crate::Fault::TooLong).
    pub max_steps: u64,
}

/// The value of a parameter. All are public: secrets are in buffers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Argument {
    /// A pointer to a buffer.
    Pointer(Pointer),
    /// A number of 8 bits.
    U8(u8),
    /// A number of 16 bits.
    U16(u16),
    /// A number of 32 bits.
    U32(u32),
    /// A number of 64 bits, or the bits of a double.
    U64(u64),
}

/// The effects of a launch besides writes to memory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Executed instructions of all warps. One statement of the PTX may be several instructions.
    pub steps: u64,
    /// Whether a block left secrets in shared memory.
    pub secrets_left_in_shared: bool,
    /// Whether the launch left secrets in global variables of the module.
    pub secrets_left_in_variables: bool,
}

/// The memory that a block accesses.
struct BlockMemory<'a> {
    params: &'a Buffer,
    shared: &'a mut Buffer,
    variables: &'a mut Variables,
    global: &'a mut Global,
}

/// Takes hours, at about ten million steps a second.
const MAX_STEPS: u64 = 1 << 38;
/// The maximum number of threads of a block on any GPU.
const MAX_THREADS: u32 = 1024;
/// Above the shared memory of a block on any GPU.
const MAX_SHARED: usize = 256 << 10;
/// Registers of all warps of a block, at 264 bytes each.
const MAX_REGISTERS: usize = 1 << 20;

impl Launch {
    /// A grid of `blocks` blocks without dynamic shared memory, and with a practically unlimited
    /// number of steps.
    #[must_use]
    pub fn new(blocks: u32, threads_per_block: u32) -> Self {
        Self {
            blocks,
            threads_per_block,
            dynamic_shared: 0,
            max_steps: MAX_STEPS,
        }
    }

    /// Sets the dynamic shared memory in bytes.
    #[must_use]
    pub fn with_dynamic_shared(self, bytes: usize) -> Self {
        Self {
            dynamic_shared: bytes,
            ..self
        }
    }

    /// Sets the limit for the instructions of all warps together.
    #[must_use]
    pub fn with_max_steps(self, max_steps: u64) -> Self {
        Self { max_steps, ..self }
    }
}

impl Argument {
    fn value(self) -> (usize, u64) {
        match self {
            Self::Pointer(pointer) => (8, pointer.address()),
            Self::U8(value) => (1, value.into()),
            Self::U16(value) => (2, value.into()),
            Self::U32(value) => (4, value.into()),
            Self::U64(value) => (8, value),
        }
    }
}

impl Program {
    /// Runs a launch. Blocks run one after another, and the warps of a block in turn from barrier
    /// to barrier. Global variables of the module without initial values are zero at the start of
    /// every run.
    ///
    /// # Errors
    ///
    /// [`RunError::Launch`] if the shape of the launch or the arguments do not fit the kernel;
    /// nothing has run then. [`RunError::Stop`] at the first fault; earlier writes remain.
    pub fn run(
        &self,
        launch: &Launch,
        arguments: &[Argument],
        global: &mut Global,
    ) -> Result<Outcome, RunError> {
        let shared_bytes = self.shared_bytes(launch)?;
        let params = self.parameter_block(arguments)?;
        let mut outcome = Outcome::default();
        // Each run has its own, so that it does not depend on the runs before.
        let mut variables = self.variables.clone();
        for block in 0..launch.blocks {
            let mut shared = Buffer::new(shared_bytes);
            let mut memory = BlockMemory {
                params: &params,
                shared: &mut shared,
                variables: &mut variables,
                global: &mut *global,
            };
            self.run_block(block, launch, &mut memory, &mut outcome)?;
            outcome.secrets_left_in_shared |= shared.holds_secrets();
        }
        outcome.secrets_left_in_variables = variables.hold_secrets();
        Ok(outcome)
    }

    fn run_block(
        &self,
        block: u32,
        launch: &Launch,
        memory: &mut BlockMemory<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Stop> {
        let is_copy = |instruction: &Instruction| matches!(instruction.op, Op::BulkCopy(_));
        let has_copies = self.instructions.iter().any(is_copy);
        let mut touched = Touched::new(memory.shared.len(), has_copies);
        let warps = (0..launch.threads_per_block / 32).map(|warp| {
            let place = Place {
                warp,
                threads_per_block: launch.threads_per_block,
                block,
                blocks: launch.blocks,
            };
            (warp, Warp::new(self, place), Pause::Barrier)
        });
        let mut warps: Vec<_> = warps.collect();
        while warps.iter().any(|(_, _, pause)| *pause != Pause::Finished) {
            // Every warp runs to the next barrier. One that waits for copies goes on after others
            // have started them.
            let mut ready = warps.iter_mut().collect::<Vec<_>>();
            ready.retain(|(_, _, pause)| *pause != Pause::Finished);
            while !ready.is_empty() {
                let steps_before = outcome.steps;
                for (number, warp, pause) in &mut ready {
                    let mut memory = Memory {
                        params: memory.params,
                        shared: &mut *memory.shared,
                        touched: &mut touched,
                        warp: *number,
                        threads_per_block: launch.threads_per_block,
                        variables: &mut *memory.variables,
                        global: &mut *memory.global,
                    };
                    let before = warp.steps;
                    let max_steps = before.saturating_add(launch.max_steps - outcome.steps);
                    let paused = warp.run(&mut memory, max_steps);
                    *pause = paused.map_err(|fault| self.stop(fault, block, *number, warp))?;
                    outcome.steps += warp.steps - before;
                }
                ready.retain(|(_, _, pause)| *pause == Pause::Copies);
                match ready.first() {
                    Some((number, warp, _)) if outcome.steps == steps_before => {
                        return Err(self.stop(Fault::NeverCompletes, block, *number, warp));
                    }
                    _ => {}
                }
            }
            touched.barrier();
        }
        let left = touched.copies.none_left();
        match warps.last() {
            Some((number, warp, _)) => left.map_err(|fault| self.stop(fault, block, *number, warp)),
            None => Ok(()),
        }
    }

    fn stop(&self, fault: Fault, block: u32, number: u32, warp: &Warp<'_>) -> Stop {
        let (line, text) = warp.origin();
        Stop {
            fault,
            entry: self.name.clone(),
            line,
            text,
            block,
            warp: number,
            lane: warp.failed_lane(),
        }
    }

    /// The total bytes of shared memory, or why the launch does not fit the kernel or the machine.
    fn shared_bytes(&self, launch: &Launch) -> Result<usize, LaunchError> {
        let threads = launch.threads_per_block;
        if launch.blocks == 0 {
            return Err(LaunchError::NoBlocks);
        }
        if threads == 0 || threads > MAX_THREADS || !threads.is_multiple_of(32) {
            return Err(LaunchError::Threads(threads));
        }
        match self.threads {
            Some(bound @ Threads::AtMost(most)) if threads > most => {
                return Err(LaunchError::ThreadBound { threads, bound });
            }
            Some(bound @ Threads::Exactly(number)) if threads != number => {
                return Err(LaunchError::ThreadBound { threads, bound });
            }
            _ => {}
        }
        let registers = self.register_count * threads as usize / 32;
        if registers > MAX_REGISTERS {
            return Err(LaunchError::Registers { registers });
        }
        let bytes = self.dynamic_start.saturating_add(launch.dynamic_shared);
        if bytes > MAX_SHARED {
            return Err(LaunchError::SharedMemory { bytes });
        }
        Ok(bytes)
    }

    fn parameter_block(&self, arguments: &[Argument]) -> Result<Buffer, LaunchError> {
        if arguments.len() != self.parameters.len() {
            return Err(LaunchError::ArgumentCount {
                parameters: self.parameters.len(),
                arguments: arguments.len(),
            });
        }
        let last = self.parameters.last();
        let mut buffer = Buffer::new(last.map_or(0, |last| last.offset + last.bytes));
        for (number, (parameter, argument)) in self.parameters.iter().zip(arguments).enumerate() {
            let (given, value) = argument.value();
            if parameter.bytes != given {
                return Err(LaunchError::ArgumentSize {
                    parameter: number,
                    bytes: parameter.bytes,
                    given,
                });
            }
            // Byte by byte: the declared alignment of a parameter may be smaller than its size.
            for (at, byte) in (parameter.offset..).zip(&value.to_le_bytes()[..given]) {
                let written = buffer.write::<1>(at as u64, u64::from(*byte), 0);
                written.expect("the block has room for all parameters");
            }
        }
        Ok(buffer)
    }
}
