//! Several processes that use one device at the same time.

use batch_modexp::backend::{Auto, Kind};

use super::work::{self, Batch, child, text, value};

/// Two children and this process compute at the same time, on the processor or on the GPUs.
fn several(kind: &str) {
    let start = || {
        let mut command = child("processes::one_of_several", kind);
        command.stdout(std::process::Stdio::piped());
        command
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children = [start(), start()];
    compute(kind);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = text(&output);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }
}

fn compute(kind: &str) {
    let backend = match kind {
        #[cfg(feature = "cuda")]
        "cuda" => Auto::with(Kind::Cuda, None).unwrap(),
        _ => Auto::with(Kind::Cpu, None).unwrap(),
    };
    let key = work::key();
    let batches = [512, 1024, 2048].map(|width| Batch::random(width, 300, width.into()));
    for _ in 0..10 {
        for batch in &batches {
            batch.compute(&backend).unwrap();
        }
        work::sign(&backend, &key, 40).unwrap();
    }
}

#[test]
fn on_one_processor() {
    several("cpu");
}

#[test]
fn on_one_gpu() {
    if super::gpu() {
        several("cuda");
    }
}

#[test]
#[ignore = "run by the tests above"]
fn one_of_several() {
    compute(&value());
}
