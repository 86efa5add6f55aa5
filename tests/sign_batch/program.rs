//! Runs the example as a program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::example;

pub fn path() -> PathBuf {
    example::program("sign_batch")
}

/// Runs it with `args` and empty input.
pub fn run(args: &[&str]) -> Output {
    run_with_input(args, b"")
}

/// Runs it with `args` and `input` on standard input.
pub fn run_with_input(args: &[&str], input: &[u8]) -> Output {
    run_command(Command::new(path()).args(args), input)
}

/// Runs it in a folder, with all GPUs hidden.
pub fn run_without_gpu(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(path());
    command
        .current_dir(folder)
        .env("CUDA_VISIBLE_DEVICES", "-1");
    run_command(command.args(args), input)
}

/// Starts it with `args`; the caller communicates with it.
pub fn start(args: &[&str]) -> Child {
    start_command(Command::new(path()).args(args))
}

/// Starts `command`.
pub fn start_command(command: &mut Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn run_command(command: &mut Command, input: &[u8]) -> Output {
    let mut child = start_command(command);
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Concurrently, for input that does not fit into the pipes. A program that ends early stops
        // reading.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    })
}

/// The standard output of a successful run.
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The path of a test key.
pub fn key(name: &str) -> String {
    format!("{}/../keys/{name}.pem", env!("CARGO_MANIFEST_DIR"))
}
