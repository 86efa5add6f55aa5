//! Launches: a grid of blocks, one after the other, each with its warps and its shared memory.

use super::decode::{self, Program};
use super::fault::Stop;
use super::memory::{Buffer, Global, Pointer};
use super::parse;
use super::race::Touched;
use super::warp::{Memory, Pause, Place, Warp};

/// The shape of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) blocks: u32,
    pub(crate) threads_per_block: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: usize,
}

/// A kernel argument. All are public: secrets lie in buffers.
#[derive(Clone, Copy)]
pub(crate) enum Argument {
    Pointer(Pointer),
    U32(u32),
    U64(u64),
}

/// What a launch did besides writing to memory.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Instructions executed, added up over all warps.
    pub(crate) steps: u64,
    /// Whether a block left something in shared memory that depends on a secret.
    pub(crate) secrets_left_in_shared: bool,
}

/// More instructions for one warp than any kernel of ours needs.
const MAX_STEPS: u64 = 1 << 32;

/// The kernels of a module, ready to run.
pub(crate) fn load(ptx: &str) -> Result<Vec<Program>, String> {
    parse::module(ptx)?
        .into_iter()
        .map(decode::program)
        .collect()
}

/// Runs `program`.
///
/// # Panics
///
/// If the shape of the launch or the arguments do not fit the kernel.
pub(crate) fn run(
    program: &Program,
    launch: Launch,
    arguments: &[Argument],
    global: &mut Global,
) -> Result<Outcome, Stop> {
    assert_eq!(launch.threads_per_block % 32, 0, "blocks are whole warps");
    if let Some(max) = program.max_threads {
        assert!(launch.threads_per_block <= max, "the block is too large");
    }
    let params = parameters(program, arguments);
    let mut outcome = Outcome::default();
    for block in 0..launch.blocks {
        let dynamic_start = program.shared_bytes.next_multiple_of(16);
        let mut shared = Buffer::new(dynamic_start + launch.dynamic_shared);
        let mut touched = Touched::new(shared.len());
        let mut warps: Vec<_> = (0..launch.threads_per_block / 32)
            .map(|warp| {
                let place = Place {
                    warp,
                    threads_per_block: launch.threads_per_block,
                    block,
                    blocks: launch.blocks,
                };
                (warp, Warp::new(program, place), Pause::Barrier)
            })
            .collect();
        while warps.iter().any(|(_, _, pause)| *pause == Pause::Barrier) {
            let waiting = warps
                .iter_mut()
                .filter(|(_, _, pause)| *pause == Pause::Barrier);
            for (number, warp, pause) in waiting {
                let mut memory = Memory {
                    params: &params,
                    shared: &mut shared,
                    touched: &mut touched,
                    warp: *number,
                    global,
                };
                *pause = warp.run(&mut memory, MAX_STEPS).map_err(|fault| {
                    let (line, text) = warp.origin();
                    Stop { fault, line, text }
                })?;
            }
            touched.barrier();
        }
        outcome.steps += warps.iter().map(|(_, warp, _)| warp.steps).sum::<u64>();
        outcome.secrets_left_in_shared |= shared.holds_secrets();
    }
    Ok(outcome)
}

/// The parameter block.
fn parameters(program: &Program, arguments: &[Argument]) -> Buffer {
    assert_eq!(
        arguments.len(),
        program.params.len(),
        "arguments of {}",
        program.name
    );
    let end = program
        .params
        .last()
        .map_or(0, |param| param.offset + param.bytes);
    let mut buffer = Buffer::new(end);
    for (param, argument) in program.params.iter().zip(arguments) {
        let (bytes, value) = match *argument {
            Argument::Pointer(pointer) => (8, pointer.0),
            Argument::U32(value) => (4, u64::from(value)),
            Argument::U64(value) => (8, value),
        };
        assert_eq!(bytes, param.bytes, "size of {}", param.name);
        let offset = param.offset as u64;
        match bytes {
            4 => buffer.write::<4>(offset, value, 0),
            _ => buffer.write::<8>(offset, value, 0),
        }
        .unwrap_or_else(|fault| panic!("parameter {}: {fault:?}", param.name));
    }
    buffer
}
