//! The command `ptx-machine check`.

use std::path::Path;

use ptx_machine::{Entry, Launch, Location, Module, Outcome, RunError, Stop, Threads};

use super::args::CheckArgs;
use super::failure::Failure;
use super::file;
use super::parameters::{self, Bound, Place};

/// The verdict on a run.
pub struct Report {
    pub is_clean: bool,
    pub text: String,
}

/// Runs an entry point as specified on the command line.
pub fn run(args: &CheckArgs) -> Result<Report, Failure> {
    let module = file::module(&args.file)?;
    let entry = find(&module, args)?;
    let program = entry
        .decode()
        .map_err(|error| Failure::ptx(&args.file, &error))?;
    let mut bound = parameters::bind(entry, args)?;
    let threads = args.threads.map_or(default_threads(entry), u32::from);
    let launch = Launch::new(args.blocks.get(), threads)
        .with_dynamic_shared(args.shared_bytes)
        .with_max_steps(args.max_steps);
    match program.run(&launch, &bound.arguments, &mut bound.global) {
        Ok(outcome) => Ok(finished(args, entry.name(), &outcome, &bound)),
        Err(RunError::Stop(stop)) => Ok(stopped(&args.file, &stop, &bound)),
        Err(RunError::Launch(error)) => Err(error.into()),
    }
}

fn find<'a>(module: &'a Module, args: &CheckArgs) -> Result<&'a Entry, Failure> {
    let name = match (&args.entry, module.entries()) {
        (None, [entry]) => return Ok(entry),
        (None, _) => {
            let which = "there are several entry points: say which with --entry".to_owned();
            return Err(Failure::File(args.file.clone(), which));
        }
        (Some(name), _) => name,
    };
    module.entry(name).ok_or_else(|| {
        let missing = format!("there is no entry point `{name}`; `ptx-machine list` prints them");
        Failure::File(args.file.clone(), missing)
    })
}

fn default_threads(entry: &Entry) -> u32 {
    match entry.threads() {
        Some(Threads::AtMost(threads) | Threads::Exactly(threads)) => threads,
        None => 32,
    }
}

fn finished(args: &CheckArgs, entry: &str, outcome: &Outcome, bound: &Bound) -> Report {
    let steps = outcome.steps;
    let holds_secrets = |place: Place| match place {
        Place::Shared => outcome.secrets_left_in_shared,
        Place::Variables => outcome.secrets_left_in_variables,
        Place::Parameter(number) => bound.buffers[number]
            .is_some_and(|pointer| bound.global.buffer(pointer).holds_secrets()),
    };
    let left: Vec<_> = args
        .wiped
        .iter()
        .filter(|place| holds_secrets(**place))
        .collect();
    let mut lines = Vec::new();
    for place in &left {
        lines.push(match place {
            Place::Shared => format!("{entry}: secrets are left in shared memory"),
            Place::Variables => format!("{entry}: secrets are left in variables of the module"),
            Place::Parameter(number) => {
                format!("{entry}: secrets are left in the buffer of parameter {number}")
            }
        });
    }
    if left.is_empty() {
        lines.push(match args.secret.is_empty() {
            true => format!("{entry}: {steps} steps without a fault; no buffer was secret"),
            false => format!(
                "{entry}: clean: {steps} steps, no secret reached a branch, an address, a shuffle lane or \
                 an instruction of variable time"
            ),
        });
    }
    for (number, pointer) in bound.buffers.iter().enumerate() {
        let Some(buffer) = pointer.map(|pointer| bound.global.buffer(pointer)) else {
            continue;
        };
        let secrets = match buffer.holds_secrets() {
            true => "holds secrets",
            false => "holds no secrets",
        };
        let unwritten = match buffer.all_written() {
            true => "",
            false => ", not all of it written",
        };
        let bytes = buffer.len();
        lines.push(format!(
            "  parameter {number}: {bytes} bytes, {secrets}{unwritten}"
        ));
    }
    Report {
        is_clean: left.is_empty(),
        text: lines.join("\n") + "\n",
    }
}

fn stopped(file: &Path, stop: &Stop, bound: &Bound) -> Report {
    let Stop {
        fault,
        entry,
        line,
        text,
        block,
        warp,
        lane,
    } = stop;
    let file = file.display();
    let lane = match lane {
        Some(lane) => format!("lane {lane} (thread {})", 32 * warp + lane),
        None => format!("lanes of threads {} to {}", 32 * warp, 32 * warp + 31),
    };
    let mut lines = vec![
        format!("{entry}: {fault}"),
        format!("  {file}:{line}: {text}"),
        format!("  block {block}, warp {warp}, {lane}"),
    ];
    if let Some(Location::Buffer(pointer, _)) = fault.location()
        && let Some(number) = bound.buffers.iter().position(|b| *b == Some(pointer))
    {
        let index = pointer.index();
        lines.push(format!("  buffer {index} is that of parameter {number}"));
    }
    Report {
        is_clean: false,
        text: lines.join("\n") + "\n",
    }
}
