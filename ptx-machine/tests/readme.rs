//! Tests that the sessions in the README are the output of the program.

use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "$ ptx-machine ";

#[test]
fn sessions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let blocks: Vec<_> = readme
        .split("```console\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 2, "the README has sessions");
    for block in blocks {
        let block = block.replace("\\\n", " ");
        let mut status = None;
        for step in block.split("\n$ ") {
            let step = step.strip_prefix("$ ").unwrap_or(step);
            let (command, expected) = step.split_once('\n').unwrap_or((step, ""));
            let printed = match (command, status) {
                ("echo $?", Some(status)) => format!("{status}"),
                _ => {
                    let line = format!("$ {command}");
                    let args = line.strip_prefix(PROGRAM).expect(command);
                    let output = Command::new(env!("CARGO_BIN_EXE_ptx-machine"))
                        .args(args.split_whitespace())
                        .current_dir(root)
                        .output()
                        .unwrap();
                    status = output.status.code();
                    let text = [output.stdout, output.stderr].concat();
                    String::from_utf8(text).unwrap()
                }
            };
            assert_eq!(printed.trim_end(), expected.trim_end(), "{command}");
        }
    }
}
